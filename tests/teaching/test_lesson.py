"""What a journal amounts to: replaced, withdrawn and brought back."""

from crossfill.grid.sentence import Sentence
from crossfill.teaching.journal import Accepted, Estimated, Learned, Returned, Withdrawn
from crossfill.teaching.lesson import Lesson


def accepted(name: str, *words: str, replaces: str | None = None) -> Accepted:
    return Accepted(name, "", "", Sentence(words, ("X",) * len(words)), replaces)


def ids(lesson: Lesson) -> list[str]:
    return [entry.id for entry in lesson.in_force]


def test_a_later_entry_takes_the_place_of_an_earlier_one():
    lesson = Lesson()
    lesson.apply([accepted("1", "ab", "c"), accepted("2", "d")])
    assert ids(lesson) == ["1", "2"]
    lesson.apply([accepted("3", "a", "bc")])  # the same text, cut otherwise
    assert ids(lesson) == ["2", "3"]
    lesson.apply([accepted("4", "e", replaces="2")])
    assert ids(lesson) == ["3", "4"]
    lesson.apply([Withdrawn("3", "", "")])
    assert ids(lesson) == ["4"]
    assert set(lesson.accepted) == {"1", "2", "3", "4"}


def test_states_know_their_sentences_and_one_can_go_to_any_of_them():
    lesson = Lesson()
    assert not lesson.changed
    lesson.apply([accepted("1", "a"), Learned(1, ""), accepted("2", "b"), accepted("3", "c")])
    assert (lesson.unlearned, lesson.current, lesson.changed) == (2, 1, True)
    lesson.apply([Learned(2, ""), Estimated(1, 0.5), Withdrawn("1", "", ""), accepted("4", "d")])
    assert [state.ids for state in lesson.states] == [(), ("1",), ("1", "2", "3")]
    assert lesson.states[1].estimate == Estimated(1, 0.5)
    assert (lesson.unlearned, lesson.changed) == (1, True)
    lesson.apply([Returned(1, "", "")])
    assert (ids(lesson), lesson.unlearned, lesson.changed, lesson.current) == (["1"], 0, False, 1)
    lesson.apply([Returned(2, "", ""), accepted("5", "e")])
    assert (ids(lesson), lesson.unlearned) == (["1", "2", "3", "5"], 1)
    lesson.apply([Returned(0, "", "")])
    assert ids(lesson) == []
