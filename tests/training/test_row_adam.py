"""Adam row by row, against torch's Adam on every row alone."""

import math
import time

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossfill.training.optimisers import RowAdam

ROWS, COLUMNS, RATE = 3000, 4, 1e-2
TARGET = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def draws(n_steps: int, seed: int = 0) -> list[torch.Tensor]:
    """Rows of each step: a few often, most of them rarely, some never, and rows that a step draws twice."""
    generator = torch.Generator().manual_seed(seed)
    shares = 1.0 / torch.arange(1, ROWS + 1)
    return [torch.multinomial(shares, 5, replacement=True, generator=generator) for _ in range(n_steps)]


def table() -> nn.Parameter:
    return nn.Parameter(torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(2), dtype=torch.float64))


def take_step(parameter: nn.Parameter, optimiser: torch.optim.Optimizer, rows: torch.Tensor) -> None:
    ((functional.embedding(rows, parameter, sparse=True) - TARGET[rows]) ** 2).sum().backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def test_every_row_moves_as_if_it_were_alone():
    together = table()
    optimiser = RowAdam([together], lr=RATE)
    alone = [nn.Parameter(row.clone()) for row in together.detach()]
    optimisers = [torch.optim.Adam([row], lr=RATE) for row in alone]
    plan = draws(200)
    for rows in plan:
        take_step(together, optimiser, rows)
        for row, count in zip(*rows.unique(return_counts=True), strict=True):
            (count * ((alone[row] - TARGET[row]) ** 2).sum()).backward()
            optimisers[row].step()
            optimisers[row].zero_grad()
    torch.testing.assert_close(together, torch.stack(list(alone)), rtol=1e-12, atol=1e-12)
    counts = torch.stack([rows.bincount(minlength=ROWS) > 0 for rows in plan]).sum(0)
    assert counts.max() > 50
    assert (counts == 1).sum() > 100
    assert torch.equal(optimiser.state[together]["steps"], counts.to(torch.float64))


def test_a_row_first_drawn_late_takes_a_first_step_of_the_learning_rate():
    parameter = table()
    for optimiser, length in ((RowAdam([parameter], lr=RATE), RATE), (torch.optim.SparseAdam([parameter], RATE), None)):
        for _ in range(800):
            take_step(parameter, optimiser, torch.tensor([0, 1]))
        before = parameter.detach().clone()
        take_step(parameter, optimiser, torch.tensor([2999]))
        moved = (parameter - before)[2999].abs()
        if length is not None:
            torch.testing.assert_close(moved, torch.full_like(moved, length))
        else:  # what it would be with one count for all rows
            assert (moved > 2 * RATE).all()
        assert torch.equal(parameter[:2999], before[:2999])


def test_a_restored_optimiser_goes_on_bit_for_bit():
    plan = draws(60)
    whole, first = table(), table()
    straight, halted = RowAdam([whole], lr=RATE), RowAdam([first], lr=RATE)
    for rows in plan:
        take_step(whole, straight, rows)
    for rows in plan[:30]:
        take_step(first, halted, rows)
    second = nn.Parameter(first.detach().clone())
    resumed = RowAdam([second], lr=RATE)
    resumed.load_state_dict(halted.state_dict())
    for rows in plan[30:]:
        take_step(second, resumed, rows)
    assert torch.equal(second, whole)


@pytest.mark.slow
def test_a_step_is_no_slower_than_that_of_sparse_adam():
    parameter = nn.Parameter(torch.zeros(8500, 1000))
    contestants = [RowAdam([parameter], lr=RATE), torch.optim.SparseAdam([parameter], RATE)]
    seconds: list[list[float]] = [[], []]
    for rows in torch.randint(8500, (200, 8)):
        functional.embedding(rows, parameter, sparse=True).sum().backward()
        for optimiser, times in zip(contestants, seconds, strict=True):
            started = time.perf_counter()
            optimiser.step()
            times.append(time.perf_counter() - started)
        parameter.grad = None
    ours, theirs = (math.fsum(sorted(times)[:100]) for times in seconds)
    assert ours < 1.1 * theirs
