"""Teaching a cell: it learns what was accepted and nothing else, while it is used, and again after a restart."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.tagger.tagger import Tagger, load
from crossfill.teaching.journal import Journal, JournalState
from crossfill.teaching.service import Teacher

Begin = Callable[..., Teacher]


def beliefs(tagger: Tagger, cell: Cell, corpus: Corpus) -> np.ndarray:
    return np.concatenate([t.probabilities for t in tagger.tag_many(corpus, cell, samples=0)])


def test_it_learns_exactly_what_adapt_makes_of_the_active_sentences(
    teach: Begin, tagger: Tagger, taught: tuple[Cell, Corpus]
):
    cell, corpus = taught
    teacher = teach()
    made = teacher.accept(cell, list(corpus[:6]), "anna")
    assert teacher.version(cell) == "0"
    teacher.withdraw(cell, [made[2].id], "anna")
    swapped = replace(corpus[0], labels=tuple(reversed(corpus[0].labels)))
    teacher.accept(str(cell), [swapped], "ben")
    assert teacher.learn(cell)
    teacher.wait(cell, 60)
    tagger.adapt([corpus[1], *corpus[3:6], swapped], cell)
    np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), beliefs(tagger, cell, corpus))
    assert teacher.version(cell) == "1"
    assert not teacher.learn(cell)  # nothing new
    found = teacher.progress(cell)
    assert (found["sentences"], found["unlearned"], found["busy"], found["problem"]) == (5, 0, False, None)
    assert found["estimate"] is not None
    assert found["states"][1]["score"] == found["estimate"].score


def test_a_word_list_is_learned_replaced_removed_and_returned_to(
    folder: Path, tmp_path: Path, tagger: Tagger, taught: tuple[Cell, Corpus]
):
    (cell, corpus), model = taught, shutil.copytree(folder, tmp_path / "model")
    listed = {word: label for s in corpus[6:9] for word, label in zip(s.words, s.labels, strict=True)}
    teacher = Teacher(load(model), tmp_path / "taught", 0, model)
    loaded = beliefs(tagger, cell, corpus)
    teacher.list_words(cell, "".join(f"{word}\t{label}\n" for word, label in listed.items()), "anna")
    assert teacher.learn(cell)
    teacher.wait(cell, 60)
    tagger.adapt((), cell, listed)
    alone = beliefs(tagger, cell, corpus)
    np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), alone)
    assert (teacher.progress(cell)["listed"], teacher.progress(cell)["estimate"]) == (len(listed), None)
    teacher.accept(cell, list(corpus[:3]))
    teacher.learn(cell)
    teacher.wait(cell, 60)
    tagger.adapt(corpus[:3], cell)
    np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), both := beliefs(tagger, cell, corpus))
    teacher.save_model(cell)
    with pytest.raises(DataError, match=r"the word list:2: unknown label 'NUON'"):
        teacher.list_words(cell, f"a\t{corpus.labels[0]}\nb\tNUON\n")
    teacher.close()
    again = Teacher(
        load(model), tmp_path / "taught", 0, model
    )  # the model folder has the list, too, and the journal's takes its place
    again.wait(cell, 60)
    np.testing.assert_array_equal(beliefs(again.tagger, cell, corpus), both)
    again.list_words(cell, {})
    again.learn(cell)
    again.wait(cell, 60)
    tagger.forget(cell)
    tagger.adapt(corpus[:3], cell)
    np.testing.assert_array_equal(beliefs(again.tagger, cell, corpus), beliefs(tagger, cell, corpus))
    again.go_back(cell, 1)
    again.wait(cell, 60)
    np.testing.assert_array_equal(beliefs(again.tagger, cell, corpus), alone)
    assert again.progress(cell)["listed"] == len(listed)
    again.go_back(cell, 0)
    again.wait(cell, 60)
    assert again.progress(cell)["listed"] is None
    again.close()
    assert loaded.shape == alone.shape
    assert not np.array_equal(loaded, alone)


def test_it_learns_by_itself_every_few_sentences(teach: Begin, taught: tuple[Cell, Corpus]):
    cell, corpus = taught
    teacher = teach(every=3)
    for sentence in corpus[:2]:
        teacher.accept(cell, [sentence])
    assert not teacher.busy(cell)
    teacher.accept(cell, [corpus[2]])
    teacher.wait(cell, 60)
    assert teacher.version(cell) == "1"
    teacher.accept(cell, list(corpus[3:9]))  # two times as many: once is enough
    teacher.wait(cell, 60)
    assert (teacher.version(cell), teacher.progress(cell)["unlearned"]) == ("2", 0)


def test_a_restart_takes_up_where_it_was(teach: Begin, taught: tuple[Cell, Corpus]):
    cell, corpus = taught
    first = teach()
    for part in (corpus[:3], corpus[3:8]):
        first.accept(cell, list(part))
        first.learn(cell)
        first.wait(cell, 60)
    first.accept(cell, [corpus[8]])
    second = teach()
    second.wait(cell, 60)
    assert second.version(cell) == "2"
    assert second.active(cell) == first.active(cell)
    assert second.progress(cell) == first.progress(cell)
    np.testing.assert_array_equal(beliefs(second.tagger, cell, corpus), beliefs(first.tagger, cell, corpus))


def test_one_goes_back_to_a_state_and_forward_again(teach: Begin, folder: Path, taught: tuple[Cell, Corpus]):
    cell, corpus = taught
    teacher, seen = teach(), []
    for part in (corpus[:3], corpus[3:8]):
        teacher.accept(cell, list(part))
        teacher.learn(cell)
        teacher.wait(cell, 60)
        seen.append(beliefs(teacher.tagger, cell, corpus))
    for number in (1, 2):
        teacher.go_back(cell, number)
        teacher.wait(cell, 60)
        assert teacher.version(cell) == str(number)
        np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), seen[number - 1])
    teacher.go_back(cell, 0)
    teacher.wait(cell, 60)
    assert (teacher.version(cell), teacher.active(cell)) == ("0", [])
    np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), beliefs(load(folder), cell, corpus))
    teacher.accept(cell, [corpus[9]])
    assert teacher.learn(cell)
    teacher.wait(cell, 60)
    assert (teacher.version(cell), len(teacher.active(cell))) == ("3", 1)
    with pytest.raises(DataError, match="expected a state from 0 to 3, got 4"):
        teacher.go_back(cell, 4)


def test_the_model_folder_changes_only_when_asked_and_then_a_sentence_can_still_be_taken_back(
    folder: Path, tmp_path: Path, taught: tuple[Cell, Corpus]
):
    cell, corpus = taught
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    teacher = Teacher(load(model), tmp_path / "taught", 0, model)
    made = teacher.accept(cell, list(corpus[:4]))
    with pytest.raises(DataError, match="expected a cell that has learned to save, got none"):
        teacher.save_model(cell)
    teacher.learn(cell)
    teacher.wait(cell, 60)
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    path = teacher.save_model(cell)
    assert {p for p in model.rglob("*") if p.is_file()} - set(before) == {path}
    assert len(load(model).adapted[cell].examples) == 4
    teacher.close()
    again = Teacher(load(model), tmp_path / "taught", 0, model)
    again.withdraw(cell, [made[1].id])
    again.learn(cell)
    again.wait(cell, 60)
    assert len(again.tagger.adapted[cell].examples) == 3
    again.close()


def test_many_threads_accept_undo_and_tag_while_it_learns(teach: Begin, tagger: Tagger, taught: tuple[Cell, Corpus]):
    cell, corpus = taught
    teacher, failures = teach(every=2), []

    def work(own: list[Sentence]) -> None:
        try:
            for i, sentence in enumerate(own):
                (made,) = teacher.accept(cell, [sentence])
                for _ in range(2 if i % 3 == 0 else 0):  # taken back, and once more
                    teacher.withdraw(cell, [made.id])
                if i % 3 == 1:
                    teacher.learn(cell)
                with teacher.encoding:
                    teacher.tagger.tag(sentence, cell, samples=3)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(list(corpus[i::4]),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    teacher.wait(cell, 60)
    assert not failures
    journal, state = Journal(teacher.folder, cell), JournalState()
    state.apply(entries := journal.read())
    assert sum(type(entry).__name__ == "Accepted" for entry in entries) == len(corpus)
    assert list(state.by_text.values()) == teacher.active(cell)
    teacher.learn(cell)
    teacher.wait(cell, 60)
    assert not teacher.progress(cell)["changed"]
    tagger.adapt([entry.sentence for entry in teacher.active(cell)], cell)
    np.testing.assert_array_equal(beliefs(teacher.tagger, cell, corpus), beliefs(tagger, cell, corpus))


def test_what_is_taken_back_while_learning_ends_is_not_forgotten(teach: Begin, taught, monkeypatch):
    cell, corpus = taught
    teacher, (ended, go_on) = teach(), (threading.Event(), threading.Event())
    finish = Future.set_result

    def late(self: Future, result: object) -> None:
        if threading.current_thread().name.startswith("learning"):
            ended.set()
            go_on.wait(60)
        finish(self, result)

    monkeypatch.setattr(Future, "set_result", late)
    made = teacher.accept(cell, list(corpus[:3]))
    teacher.learn(cell)
    assert ended.wait(60)  # all is learned, and nobody has been told yet
    teacher.withdraw(cell, [made[1].id])
    teacher.learn(cell)
    go_on.set()
    teacher.wait(cell, 60)
    assert (teacher.version(cell), teacher.progress(cell)["changed"]) == ("2", False)
    assert len(teacher.tagger.adapted[cell].examples) == 2


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (Sentence(()), "expected a sentence with words"),
        (Sentence(("a", "b")), "expected 2 labels, one per word, got 0"),
        (Sentence(("a",), ("NONSENSE",)), "NONSENSE"),
        (Sentence(("a\tb",), ("NOUN",)), "expected words without tabs"),
        (Sentence((" ",), ("NOUN",)), "expected words without tabs"),
        (Sentence(("a\ud800",), ("NOUN",)), "expected words without tabs"),
    ],
)
def test_what_cannot_be_learned_is_refused_and_nothing_is_written(teach: Begin, taught, sentence, problem):
    cell, _ = taught
    teacher = teach()
    with pytest.raises(DataError, match=problem):
        teacher.accept(cell, [sentence])
    with pytest.raises(DataError, match="expected a name of at most 80"):
        teacher.accept(cell, [], "a\nb")
    assert list(teacher.folder.iterdir()) == []


def test_spans_have_to_begin(teach: Begin, taught):
    teacher = teach()
    cell = next(cell for cell in teacher.tagger.cells if cell.task == "ner")
    label = next(label for label in teacher.tagger.model.inventory.task("ner").labels if label.startswith("I-"))
    with pytest.raises(DataError, match="at the start of a span"):
        teacher.accept(cell, [Sentence(("a", "b"), ("O", label))])
    teacher.accept(cell, [Sentence(("a", "b"), (f"B{label[1:]}", label))])
    assert len(teacher.active(cell)) == 1
    with pytest.raises(DataError, match="expected the id of an accepted sentence"):
        teacher.withdraw(cell, ["nothing"])
    with pytest.raises(DataError, match="expected the id of an accepted sentence"):
        teacher.accept(cell, [Sentence(("a",), ("O",))], replaces="nothing")
