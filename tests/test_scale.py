"""The formulas of scale against the model itself, and against the measurements that are committed."""

import sys
from pathlib import Path

import pytest
import torch

from crossfill.config import Config
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.training.labelled import Labelled
from crossfill.training.loop import Trainer
from crossfill.training.processes import Processes

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import scale  # noqa: E402
import scale_bulk  # noqa: E402
from parameters import parameter_counts  # noqa: E402

POINTS = scale.read_points(ROOT / "benchmarks" / "scale.json")


@pytest.mark.parametrize("sizes", [scale.Sizes(33, 2), scale.Sizes(330, 8, features=384)])
def test_parameters_are_those_of_the_model(sizes: scale.Sizes):
    labels = {f"task-{i}": n for i, n in enumerate(sizes.labels)}
    counted = parameter_counts(Config(), [sizes.languages], ("pf-lr",), labels, sizes.features)
    assert counted["pf-lr"] == [sizes.parameters()]


class Two(Processes):
    """One of two processes, which notes how many numbers it sends."""

    def __init__(self) -> None:
        super().__init__(Config().training)
        self.sent: list[int] = []

    def total(self, values: torch.Tensor) -> torch.Tensor:
        self.sent.append(values.numel())
        return values


def test_a_step_touches_keeps_and_sends_what_the_formulas_say():
    sizes = scale.Sizes(5, 3, features=7, latent=4, rank=2, hidden=(6, 8))
    changes = ["latents.size=4", "latents.rank=2", "generator.hidden=[6, 8]", "training.steps=9"]
    config = Config().change(parse_assignments(changes))
    labels = {f"t{i}": tuple(f"c{j}" for j in range(n)) for i, n in enumerate(sizes.labels)}
    inventory = Inventory.of(labels, tuple(f"l{i}" for i in range(sizes.languages)))
    cell = Cell("t1", "l3")
    model = build_model(config, inventory, [cell], FeatureEncoder(sizes.features))
    assert sum(p.numel() for p in model.parameters()) == sizes.parameters()
    kept = sum(tensor.numel() for tensor in model.state_dict().values())
    assert kept == sizes.parameters() + sizes.languages * sizes.latent  # anchors
    inputs = FeatureInputs(torch.randn(6, sizes.features), torch.tensor([2, 4]))
    processes = Two()
    data = {cell: Labelled(inputs, torch.randint(len(labels["t1"]), (6,)))}
    trainer = Trainer(model, data, {}, config, processes=processes)
    trainer.objectives(trainer.sampler.draw(0))[0].loss.backward()
    processes.size = 2
    processes.average_gradients(trainer.optimisers.parameters)
    touched = sizes.touched(len(labels["t1"]))
    assert processes.sent[-1] == touched
    assert sizes.exchanged(len(labels["t1"]), encoder=0, workers=2) == scale.FLOAT * touched


def test_measurements_are_as_near_to_the_formulas_as_the_page_says():
    """At every point, of which most were not fitted; docs/studies.md names the largest errors."""
    assert {point.sizes for point in POINTS} == {*scale.GRID, *scale.ENCODERS}
    rows = scale.errors(POINTS, scale.fit(POINTS))
    assert sum(row["fitted"] for row in rows) * 3 <= len(rows)
    assert max(abs(row["time_error"]) for row in rows) == pytest.approx(0.12, abs=0.005)
    assert max(abs(row["memory_error"]) for row in rows) == pytest.approx(0.07, abs=0.005)


def test_wrong_formulas_are_found():
    """The fit is no matter of course: where a step cost as much again for every language, it fails."""
    wrong = [
        scale.Point(p.sizes, p.seconds * (1 + p.sizes.languages / 3300), p.bytes, p.operations_per_second)
        for p in POINTS
    ]
    assert max(abs(row["time_error"]) for row in scale.errors(wrong, scale.fit(wrong))) > 0.2


def test_parameters_grow_with_languages_as_the_paper_says():
    counts = parameter_counts(Config(), [33, 34, 60])
    h, rank, heads = 100, 10, 769 * (9 + 17)
    assert counts["jm"] == counts["ls"] == [heads] * 3
    assert counts["ns"] == counts["bea"] == [33 * heads, 34 * heads, 60 * heads]
    assert counts["pf-d"][1] - counts["pf-d"][0] == 2 * h
    assert counts["pf-lr"][1] - counts["pf-lr"][0] == (2 + rank) * h


def test_the_cost_of_a_word_in_bulk_is_found_from_runs_of_several_encoders():
    true = scale_bulk.Speed(share=0.8, text=50e-6, operations=80e9)
    sizes = [(2, 128, 1.4), (6, 384, 1.4), (12, 384, 1.4)]
    points = [
        {"layers": n, "hidden": w, "pieces_per_word": p, "workers": workers, "word_seconds": true.word(n, w, p)}
        for n, w, p in sizes
        for workers in (1, 2)
    ]
    found = scale_bulk.fit({"points": points, "operations_per_second": true.operations})
    assert found.share == pytest.approx(true.share)
    assert found.text == pytest.approx(true.text)
    told = scale_bulk.costs(1e9, 1000, found)
    work = 2 * 12 * 12 * 768**2 * 1.5
    assert told["core_hours"] == pytest.approx(1e9 * (work / 64e9 + 50e-6) / 3600, abs=1)
    assert told["devices"]["A100"]["words_per_second"] == pytest.approx(0.4 * 312e12 / work, rel=1e-3)
    assert told["devices"]["A100"]["cores_for_text"] == 25
    assert told["shards"] == 1000 * 13
