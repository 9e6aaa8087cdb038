"""`crossfill adapt`: a better cell, undone again; bad input leaves the model as it was."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app
from crossfill.data.writers import write_grid
from crossfill.grid.cells import Cell, Grid
from tests.data.folders import bio
from tests.scenarios import SMALL, small_grid


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Grid, Cell]:
    """A model folder, its data folder, and an unseen cell."""
    root = tmp_path_factory.mktemp("adapt")
    synthetic, partition = small_grid()
    crossfill.train(synthetic.grid, config=SMALL, out=root / "model", hold_out=partition.unseen, expect=True)
    write_grid(synthetic.grid, root / "data")
    return root / "model", root / "data", synthetic.grid, min(partition.unseen)


def sentences(grid: Grid, cell: Cell, split: str, start: int, end: int) -> str:
    corpus = getattr(grid[cell][0], split)
    return bio(*[list(zip(corpus[i].words, corpus[i].labels, strict=True)) for i in range(start, end)])


def run(*given: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(part) for part in given])
    error = f"\n{result.exception}" if isinstance(result.exception, crossfill.CrossfillError) else ""
    return result.exit_code, result.output + error


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("[!.]*")) if path.is_file()
    }


def test_adapt_twice_and_undo(made: tuple[Path, Path, Grid, Cell], tmp_path: Path) -> None:
    model, data, grid, cell = made
    before = contents(model)
    (tmp_path / "a.bio").write_text(sentences(grid, cell, "train", 0, 4))
    (tmp_path / "b.bio").write_text(sentences(grid, cell, "train", 4, 7))
    code, told = run("adapt", model, tmp_path / "a.bio", "--cell", cell, "--out", tmp_path / "two", "--data", data)
    assert code == 0, told
    assert "adapted, 4 sentences (4 new" in told
    assert re.search(rf"{cell}: its 4 sentences, each left out in turn: \d+ → \d+", told)
    assert contents(model) == before
    assert run("adapt", tmp_path / "two", tmp_path / "b.bio", "--cell", cell)[0] == 0
    tagger = crossfill.load(tmp_path / "two")
    once = crossfill.load(model)
    once.adapt([s for i in range(7) for s in [grid[cell][0].train[i]]], cell)
    words = grid[cell][0].test[0].words
    twice, directly = (t.tag(words, cell, samples=0).probabilities for t in (tagger, once))
    assert abs(twice - directly).max() < 1e-4
    assert abs(twice - crossfill.load(model).tag(words, cell, samples=0).probabilities).max() > 1e-3
    assert str(tagger.adapted[cell]) == "adapted, 7 sentences"
    saved = crossfill.load(tagger.save(tmp_path / "saved"))
    assert str(saved.adapted[cell]) == "adapted, 7 sentences"
    assert saved.tag(words, cell).mutual_information.max() > 0
    assert crossfill.load(tmp_path / "two").evaluate(grid.where(lambda other: other == cell))
    tagger.adapt([grid[cell][0].test[0]], cell)
    with pytest.raises(crossfill.CrossfillError, match="1 of"):
        tagger.evaluate(grid)
    code, told = run("adapt", tmp_path / "two", "--undo", "--cell", cell)
    assert code == 0, told
    assert not crossfill.load(tmp_path / "two").adapted


def test_words_without_a_label_are_said_and_not_learnt_from_or_scored(
    made: tuple[Path, Path, Grid, Cell], tmp_path: Path
) -> None:
    model, data, grid, cell = made
    corpus = grid[cell][0].train[:3]
    open_words = [(s.words, tuple(label if i % 2 else "_" for i, label in enumerate(s.labels))) for s in corpus]
    (tmp_path / "a.bio").write_text(bio(*[list(zip(*one, strict=True)) for one in open_words]))
    n_all, n_labelled = corpus.n_words, sum(len(words) // 2 for words, _ in open_words)
    given = ["--cell", cell, "--unlabelled", "_", "--out", tmp_path / "new"]
    code, told = run("adapt", model, tmp_path / "a.bio", *given)
    assert code == 0, told
    assert f"{n_all - n_labelled} of {n_all} words have no label" in told
    assert f"(3 new, {n_labelled} labels)" in told
    tagger, part = crossfill.load(tmp_path / "new"), data / cell.task / cell.language / "test.bio"
    whole = tagger.evaluate(grid.where(lambda other: other == cell))[0]
    lines = part.read_text().splitlines(keepends=True)
    part.write_text(
        "".join(f"{line.split()[0]}\t_\n" if i % 3 == 0 and line.strip() else line for i, line in enumerate(lines))
    )
    (part.parent / "columns.txt").write_text("unlabelled=_\n")
    try:
        code, told = run("evaluate", tmp_path / "new", data)
        n_open = sum(i % 3 == 0 and bool(line.strip()) for i, line in enumerate(lines))
        assert f"{cell}: {n_open} of {whole.n_words} words have no label; scores are of the others" in told
    finally:
        part.write_text("".join(lines))
        (part.parent / "columns.txt").unlink()


def test_a_lexicon_alone_and_beside_sentences(made: tuple[Path, Path, Grid, Cell], tmp_path: Path) -> None:
    model, _, grid, _ = made
    before = crossfill.load(model)
    cell = next(cell for cell in before.cells if before.model.inventory.task(cell.task).kind == "spans")
    kind = next(label[2:] for label in before.model.inventory.task(cell.task).labels if label.startswith("I-"))
    word, other, *_ = grid[cell][0].train[0].words
    (tmp_path / "names.tsv").write_text(f"{word}\t{kind}\n{other} {word}\t{kind}\n")
    code, told = run("adapt", model, "--cell", cell, "--lexicon", tmp_path / "names.tsv", "--out", tmp_path / "listed")
    assert code == 0, told
    assert "adapted, 2 listed words" in told
    after = crossfill.load(tmp_path / "listed")
    old, new = (tagger.tag([word, other], cell, samples=0).distribution(0) for tagger in (before, after))
    assert new[f"B-{kind}"] > old[f"B-{kind}"]
    (tmp_path / "a.bio").write_text(sentences(grid, cell, "train", 0, 3))
    code, told = run("adapt", tmp_path / "listed", tmp_path / "a.bio", "--cell", cell)
    assert "adapted, 3 sentences, 2 listed words (3 new" in told
    assert str(crossfill.load(tmp_path / "listed").adapted[cell]) == "adapted, 3 sentences, 2 listed words"
    once = crossfill.load(model)
    once.adapt(grid[cell][0].train[:3], cell, lexicon={word: kind, f"{other} {word}": [kind]})
    both = (t.tag([word, other], cell, samples=0).probabilities for t in (once, crossfill.load(tmp_path / "listed")))
    assert abs(next(both) - next(both)).max() < 1e-4
    (tmp_path / "wrong.tsv").write_text(f"{word}\tNONSENSE\n")
    code, told = run("adapt", model, "--cell", cell, "--lexicon", tmp_path / "wrong.tsv")
    assert code != 0
    assert "wrong.tsv:1: unknown label 'NONSENSE'" in told


def test_a_cell_that_would_lose_stays_as_it_was(made: tuple[Path, Path, Grid, Cell], tmp_path: Path) -> None:
    model, _, grid, _ = made
    cell = next(cell for cell in crossfill.load(model).seen if cell.task == "pos")
    labels = grid.inventory.task(cell.task).labels
    wrong = [
        [(word, labels[(3 * i + 5 * j) % len(labels)]) for j, word in enumerate(grid[cell][0].train[i].words)]
        for i in range(len(grid[cell][0].train))
    ]
    (tmp_path / "wrong.bio").write_text(bio(*wrong))
    given = ["adapt", model, tmp_path / "wrong.bio", "--cell", cell, "--out", tmp_path / "same"]
    code, told = run(*given)
    assert code == 0, told
    before, after = map(int, re.findall(r"in turn: (\d+) → (\d+)", told)[0])
    if after < before:
        assert f"{cell} would lose, and stays as it was" in told
        assert not crossfill.load(tmp_path / "same").adapted
    else:
        assert crossfill.load(tmp_path / "same").adapted


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("open", "got words without a label"),
        ("empty", "empty file"),
        ("label", "unknown label 'NONSENSE'"),
        ("test", "test data"),
        ("ending", "unknown ending"),
        ("undo", "expected an adapted cell to undo"),
        ("cell", "unknown cell"),
        ("out", "expected no folder of that name"),
    ],
)
def test_bad_input_leaves_the_model_as_it_was(
    made: tuple[Path, Path, Grid, Cell], tmp_path: Path, case: str, message: str
) -> None:
    model, data, grid, cell = made
    good = sentences(grid, cell, "train", 0, 2)
    texts = {
        "empty": "\n",
        "open": "a\t?\n\n",
        "label": good.replace(good.split()[1], "NONSENSE", 1),
        "test": sentences(grid, cell, "test", 0, 2),
    }
    file = tmp_path / ("a.pdf" if case == "ending" else "a.bio")
    file.write_text(texts.get(case, good))
    given: list[object] = [file, "--cell", "pos/xxx" if case == "cell" else cell, "--data", data]
    given += ["--unlabelled", "?"] if case == "open" else []
    if case == "undo":
        given = ["--undo", "--cell", cell]
    if case == "out":
        given += ["--out", data]
    before = contents(model)
    code, told = run("adapt", model, *given)
    assert code != 0
    assert message in told
    assert contents(model) == before


def test_a_language_with_nothing_but_text_is_added(made: tuple[Path, Path, Grid, Cell], tmp_path: Path) -> None:
    model, _, _, cell = made
    (tmp_path / "swe.txt").write_text("En mening. Och en till.\n", encoding="utf-8")
    before = contents(model)
    code, told = run(
        "add-language", model, "--language", "sv", "--text", tmp_path / "swe.txt", "--out", tmp_path / "new"
    )
    assert code == 0, told
    assert contents(model) == before
    code, told = run("add-language", tmp_path / "new", "--language", "nob", "--text", tmp_path / "swe.txt")
    assert code == 0, told
    tagger, old = crossfill.load(tmp_path / "new"), crossfill.load(model)
    assert tagger.model.inventory.newcomers == {"swe", "nob"}
    assert len(tagger.tag(["en", "mening"], f"{cell.task}/swe").labels) == 2
    expected = old.tag(["a", "b"], cell, samples=0).probabilities
    assert abs(tagger.tag(["a", "b"], cell, samples=0).probabilities - expected).max() < 1e-6
    code, told = run("add-language", tmp_path / "new", "--language", "sv", "--text", tmp_path / "swe.txt")
    assert code != 0
    assert "tags already" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "swe.txt"]


def test_what_changes_a_model_at_once_loses_nothing_of_each_other(made, tmp_path: Path) -> None:
    model, _, grid, cell = made
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "swe.txt").write_text("En mening. Och en till.\n", encoding="utf-8")
    commands = [["add-language", str(tmp_path / "model"), "--language", "sv", "--text", str(tmp_path / "swe.txt")]]
    for i in range(2):
        (tmp_path / f"{i}.bio").write_text(sentences(grid, cell, "train", 3 * i, 3 * i + 3))
        commands.append(["adapt", str(tmp_path / "model"), str(tmp_path / f"{i}.bio"), "--cell", str(cell)])
    processes = [subprocess.Popen([sys.executable, "-m", "crossfill", *command]) for command in commands]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    tagger = crossfill.load(tmp_path / "model")
    assert str(tagger.adapted[cell]) == "adapted, 6 sentences"
    assert tagger.model.inventory.newcomers == {"swe"}


def test_a_folder_that_is_no_model_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.bio").write_text("a\tO\n")
    code, message = run("adapt", tmp_path / "typo", tmp_path / "a.bio", "--cell", "ner/wol")
    assert code == 1
    assert "there is no folder" in message
    assert not (tmp_path / "typo").exists()
