"""JM with vectors of languages: as an input against a hand-made network, as a kernel against the closed form."""

import numpy as np
import torch

from crossfill.grid.cells import Cell
from crossfill.methods.baselines.typology_heads import KernelHeads, LanguageVectorHeads, prepare
from crossfill.methods.registry import Plan
from crossfill.model import Model
from crossfill.prediction.predict import predict
from tests.methods.grids import GRID, SEEN, SETTINGS, write_vectors
from tests.scenarios import INVENTORY, labelled, small_model

VECTORS = {
    language: np.array(vector, dtype=np.float64)
    for language, vector in {"aaa": (1.0, 0.0, 0.0), "bbb": (0.6, 0.8, 0.0), "ccc": (0.0, 0.6, 0.8)}.items()
}
UNSEEN = Cell("pos", "ccc")
DATA = labelled(UNSEEN, [4, 1, 7])


def described(method: str, *overrides: str) -> tuple[Model, LanguageVectorHeads]:
    model = small_model(method, *overrides)
    assert isinstance(model.heads, LanguageVectorHeads)
    model.heads.describe(VECTORS)
    return model, model.heads


def test_a_vector_is_an_input_beside_the_features():
    model, heads = described("jm-embedding")
    network = heads.get_submodule("heads").get_submodule("1")  # of pos
    x = torch.cat([DATA.inputs.features, torch.from_numpy(VECTORS["ccc"]).expand(12, -1)], 1)
    first, second, third = (network.get_submodule(place) for place in "024")
    hidden = (x @ first.get_parameter("weight").T + first.get_parameter("bias")).clamp(min=0)
    hidden = (hidden @ second.get_parameter("weight").T + second.get_parameter("bias")).clamp(min=0)
    logits = hidden @ third.get_parameter("weight").T + third.get_parameter("bias")
    torch.testing.assert_close(predict(model, DATA.inputs, UNSEEN, 0).probabilities, logits.softmax(-1))
    other = predict(model, DATA.inputs, Cell("pos", "aaa"), 0).probabilities
    assert not torch.allclose(other, logits.softmax(-1))


def test_a_language_without_a_seen_cell_keeps_a_vector_of_zeros_and_others_learn_theirs():
    model = small_model("jm-embedding")
    heads = model.heads
    assert isinstance(heads, LanguageVectorHeads)
    optimiser = torch.optim.SGD(heads.parameters(), lr=0.1)
    draw = heads.training_draw([Cell("pos", "aaa")], 1)[0]
    (-draw.head.log_probabilities(DATA.inputs.features)[0, :, 0].sum()).backward()
    optimiser.step()
    moved = heads.vectors.abs().sum(1) > 0
    assert [bool(m) for m in moved] == [language == "aaa" for language in INVENTORY.languages]
    assert (
        not heads.head(0, heads.vectors[0])
        .logits(DATA.inputs.features)
        .equal(heads.head(0, heads.vectors[1]).logits(DATA.inputs.features))
    )


def test_a_kernel_starts_as_jm_and_deviations_are_as_alike_as_languages():
    _, heads = described("jm-kernel")
    cells = [Cell("pos", language) for language in INVENTORY.languages]
    first, *others = (head.parameters for head in heads.plug_in(cells))
    assert all(torch.equal(first, other) for other in others)
    assert isinstance(heads, KernelHeads)
    draws = []
    for _ in range(4000):  # slopes of N(0, 1) make deviations of covariance v · v′
        torch.nn.init.normal_(heads.slopes[1])
        draws.append(torch.stack([head.parameters[0, 0, 0] - first[0, 0, 0] for head in heads.plug_in(cells)]))
    v = torch.tensor(np.stack([VECTORS[language] for language in INVENTORY.languages]))
    torch.testing.assert_close(torch.stack(draws).detach().T.cov(), v @ v.T, atol=0.08, rtol=0)


def test_a_step_with_weight_decay_moves_a_similar_language_in_proportion():
    _, heads = described("jm-kernel")
    cells = [Cell("pos", "aaa"), Cell("pos", "bbb"), UNSEEN]
    draw = heads.training_draw([cells[0]], 1)[0]
    assert draw.divergences == []
    draw.head.log_probabilities(DATA.inputs.features)[0, :, 0].sum().backward()
    before = [head.parameters.detach().clone() for head in heads.plug_in(cells)]
    with torch.no_grad():
        for slope in heads.deviations:
            if slope.grad is not None:
                slope.sub_(slope.grad)
    moved = [(head.parameters - old).detach() for head, old in zip(heads.plug_in(cells), before, strict=True)]
    torch.testing.assert_close(moved[1], 0.6 * moved[0])  # aaa · bbb
    assert not moved[2].any()  # aaa · ccc = 0


def test_vectors_come_from_the_similarity_of_the_config(tmp_path):
    from crossfill.methods.registry import build_model

    config = SETTINGS.change({"method": "jm-kernel", "latents.similarity": ["own"], "latents.size": 4})
    config = config.change({"sources.vectors": write_vectors(tmp_path)})
    model = build_model(config, GRID.inventory, SEEN)
    prepare(model, Plan(GRID, SEEN, SEEN), config)
    assert isinstance(model.heads, LanguageVectorHeads)
    products = model.heads.vectors @ model.heads.vectors.T
    torch.testing.assert_close(products.diagonal(), torch.ones(4), atol=1e-4, rtol=0)
    assert products[0, 1] > 0.9 > 0.1 > products[0, 2]  # aaa is like bbb, not like ccc
