"""The loop: it learns, stops, resumes bit for bit after SIGKILL, and says what is wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from crossfill import checkpoint
from crossfill.encoders.features import FeatureEncoder
from crossfill.errors import CheckpointError, DataError, TrainingError
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.methods.registry import build_model
from crossfill.settings import parse_assignments
from crossfill.tagger.model_folder import load_model
from crossfill.tagger.train import train_model
from crossfill.training.labelled import prepare_grid
from crossfill.training.loop import Trainer
from tests.scenarios import INVENTORY, N_FEATURES, SEEN, SMALL, labelled, small_grid, small_model


def trainer(tmp_path: Path | None = None, *overrides: str, **changes) -> Trainer:
    made, partition = small_grid()
    config = SMALL.change(parse_assignments(overrides))
    model = build_model(config, made.grid.inventory, partition.seen)
    return Trainer(model, *prepare_grid(model, made.grid), config, tmp_path, **changes)


@pytest.mark.parametrize("method", ["pf-lr", "pf-d", "jm"])
def test_training_lowers_the_loss_and_keeps_the_best_weights(method):
    run = trainer(None, f"method={method}", "training.steps=60", "training.validate_every=20")
    history = run.run().history
    assert [entry["step"] for entry in history] == [20, 40, 60]
    assert history[-1]["nll"] < 0.8 * history[0]["nll"]
    assert run.progression.best_score == max(entry["scores"]["mean"] for entry in history)
    assert run.validate().scores["mean"] == pytest.approx(run.progression.best_score)


def test_weights_are_chosen_by_likelihood_where_asked():
    run = trainer(None, "training.criterion=likelihood", "training.learning_rate=0.1", "training.patience=9")
    history = run.run().history
    likeliest = min(history, key=lambda entry: entry["dev_nll"]["mean"])
    assert run.progression.best_step == likeliest["step"]
    found = run.validate()
    assert found.nll["mean"] == pytest.approx(likeliest["dev_nll"]["mean"])
    naive = []
    for cell, data in run.dev_data.items():
        with torch.no_grad():
            head = run.model.heads.plug_in([cell])[0]
            said = head.log_probabilities(run.model.encoder(data.inputs))[0]
        naive.append((cell.task, -float(said[torch.arange(len(data.labels)), data.labels].mean())))
    for task in {task for task, _ in naive}:
        own = [value for other, value in naive if other == task]
        assert found.nll[task] == pytest.approx(sum(own) / len(own), rel=1e-4)


def test_patience_ends_training():
    run = trainer(None, "training.learning_rate=1e-9", "training.steps=500", "training.patience=2")
    at = run.run()
    assert (at.step, at.best_step) == (30, 10)


def test_without_dev_data_the_last_weights_stay():
    made, partition = small_grid()
    model = build_model(SMALL, made.grid.inventory, partition.seen)
    data, _ = prepare_grid(model, made.grid)
    assert Trainer(model, data, {}, SMALL).run().best_step == SMALL.training.steps


@pytest.mark.parametrize("method", ["pf-lr", "jm"])
def test_a_run_stopped_and_resumed_ends_with_the_same_bits(tmp_path, method):
    whole = trainer(tmp_path / "whole", f"method={method}")
    whole.run()
    broken = trainer(tmp_path / "broken", f"method={method}")
    broken.sampler.draw = stop_at(12, broken.sampler.draw)
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    again = trainer(tmp_path / "broken", f"method={method}")
    again.run(resume=True)
    assert again.progression == whole.progression
    for name in (checkpoint.WEIGHTS, checkpoint.STATE):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def stop_at(last: int, draw):
    def stopping(step: int):
        if step >= last:
            raise KeyboardInterrupt
        return draw(step)

    return stopping


LONGER = ("training.steps=60", "training.checkpoint_every=3")
RUN = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.training.test_loop import LONGER, trainer
trainer(Path(sys.argv[1]), *LONGER).run(resume=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("delays", [(0.1,), (0.01, 0.31, 0.05, 0.6)])
def test_a_run_killed_at_any_moment_and_resumed_ends_with_the_same_bits(delays, tmp_path):
    def start(folder: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path / folder)], env={**os.environ, "PYTHONPATH": "src:."}
        )

    trainer(tmp_path / "whole", *LONGER).run()
    kills = 0
    for delay in delays:
        process = start("killed")
        while process.poll() is None and not (tmp_path / "killed" / checkpoint.DESCRIPTION).exists():
            time.sleep(0.01)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert start("killed").wait() == 0
    assert kills
    for name in (checkpoint.WEIGHTS, checkpoint.STATE, checkpoint.HISTORY):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list((tmp_path / "killed").glob(".*"))


def test_every_step_is_told_with_numbers():
    notes: list[str] = []
    trainer(None, "training.steps=6", "training.validate_every=3").run(report=lambda _, note: notes.append(note))
    assert len(notes) == 6
    assert all("loss" in note and "nan" not in note for note in notes)
    assert "best" in notes[2]


def test_resuming_with_other_settings_is_refused(tmp_path):
    trainer(tmp_path).run()
    with pytest.raises(CheckpointError, match="started with other settings"):
        trainer(tmp_path, "training.clip=4").run(resume=True)


def test_resuming_a_finished_run_does_nothing(tmp_path):
    trainer(tmp_path).run()
    before = (tmp_path / checkpoint.STATE).stat().st_mtime_ns
    assert trainer(tmp_path).run(resume=True).finished
    assert (tmp_path / checkpoint.STATE).stat().st_mtime_ns == before


def test_a_loss_that_is_not_finite_names_cell_and_step(tmp_path):
    run = trainer(tmp_path)
    run.run()
    again = trainer(tmp_path, "training.steps=20")
    again._load_state(tmp_path)
    with torch.no_grad():
        again.model.encoder.ngrams.weight.fill_(torch.nan)
    with pytest.raises(TrainingError) as caught:
        again.advance()
    message = str(caught.value)
    assert "got nll nan" in message
    assert "in cell " in message
    assert "at step 20" in message


def test_cells_in_one_step_are_averaged():
    model = small_model("pf-d", "generator.initial_variance=1e-8")
    data = {cell: labelled(cell, [3, 4]) for cell in SEEN}
    config = SMALL.change({"method": "pf-d", "training.cells_per_step": 3, "objective.samples": 1})
    run = Trainer(model, data, {}, config)
    draws = run.sampler.draw(0)
    with torch.no_grad():
        for posterior in (model.heads.tasks, model.heads.languages):
            posterior.rho.fill_(-200)  # no noise: the same objective alone and together
        for layer in model.heads.generator.variances:
            layer.bias.fill_(-200)
            layer.weight.zero_()
        together = [objective.loss.item() for objective in run.objectives(draws)]
        alone = [run.objectives([draw])[0].loss.item() for draw in draws]
    assert together == pytest.approx(alone, rel=1e-2)


def test_wrong_data_is_refused():
    corpus = Corpus.from_sentences([Sentence(("a", "b"), ("NOUN", "O"))])
    grid = Grid({Cell("pos", "aaa"): (Splits("x", train=corpus),), Cell("pos", "bbb"): (Splits("y", dev=corpus),)})
    model = build_model(SMALL, INVENTORY, [Cell("pos", "aaa")])
    with pytest.raises(DataError, match="pos: unknown label 'O'"):
        prepare_grid(model, grid)
    model = build_model(SMALL, grid.inventory, [Cell("pos", "bbb")])
    with pytest.raises(DataError, match="got none in pos/bbb"):
        prepare_grid(model, grid)
    with pytest.raises(DataError, match="unknown language 'ccd'; did you mean 'ccc'"):
        build_model(SMALL, INVENTORY, [Cell("pos", "ccd")])
    with pytest.raises(DataError, match="given features"):
        prepare_grid(build_model(SMALL, grid.inventory, [Cell("pos", "aaa")], FeatureEncoder(N_FEATURES)), grid)


def test_train_and_evaluate_cover_every_cell(tmp_path):
    made, partition = small_grid()
    model = train_model(made.grid, partition.seen, SMALL, tmp_path).model
    results = evaluate(model, made.grid, SMALL)
    assert {result.cell for result in results} == set(made.grid.cells)
    assert {result.cell for result in results if result.seen} == partition.seen
    loaded, config = load_model(tmp_path)
    assert evaluate(loaded, made.grid, config) == results


def test_deviations_move_at_their_own_rate():
    """After one step of Adam every parameter with a gradient has moved by its learning rate."""
    rates = "training.learning_rate=0.01", "training.deviation_learning_rate=0.0001", "training.decay=constant"
    run = trainer(None, *rates)
    layers = run.model.heads.generator.means
    for name, rate in (("bias", 0.01), ("weight", 0.0001)):
        before = [layer.get_parameter(name).detach().clone() for layer in layers]
        run.advance()
        moved = [(layer.get_parameter(name) - old).abs().max() for layer, old in zip(layers, before, strict=True)]
        assert max(moved).item() == pytest.approx(rate, rel=0.1)
