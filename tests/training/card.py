"""What runs on an accelerator, without one: fake tensors on a made-up device, which refuse to meet tensors on the CPU.

A process of its own, because the device stays registered; prints one line per check that passed.
"""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from crossfill.config import Config
from crossfill.encoders.features import FeatureEncoder
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model, find_method
from crossfill.model import Head, Model
from crossfill.prediction.predict import CellWords, classify, predict_runs
from crossfill.training.elbo import log_likelihood, negative_elbo, total_divergence

CARD = "card"
INVENTORY = Inventory.of({"ner": ("B", "I", "O"), "pos": ("ADJ", "NOUN")}, ("fin", "tha", "wol"))
SEEN = [Cell("ner", "fin"), Cell("ner", "wol"), Cell("pos", "wol"), Cell("pos", "tha")]
UNSEEN = [Cell("pos", "fin"), Cell("pos", "wol")]  # two at a time: fake tensors of one number know their value


class NoDoubles(TorchDispatchMode):
    """Refuses float64 on a device, as Apple's MPS does."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for value in found if isinstance(found, tuple | list) else (found,):
            if isinstance(value, torch.Tensor) and value.device.type == CARD and value.dtype == torch.float64:
                raise TypeError(f"float64 on {value.device} from {func}")
        return found


def on_card(method: str) -> Model:
    config = Config().change({"method": method, "latents.size": 4, "latents.rank": 2, "generator.hidden": [8]})
    model = build_model(config, INVENTORY, SEEN, FeatureEncoder(5))
    for module in model.modules():  # what `model.to` does, which cannot move fake parameters
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, torch.nn.Parameter(parameter.detach().to(CARD)))
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, buffer.to(CARD))
    return model


def expect_refusal(what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except (RuntimeError, TypeError):
        print(f"refused: {what}")


def all_on_card(*values: torch.Tensor) -> None:
    assert {value.device.type for value in values} == {CARD}


def refusals() -> None:
    table = torch.zeros(3, 2, device=CARD)
    expect_refusal("CPU index", lambda: torch.nn.functional.embedding(torch.tensor([0, 1]), table))
    expect_refusal("float64", lambda: torch.zeros(3, device=CARD, dtype=torch.float64))


def training_and_prediction(method: str) -> None:
    model = on_card(method)
    features, labels = torch.zeros(6, 5, device=CARD), torch.zeros(6, dtype=torch.long, device=CARD)
    losses = []
    for draw in model.heads.training_draw(SEEN, 3):
        likelihoods = log_likelihood(draw.head.log_probabilities(features), labels)
        objective = negative_elbo(likelihoods, total_divergence(draw.divergences, lambda _scope: 0.5), 6.0, 0.1)
        all_on_card(*objective)
        losses.append(objective.loss)
    torch.stack(losses).mean().backward()
    all_on_card(*(p.grad for p in model.parameters() if p.grad is not None))
    runs = [CellWords(features, head) for head in model.heads.plug_in(UNSEEN)]
    all_on_card(predict_runs(runs, None).probabilities)
    print(f"{method}: training, plug-in")


def posteriors(method: str) -> None:
    model = on_card(method)
    read = find_method(method).language_vectors
    assert read is not None
    scales = torch.ones(3, 1, device=CARD)
    model.heads.language_scales = lambda: scales  # it asks which languages are seen, and fake tensors have no values
    all_on_card(*read(model))
    languages = model.heads.languages
    for index in (torch.arange(3), torch.arange(3, device=CARD)):
        all_on_card(*languages.moments(index), languages.sample(index, 2), languages.kl(index))
    print(f"{method}: posteriors")


def voters() -> None:
    def vote(votes: torch.Tensor, n_labels: int) -> torch.Tensor:
        assert votes.device.type == "cpu"
        return torch.zeros(votes.shape[1], n_labels, dtype=torch.float64)

    head = on_card("jm").heads.plug_in(UNSEEN)[0]
    two = Head(head.parameters.expand(2, -1, -1))
    all_on_card(predict_runs([CellWords(torch.zeros(4, 5, device=CARD), two)], vote).probabilities)
    all_on_card(classify([CellWords(torch.zeros(4, 5, device=CARD), head)], interval=0.9).probabilities)
    print("votes, intervals")


if __name__ == "__main__":
    _setup_privateuseone_for_python_backend(CARD)
    torch.get_device_module(CARD).get_amp_supported_dtype = lambda: [torch.bfloat16]
    with FakeTensorMode(), NoDoubles():
        refusals()
        for name in ("pf-lr", "pf-d", "jm"):
            training_and_prediction(name)
        for name in ("pf-lr", "pf-d"):
            posteriors(name)
        voters()
