"""`crossfill demo --real` end to end, on few steps, with the built-in encoder and with a pretrained one."""

from collections import Counter

import pytest
from rich.console import Console
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.cli.demo import DOUBTFUL, frequent_label_scores, show_filled
from crossfill.data.parallel_corpus import parallel_grid
from crossfill.grid.partition import random_halves
from crossfill.studies.demo import demo_cells, demo_study
from crossfill.studies.run_folder import open_results
from crossfill.tagger.tagger import load
from tests.encoders.tiny import bert

RUN = CliRunner()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "real"
    result = RUN.invoke(app, ["--quiet", "demo", "--real", "--steps", "4", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_the_real_demo_prints_its_grid_its_scores_and_what_it_filled_in(finished):
    out, told = finished
    assert "16 languages × 2 tasks, 32 cells: ■ 16 seen, □ 16 unseen" in told
    assert "most frequent" in told
    assert "“Leyla and Omar met in Athens.” as tagged in cells without data" in told
    assert told.count("% wrong") >= 2
    assert "has read nothing but these sentences" in told
    results = open_results(out)
    assert results.methods == ["pf-lr", "jm"]
    seen, unseen = demo_cells(demo_study(real=True))
    for method in results.methods:
        found = results.cells(results.proper(method)[0])
        assert {result.cell for result in found if not result.seen} == set(unseen)
        assert {result.cell for result in found if result.seen} == set(seen)
    assert (out / "demo.png").is_file()


def test_filled_cells_are_shown_word_by_word_with_wrong_and_doubtful_labels_marked(finished):
    tagger, checked = load(finished[0] / "pf-lr"), demo_study(real=True)
    console = Console(record=True, width=50)
    (cell, *_) = unseen = demo_cells(checked)[1]
    show_filled(console, tagger, checked.grid.grid, unseen, samples=3)
    told = console.export_text()
    sentence = checked.grid.grid[cell][0].test[2]
    tagging = tagger.tag(sentence, cell, 3)
    block = told.split(f"{cell} ")[1].split("\n\n")[0]
    for word, label, gold, sure in zip(
        sentence.words, tagging.labels, sentence.labels, tagging.confidence, strict=True
    ):
        assert word in block
        assert label + "?" * bool(sure < DOUBTFUL) + (f" ✗{gold}" if label != gold else "") in block
    assert max(map(len, told.splitlines())) <= 80


def test_one_label_for_all_words_scores_as_often_as_it_is_right():
    grid = parallel_grid()
    partition, _ = random_halves(grid.cells, seed=3)
    found = frequent_label_scores(grid, partition.seen, partition.unseen)
    words = Counter(
        label for cell in partition.seen if cell.task == "pos" for label in grid.training(cell).labels
    ).most_common(1)[0][0]
    shares = [
        list(grid[cell][0].test.labels).count(words) / grid[cell][0].test.n_words
        for cell in partition.unseen
        if cell.task == "pos"
    ]
    assert found == {"ner": 0.0, "pos": pytest.approx(sum(shares) / len(shares))}


def test_a_pretrained_encoder_stays_frozen_under_the_settings_of_a_laptop(tmp_path):
    encoder = bert(tmp_path / "bert")
    checked = demo_study(steps=3, real=True, encoder=str(encoder))
    assert len(checked.plan.jobs) == 2
    for job in checked.plan.jobs.values():
        assert (job.config.encoder.name, job.config.training.steps) == (str(encoder), 3)
        assert job.config.encoder.pretrained.mode == "frozen"
        assert job.config.generator.hidden == ()


@pytest.mark.parametrize("options", [["--real", "--families", "3"], ["--encoder", "bert-base-multilingual-cased"]])
def test_options_of_the_other_demo_are_refused(options):
    result = RUN.invoke(app, ["demo", *options])
    assert result.exit_code == 2
    assert "--real" in result.output
