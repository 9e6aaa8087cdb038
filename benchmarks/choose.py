"""Choose settings on languages that no table reports: `python benchmarks/choose.py DATA --encoder ENCODER --out FILE`.

Models train on the seen cells of all languages of configs/frozen.yaml, and are scored on the unseen cells of the
languages under `chosen` there. Variants are those of `VARIANTS`, or of a YAML file: changes to the config, by name.
A line of the file has the measures of a variant, a seed of partitions and a half: score with the decision rule that
suits these cells, NLL and calibration error, plug-in and averaged; with `--adapt`, the same after some sentences, and
with `--cues`, scores after some sentences where adapted cells learn everything, or all but one kind of cue.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from crossfill.adaptation import cell as adapted_cell
from crossfill.adaptation import fit
from crossfill.adaptation.curves import Curve, random_order
from crossfill.adaptation.examples import Examples
from crossfill.config import parse_config
from crossfill.encoders.cues import Cue
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.evaluation.scoring import PredictedCell, predict_cell
from crossfill.grid.cells import Grid
from crossfill.grid.partition import random_halves
from crossfill.measures import uncertainty
from crossfill.model import Model
from crossfill.prediction.calibration import TaskCalibration, rule_for
from crossfill.settings import merged, read_settings
from crossfill.studies.study import StudyConfig, load_study_grid, parse_study, typology_folder
from crossfill.tagger.train import train_model
from crossfill.training.labelled import prepare

HIDDEN = {"heads": {"hidden": [256], "dropout": 0.3}}
VARIANTS: dict[str, dict[str, Any]] = {
    "jm": {"method": "jm"},
    "pf-lr": {"method": "pf-lr"},
    "jm, 256 units": {"method": "jm", **HIDDEN},
    **{f"pf-lr, {n} units": {"heads": {"hidden": [n], "dropout": 0.3}} for n in (64, 256, 1024)},
    **{f"pf-lr, dropout {p}": {"heads": {"hidden": [256], "dropout": p}} for p in (0.0, 0.5)},
    **{f"pf-lr, rate {r}": {**HIDDEN, "training": {"learning_rate": r}} for r in (0.0008, 0.003, 0.006)},
    **{f"pf-lr, input dropout {p}": {**HIDDEN, "encoder": {"dropout": p}} for p in (0.3, 0.7)},
    **{f"pf-lr, decay {d}": {**HIDDEN, "training": {"weight_decay": d}} for d in (0.0, 0.1)},
    **{f"pf-lr, deviations {r}": {**HIDDEN, "training": {"deviation_learning_rate": r}} for r in (0.0003, 0.002)},
}
SENTENCES = (1, 5, 20, 80)


def measured(cells: Iterable[PredictedCell]) -> dict[str, dict[str, float]]:
    """Means over the cells of each task, with the rule that suits them best."""
    of_task: dict[str, list[PredictedCell]] = {}
    for predicted in cells:
        of_task.setdefault(predicted.cell.task, []).append(predicted)
    found = {}
    for name, held_out in of_task.items():
        task = held_out[0].task
        for kind in ("plug_in", "averaged"):
            samples = [predicted.sample(kind) for predicted in held_out]
            rule = rule_for(TaskCalibration.of(samples, task), "metric")
            bins = [
                uncertainty.reliability(s.probabilities.max(-1), s.probabilities.argmax(-1) == s.gold) for s in samples
            ]
            found[f"{name} {kind}"] = {
                "score": 100 * float(np.mean([predicted.score(rule) for predicted in held_out])),
                "nll": float(np.mean([uncertainty.nll(s.probabilities, s.gold) for s in samples])),
                "ece": float(np.mean([one.error() for one in bins])),
                "offset": rule.offset,
            }
    return found


def left_out() -> Iterator[str]:
    """Change what adapted cells learn, and say how: nothing, one kind of cue at a time, transitions, all of these."""
    scales, pairs = dict(fit.DEFAULT_SCALES), adapted_cell.label_pairs
    kinds = {cue.name.lower(): {cue} for cue in Cue}
    for name, cues in {"nothing": set(), **kinds, "transitions": set(), "all": set(Cue)}.items():
        fit.DEFAULT_SCALES.update(
            {
                k: s._replace(cues=tuple(0.0 if c in cues else x for c, x in zip(Cue, s.cues, strict=True)))
                for k, s in scales.items()
            }
        )
        adapted_cell.label_pairs = pairs if name not in ("transitions", "all") else lambda *_: ()
        yield name
    fit.DEFAULT_SCALES.update(scales)
    adapted_cell.label_pairs = pairs


def adapted(model: Model, grid: Grid, cells: list[PredictedCell], averaged: bool = True) -> dict[str, dict[str, float]]:
    """Means over the cells of each task after adapting to some sentences of their training text."""
    rows: dict[tuple[str, int], list[list[float]]] = {}
    for task in sorted({predicted.cell.task for predicted in cells}):
        held_out = [predicted for predicted in cells if predicted.cell.task == task]
        rule = rule_for(TaskCalibration.of([predicted.sample() for predicted in held_out], held_out[0].task), "metric")
        for predicted in held_out:
            training = grid.training(predicted.cell)
            if not any(splits.has_training_data for splits in grid[predicted.cell]):
                continue  # its test data would train
            (test,) = grid.evaluation(predicted.cell, seen=False).values()
            curve = Curve.of(
                model, predicted.cell, *(Examples.of(model, predicted.cell, c) for c in (training, test)), rule
            )
            order = random_order(len(curve.labelled), 0)
            for point in curve.points(order, 0, SENTENCES, from_scratch=False, averaged=averaged):
                values = [
                    100 * point.adapted,
                    point.nll,
                    point.ece,
                    point.averaged_nll or np.nan,
                    point.averaged_ece or np.nan,
                ]
                rows.setdefault((task, point.sentences), []).append(values)
    names = ("score", "nll", "ece", "averaged_nll", "averaged_ece")
    return {
        f"{task} {k}": dict(zip(names, np.mean(values, 0).round(4).tolist(), strict=True))
        for (task, k), values in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--variants", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11])
    parser.add_argument("--adapt", action="store_true")
    parser.add_argument("--cues", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    values = read_settings(Path("configs/frozen.yaml"))
    study: StudyConfig = parse_study(merged(values, {"data": {"path": given.data}}))
    grid, chosen = load_study_grid(study.data).grid, study.chosen
    languages = set(chosen.languages) if chosen is not None else set()
    variants = yaml.safe_load(given.variants.read_text(encoding="utf-8")) if given.variants else VARIANTS
    done = [json.loads(line)["run"] for line in given.out.open(encoding="utf-8")] if given.out.exists() else []
    common = {"encoder": {"name": given.encoder}, "sources": {"vectors": typology_folder(study.data)}}
    encoders: dict[Any, FrozenEncoder] = {}
    for name, changes in variants.items():
        config = parse_config(merged(merged(study.config, common), {"method": "pf-lr"} | changes))
        if config.encoder not in encoders:
            encoders[config.encoder] = FrozenEncoder(config.encoder, grid.inventory.languages)
        for seed in given.seeds:
            for half, partition in enumerate(random_halves(grid.cells, seed), start=1):
                run = [name, seed, half]
                if run in done:
                    continue
                model = train_model(grid, partition.seen, config, None, encoders[config.encoder]).model
                cells = []
                for cell in sorted(c for c in partition.unseen if c.language in languages):
                    corpora = grid.evaluation(cell, seen=False).values()
                    parts = [prepare(model.encoder, model.inventory, cell, corpus) for corpus in corpora]
                    cells.append(predict_cell(model, cell, parts, config))
                row: dict[str, Any] = {"run": run, "unseen": measured(cells)}
                if given.adapt:
                    row["adapted"] = adapted(model, grid, cells)
                if given.cues:
                    row["without"] = {name: adapted(model, grid, cells, averaged=False) for name in left_out()}
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    name,
                    seed,
                    half,
                    *(f"{k} {v['score']:.1f} {v['nll']:.3f}" for k, v in row["unseen"].items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
