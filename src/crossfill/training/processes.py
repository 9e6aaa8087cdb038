"""The processes that train one model together, on one machine or several; Accelerate starts and drives them.

All of them draw the same cells and the same heads, and each takes its share of every batch's sentences: the encoder's
work is divided, and the posterior draws are shared. Gradients are averaged after the backward pass. So the loss, the
KL in it (divided by all training words, as ever) and the step are those of one process with the whole batch. Dropout
inside the encoder is each process's own.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.config import TrainingConfig

_PATIENCE = timedelta(days=1)
"""How long processes wait for the first one: it may be encoding a grid."""


def is_first_process() -> bool:
    """Whether this process is the one that writes and shows, among those that were launched together."""
    return int(os.environ.get("RANK", "0")) == 0


class Processes:
    """A process among its peers. One alone on a CPU, the common case, does without Accelerate."""

    def __init__(self, config: TrainingConfig) -> None:
        self.seed = config.seed
        self.rank, self.size, self.device = 0, 1, torch.device("cpu")
        self.accelerator = None
        on_cpu = config.device == "cpu" or not torch.accelerator.is_available()
        launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
        if launched or not on_cpu or config.precision != "float32":
            from accelerate import Accelerator, InitProcessGroupKwargs

            self.accelerator = Accelerator(
                cpu=on_cpu,
                mixed_precision="bf16" if config.precision == "bfloat16" else "no",
                kwargs_handlers=[InitProcessGroupKwargs(timeout=_PATIENCE)],
            )
            self.rank, self.size = self.accelerator.process_index, self.accelerator.num_processes
            self.device = self.accelerator.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def share(self) -> slice:
        """The part of anything divided that this process takes: every size-th item."""
        return slice(self.rank, None, self.size)

    def autocast(self) -> AbstractContextManager[None]:
        """What the encoder computes under: training.precision."""
        return self.accelerator.autocast() if self.accelerator is not None else nullcontext()

    def first_goes_first(self) -> AbstractContextManager[None]:
        """Let the first process of each machine do this alone, so that the others find its files in the cache."""
        return self.accelerator.local_main_process_first() if self.accelerator is not None else nullcontext()

    def wait(self) -> None:
        """Until all processes are here."""
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()

    @contextmanager
    def own_randomness(self, step: int) -> Iterator[None]:
        """Random numbers of this process alone, so that the stream that all share stays in step."""
        if self.size == 1:
            yield
            return
        devices = [] if self.device.type == "cpu" else [self.device]
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed((self.seed * 1_000_003 + step) * self.size + self.rank)
            yield

    def randomness(self) -> dict[str, Tensor]:
        """Where the generators of random numbers stand, the device's own beside the CPU's."""
        found = {"rng": torch.get_rng_state()}
        if self.device.type != "cpu":
            found["device_rng"] = torch.get_device_module(self.device).get_rng_state()
        return found

    def restore_randomness(self, found: Mapping[str, Tensor]) -> None:
        """Go on from what `randomness` told; a run that moves to another kind of device starts that one's anew."""
        torch.set_rng_state(found["rng"])
        if self.device.type != "cpu" and "device_rng" in found:
            torch.get_device_module(self.device).set_rng_state(found["device_rng"])

    def total(self, values: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        """The sum over processes."""
        if self.size > 1:
            torch.distributed.all_reduce(values)
        return values

    @torch.no_grad()
    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace every gradient by its mean over processes.

        A process without sentences has no gradient for the encoder, so it is first settled who has one. Sparse
        gradients have the same rows everywhere, because all processes draw the same cells: their values are averaged.
        """
        if self.size == 1:
            return
        present = torch.tensor([float(p.grad is not None) for p in parameters], device=self.device)
        used = [p for p, n in zip(parameters, self.total(present).tolist(), strict=True) if n]
        values = []
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            values.append(parameter.grad.values() if parameter.grad.is_sparse else parameter.grad)
        flat = torch.cat([value.reshape(-1) for value in values])
        means = (self.total(flat) / self.size).split([value.numel() for value in values])
        for value, mean in zip(values, means, strict=True):
            value.copy_(mean.view_as(value))


def leave() -> None:
    """End the connection to the other processes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
