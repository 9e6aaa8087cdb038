"""Each task by the method that suits it: their heads over one encoder. `--method auto` chooses them."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import nn

from crossfill.config import Config
from crossfill.errors import ConfigError
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.methods.method import Method, Plan, train_on_seen
from crossfill.model import Classifier, HeadSource, Model, TrainingDraw


class HeadsByTask(HeadSource):
    """The heads of several methods, of which each gives those of some tasks."""

    def __init__(self, parts: Mapping[str, HeadSource], of_task: Mapping[str, str]) -> None:
        super().__init__()
        self.parts, self.of_task = nn.ModuleDict(parts), dict(of_task)
        self.has_posterior = any(part.has_posterior for part in parts.values())
        self.rows = [row for part in parts.values() for row in part.rows]
        self.deviations = [one for part in parts.values() for one in part.deviations]

    def part(self, cell: Cell) -> HeadSource:
        """The heads that a cell's head is one of."""
        found = self.parts[self.of_task[cell.task]]
        if not isinstance(found, HeadSource):
            raise TypeError(f"expected a HeadSource, got {type(found).__name__}")
        return found

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return [self.part(cell).plug_in([cell])[0] for cell in cells]

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        return [self.part(cell).sample([cell], n_samples, generator)[0] for cell in cells]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        found: dict[int, TrainingDraw] = {}
        for name in dict.fromkeys(self.of_task[cell.task] for cell in cells):
            places = [i for i, cell in enumerate(cells) if self.of_task[cell.task] == name]
            own = [cells[i] for i in places]
            found |= zip(places, self.part(own[0]).training_draw(own, n_samples), strict=True)
        return [found[i] for i in range(len(cells))]


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> HeadsByTask:
    """The heads of every method that `by_task` names."""
    of_task = {task: config.by_task.get(task, "") for task in inventory.tasks}
    parts: dict[str, HeadSource] = {}
    for task, name in of_task.items():
        method = _method(task, name)
        if name not in parts:
            parts[name] = method.build(inventory, seen, n_features, config.change({"method": name}))
    return HeadsByTask(parts, of_task)


def settle(model: Model, plan: Plan, config: Config) -> None:
    """Complete the heads of every method."""
    if isinstance(model.heads, HeadsByTask):
        for name, heads in model.heads.parts.items():
            if isinstance(heads, HeadSource):
                own = Model(model.encoder, heads, model.inventory, model.seen)
                _method("", name).settle(own, plan, config.change({"method": name}))


def check(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train on all training data of the seen cells, as all of its methods do."""
    for task in grid.tasks:
        _method(task, config.by_task.get(task, ""))
    return train_on_seen(grid, seen, config)


def _method(task: str, name: str) -> Method:
    from crossfill.methods.registry import all_methods, find_method

    known = [m.name for m in all_methods().values() if m.plan is train_on_seen and not m.trained_as]
    if name not in known:
        raise ConfigError(f"by_task: {task}: expected one of {', '.join(known)}, got '{name}'")
    return find_method(name)


METHODS = (Method("by-task", "each task by the method chosen for it", build, plan=check, settle=settle),)
