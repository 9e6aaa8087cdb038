"""Plans: what is wrong is named, jobs are named by content, and trainings are shared."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from crossfill.config import load_run_config
from crossfill.data.codes import language_code
from crossfill.errors import ConfigError
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import alternating_halves
from crossfill.methods.registry import find_method
from crossfill.settings import change_values, read_settings
from crossfill.studies.plan import check_study, make_partitions
from crossfill.studies.study import DataSettings, PartitionSettings, StudyConfig, StudyGrid, load_study_grid
from tests.data.folders import bio, conllu, write
from tests.studies.studies import checked, problems, study

PAPER = Path(__file__).parents[2] / "configs" / "paper.yaml"


def corpora(folder: Path, cells: list[str], n: int = 3) -> Path:
    """A data folder with tiny corpora for these cells."""
    files = {}
    for cell in map(Cell.parse, cells):
        for split in ("train", "dev", "test"):
            words = [f"{split}{cell.language}{i}" for i in range(n)]
            if cell.task == "pos":
                files[f"ud/{cell.language}/{split}.conllu"] = conllu(*([(w, "NOUN"), ("moku", "VERB")] for w in words))
            else:
                files[f"ner/{cell.language}/{split}.bio"] = bio(*([(w, "B-PER"), ("moku", "O")] for w in words))
    return write(folder, files)


def test_every_unknown_or_invalid_setting_of_the_study_is_named_at_once():
    values = study(sedes=[1], data={"max_trian": 3, "max_dev": 0}, partitions=[{"kind": "halves"}])
    message = "\n".join(problems(values))
    for expected in (
        "s.yaml: sedes: unknown setting 'sedes'; did you mean 'seeds'?",
        "s.yaml: data.max_trian: unknown setting 'max_trian'; did you mean 'max_train'?",
        "s.yaml: data.max_dev: input should be greater than",
        "s.yaml: partitions.0.kind: ",
    ):
        assert expected in message, f"{expected}\nnot in\n{message}"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"config": {"training": {"stesp": 4}}}, "training.stesp: unknown setting 'stesp'; did you mean 'steps'?"),
        ({"methods": {"jm": {"training": {"clip": -1}}}}, "methods.jm: training.clip: input should be greater than 0"),
        (
            {"ablations": [{"name": "a", "variants": {"b": {"latents": {"size": 0}}}}]},
            "methods.bea, with {'latents': {'size': 0}}: latents.size: input should be",
        ),
        ({"methods": {"pf-xl": {}}}, "unknown method 'pf-xl'; did you mean"),
        ({"config": {"encoder": {"name": "/no/such/encoder"}}}, "encoder '/no/such/encoder': expected"),
        ({"data": {"languages": ["wol", "yor", "tam"]}}, "missing corpus: tam has no data"),
        (
            {"partitions": [{"kind": "hold-out", "cells": ["ner/wol", "pos/wol"]}]},
            "hold-out: ner/wol cannot be unseen: language wol would be seen in no other cell",
        ),
        ({"partitions": [{"kind": "hold-out", "cells": ["ner/amh"]}]}, "hold-out: unknown cell 'ner/amh'"),
        ({"partitions": [{"kind": "random", "methods": ["pf"]}]}, "'random' asks for pf, which is not under methods"),
        ({"partitions": [{"kind": "random", "halves": [3]}]}, "random: expected halves of 1 to 2, got [3]"),
        ({"partitions": [{"kind": "random"}] * 2}, "random/1 is listed twice"),
        ({"partitions": [{"kind": "similar", "size": 30}]}, "partitions: kind: similar: "),
        ({"posteriors": ["fin"]}, "posteriors: expected a language of the grid, got 'fin'"),
    ],
)
def test_what_is_wrong_with_runs_data_or_partitions_is_named(changes: dict[str, Any], expected: str, tmp_path: Path):
    data = corpora(tmp_path / "data", ["pos/wol", "ner/wol", "pos/yor", "ner/yor", "pos/amh"])
    message = problems(study(data={"synthetic": None, "path": str(data)} | changes.pop("data", {}), **changes))[0]
    assert message.startswith("s.yaml: ")
    assert expected in message


def test_a_complete_grid_is_asked_for_cell_by_cell(tmp_path: Path):
    data = corpora(tmp_path / "data", ["pos/wol", "ner/wol", "pos/yor", "pos/amh"])
    settings = {"path": str(data), "synthetic": None, "complete": True}
    found = problems(study(data=settings))
    assert [p.split(": ", 1)[1] for p in found if "missing" in p] == [
        f"data: missing corpus: no ner/{language} in {data}" for language in ("amh", "yor")
    ]
    assert "found none; name it with --data" in problems(study(data=settings | {"path": "none"}))[0]


def test_gaps_may_be_noted_rather_than_refused(tmp_path: Path):
    data = corpora(tmp_path / "data", ["pos/wol", "ner/wol", "pos/yor", "ner/yor", "pos/amh"])
    listed = {
        "path": str(data),
        "synthetic": None,
        "complete": True,
        "gaps": "note",
        "languages": ["am", "tam", "wo", "yo"],
    }
    found = check_study(study(data=listed, posteriors=[]))
    assert found.grid.notes[:2] == (
        f"data: missing corpus: tam has no data in {data}",
        f"data: missing corpus: no ner/amh in {data}",
    )
    assert "the study runs without these" in found.grid.notes[2]
    assert found.grid.grid.languages == ("amh", "wol", "yor")


def test_alternating_halves_follow_the_order_in_which_languages_are_listed():
    values = read_settings(PAPER)["data"]
    listed = [language_code(code) for code in values["languages"]]
    cells = [Cell(task, language) for task in ("ner", "pos") for language in listed]
    grid = StudyGrid(Grid(dict.fromkeys(cells, ())), Grid({}))
    data = DataSettings(path="data", languages=tuple(values["languages"]))
    wanted = StudyConfig(data=data, methods={"jm": {}}, partitions=(PartitionSettings(kind="alternating"),))
    first, second = make_partitions(wanted, grid)
    # the script: every second cell of ner × languages, then pos × languages, languages in the order of their codes
    assert first.partition.unseen == {cell for i, cell in enumerate(cells) if i % 2 == 0}
    assert second.partition.unseen == {cell for i, cell in enumerate(cells) if i % 2 == 1}
    by_iso = alternating_halves(cells)[0].unseen
    assert {cell.language for cell in by_iso - first.partition.unseen} == {"fao", "fin", "tgl", "tha"}
    some = StudyGrid(Grid({cell: () for cell in cells if cell.language != "amh"}), Grid({}))
    without, _ = make_partitions(wanted, some)
    assert without.partition.unseen == {cell for cell in first.partition.unseen if cell.language != "amh"}


def test_languages_that_all_tasks_have_and_sources_that_serve_one_method(tmp_path: Path):
    cells = ["pos/wol", "ner/wol", "pos/yor", "ner/yor", "pos/amh", "pos/eng", "ner/eng"]
    data = DataSettings(path=str(corpora(tmp_path / "data", cells)), languages="both-tasks", source_only=("en",))
    found = load_study_grid(data)
    assert found.grid.languages == ("wol", "yor")
    assert found.sources.languages == ("eng",)
    assert found.with_sources().languages == ("eng", "wol", "yor")


def test_a_source_without_data_is_noted_and_the_study_goes_on(tmp_path: Path):
    cells = [f"{task}/{language}" for task in ("pos", "ner") for language in ("wol", "yor", "amh")]
    data = corpora(tmp_path / "data", cells)
    write(data, {"ner/yor/train.bio": bio(*([(f"more{i}", "B-PER"), ("moku", "O")] for i in range(9)))})
    values = read_settings(Path(__file__).parents[2] / "configs" / "frozen.yaml")
    given = {"data.path": str(data), "config.encoder.name": "compact", "methods": {"ls": {}, "jm": {}}, "ablations": []}
    found = check_study(change_values(values, given))
    (note,) = found.grid.notes
    assert note.startswith(f"data.source_only: eng has no data in {data}; in its place, the largest-source method")
    assert found.grid.only(["wol"]).notes == found.grid.notes
    jobs = [job for job in found.plan.jobs.values() if set(job.methods) == {"ls"}]
    assert len(jobs) == 6
    for job in jobs:
        seen = frozenset(map(Cell.parse, job.seen))
        made = find_method("ls").plan(found.grid.with_sources(), seen, job.config)
        words = {cell: found.grid.grid.training(cell).n_words for cell in seen}
        for task in ("ner", "pos"):
            (source,) = (cell for cell in made.cells if cell.task == task)
            assert words[source] == max(n for cell, n in words.items() if cell.task == task)
        assert all("has no training data in 'eng'" in line for line in made.notes)
        assert len(made.notes) == 2


def test_jobs_are_named_by_all_that_their_result_depends_on():
    def ids(**changes):
        return set(checked(methods={}, **changes).plan.jobs)

    base = ids()
    assert base == ids(title="another", keep_models=True, execution={"threads": 3})
    assert base.isdisjoint(ids(config={"training": {"steps": 13}}))
    assert base.isdisjoint(ids(data={"seed": 4}))
    assert base.isdisjoint(ids(partitions=[{"kind": "random", "seed": 1}]))
    assert base < ids(seeds=[0, 1])


def test_methods_that_share_heads_share_a_training():
    plan = checked().plan
    assert len(plan.entries) == 12
    assert sorted(tuple(job.methods) for job in plan.jobs.values()) == sorted(
        [("bea", "ns"), ("ls",), ("jm",), ("pf-d",), ("pf-lr",)] * 2
    )
    plan = checked(methods={"ns": {"training": {"steps": 5}}}).plan
    assert ("bea", "ns") not in {tuple(job.methods) for job in plan.jobs.values()}


def test_a_variant_that_changes_nothing_costs_nothing():
    ablations = [
        {
            "name": "steps",
            "methods": ["jm"],
            "variants": {"12": {"training": {"steps": 12}}, "6": {"training": {"steps": 6}}},
        }
    ]
    plan, base = checked(ablations=ablations).plan, checked().plan
    assert len(plan.jobs) == len(base.jobs) + 2
    assert {e.variant for e in plan.entries if e.ablation == "steps"} == {"12", "6"}


def test_subsets_of_languages_are_halved_and_hold_the_constraint():
    partitions = [
        {"kind": "similar", "size": 2, "methods": ["pf-lr"]},
        {"kind": "different", "size": 3, "methods": ["pf-lr"]},
    ]
    plan = checked(partitions=partitions).plan
    assert {entry.partition for entry in plan.entries} == {"sim-2/1", "sim-2/2", "dif-3/1", "dif-3/2"}
    sizes = {entry.group: len(plan.jobs[entry.job].languages) for entry in plan.entries}
    assert sizes == {"sim-2": 2, "dif-3": 3}


def test_bridges_are_seen_everywhere_and_none_of_them_is_random_halves():
    plan = checked(partitions=[{"kind": "bridges", "size": n, "seed": 3} for n in (0, 2)]).plan
    assert {entry.partition for entry in plan.entries} == {f"bridges-{n}-3/{half}" for n in (0, 2) for half in (1, 2)}
    plain = checked(partitions=[{"kind": "random", "seed": 3}]).plan
    none = {entry.job for entry in plan.entries if entry.group == "bridges-0-3"}
    assert none == set(plain.jobs)
    held_out = {
        n: {
            Cell.parse(c).language for e in plan.entries if e.group == f"bridges-{n}-3" for c in plan.jobs[e.job].unseen
        }
        for n in (0, 2)
    }
    assert len(held_out[0] - held_out[2]) == 2
    with pytest.raises(ConfigError, match="kind: bridges: size: expected the number of bridges, as size: 3"):
        checked(partitions=[{"kind": "bridges"}])


def test_jobs_reach_workers_as_they_are():
    job = next(iter(checked().plan.jobs.values()))
    assert pickle.loads(pickle.dumps(job)) == job


def test_a_run_takes_its_settings_from_a_study(tmp_path: Path):
    path = tmp_path / "study.yaml"
    path.write_text(
        "data: {path: x}\nconfig: {training: {steps: 9}}\nmethods: {jm: {training: {steps: 4}}, pf-lr: {}}\n"
    )
    assert (load_run_config(path).method, load_run_config(path).training.steps) == ("pf-lr", 9)
    assert load_run_config(path, "jm").training.steps == 4
    path.write_text("method: pf-d\n")
    assert load_run_config(path).method == "pf-d"
    path.write_text("data: {path: x}\nconfig: {trainin: 1}\nmethods: {jm: {}}\n")
    with pytest.raises(ConfigError, match="unknown setting 'trainin'"):
        load_run_config(path)


def test_a_study_without_methods_or_data_says_so():
    found = problems({"title": "x"})
    assert any("data: field required" in p for p in found)
    assert any("methods: field required" in p for p in found)


def test_cells_and_languages_are_named_by_any_code(tmp_path: Path):
    cells = [f"{task}/{language}" for task in ("pos", "ner") for language in ("wol", "fin", "vie")]
    found = checked(
        data={"path": str(corpora(tmp_path, cells)), "synthetic": None},
        partitions=[{"kind": "hold-out", "cells": ["ner/wo", "upos/fi"]}],
        posteriors=["vi"],
    )
    for job in found.plan.jobs.values():
        assert (job.unseen, job.posteriors) == (("ner/wol", "pos/fin"), ("vie",))
