"""Training of one model by several processes, on one machine or several, with Accelerate.

All processes draw the same cells and the same heads, and each encodes its share of every batch's sentences. Gradients
are averaged after the backward pass, so the loss, its KL term (divided by the number of all training words) and the
update are those of one process with the whole batch. Only dropout inside the encoder differs between processes.
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
"""Timeout of processes that wait for each other: the first one may be encoding a whole grid."""


def is_first_process() -> bool:
    """Say whether this is the process that writes files and prints, among those launched together."""
    return int(os.environ.get("RANK", "0")) == 0


def is_only_process() -> bool:
    """Say whether one process trains alone."""
    return int(os.environ.get("WORLD_SIZE", "1")) <= 1


def widest(device: torch.device) -> torch.dtype:
    """Return the widest float of a device: Apple's MPS has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class Processes:
    """The current process among those that train together; one alone on a CPU in float32 needs no Accelerate."""

    def __init__(self, config: TrainingConfig) -> None:
        self.seed = config.seed
        self.rank, self.size, self.device = 0, 1, torch.device("cpu")
        self.accelerator = None
        on_cpu = config.device == "cpu" or not torch.accelerator.is_available()
        if not is_only_process() or not on_cpu or config.precision != "float32":
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
        """The items of a divided sequence that this process takes: every `size`-th one."""
        return slice(self.rank, None, self.size)

    def autocast(self) -> AbstractContextManager[None]:
        """Return the context that the encoder computes in, which sets `training.precision`."""
        return self.accelerator.autocast() if self.accelerator is not None else nullcontext()

    def first_goes_first(self) -> AbstractContextManager[None]:
        """Let each machine's first process run first, so that the others find its files in the cache."""
        return self.accelerator.local_main_process_first() if self.accelerator is not None else nullcontext()

    def wait(self) -> None:
        """Block until all processes have reached this point."""
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()

    @contextmanager
    def own_randomness(self, step: int) -> Iterator[None]:
        """Give a context with random numbers of this process alone; the stream shared by all stays synchronised."""
        if self.size == 1:
            yield
            return
        devices = [] if self.device.type == "cpu" else [self.device]
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed((self.seed * 1_000_003 + step) * self.size + self.rank)
            yield

    def randomness(self) -> dict[str, Tensor]:
        """Return the states of the random number generators of the CPU and of the device, if that is another."""
        states = {"rng": torch.get_rng_state()}
        if self.device.type != "cpu":
            states["device_rng"] = torch.get_device_module(self.device).get_rng_state()
        return states

    def restore_randomness(self, states: Mapping[str, Tensor]) -> None:
        """Restore the states that `randomness` returned; a device without a saved state keeps its current one."""
        torch.set_rng_state(states["rng"])
        if self.device.type != "cpu" and "device_rng" in states:
            torch.get_device_module(self.device).set_rng_state(states["device_rng"])

    def total(self, values: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        """Compute the sum over processes, computed in place."""
        if self.size > 1:
            torch.distributed.all_reduce(values)
        return values

    @torch.no_grad()
    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace every gradient by its mean over processes.

        A process without sentences has no gradient for the encoder, so processes first agree on the parameters that
        have one. Sparse gradients have the same rows everywhere, as all processes draw the same cells.
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
    """Disconnect from the other processes, if there are any."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
