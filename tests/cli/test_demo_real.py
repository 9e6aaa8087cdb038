"""`crossfill demo --real` end to end, on few steps, with the built-in encoder and with a pretrained one."""

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.studies.demo import demo_cells, demo_study
from crossfill.studies.run_folder import open_results
from tests.encoders.tiny import bert

RUN = CliRunner()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "real"
    few = ["--set", "config.training.steps=4"]
    result = RUN.invoke(app, ["--quiet", "demo", "--real", *few, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_the_real_demo_prints_its_grid_its_scores_and_what_it_filled_in(finished):
    out, told = finished
    assert "16 languages × 2 tasks, 32 cells: ■ 16 seen, □ 16 unseen" in told
    assert "Tagged by PF-lr in cells it never saw" in told
    assert "has read nothing but these sentences" in told
    results = open_results(out)
    assert results.methods == ["pf-lr", "jm"]
    seen, unseen = demo_cells(demo_study(real=True))
    for method in results.methods:
        found = results.cells(results.proper(method)[0])
        assert {result.cell for result in found if not result.seen} == set(unseen)
        assert {result.cell for result in found if result.seen} == set(seen)


def test_a_pretrained_encoder_stays_frozen_under_the_settings_of_a_laptop(tmp_path):
    encoder = bert(tmp_path / "bert")
    checked = demo_study(real=True, encoder=str(encoder), changes={"config.training.steps": 3})
    assert len(checked.plan.jobs) == 2
    for job in checked.plan.jobs.values():
        assert (job.config.encoder.name, job.config.training.steps) == (str(encoder), 3)
        assert job.config.encoder.pretrained.mode == "frozen"
        assert job.config.generator.hidden == ()


def test_an_encoder_is_refused_for_artificial_languages():
    result = RUN.invoke(app, ["demo", "--encoder", "bert-base-multilingual-cased"])
    assert result.exit_code == 2
    assert "--real" in result.output
