"""What a journal amounts to: replaced, withdrawn and brought back."""

from crossfill.grid.sentence import Sentence
from crossfill.teaching.estimate import Score
from crossfill.teaching.journal import Accepted, Estimated, JournalState, Learned, Returned, Withdrawn

SCORE = Score(0.5, None, None)


def accepted(name: str, *words: str, replaces: str | None = None) -> Accepted:
    return Accepted(name, "", "", Sentence(words, ("X",) * len(words)), replaces)


def ids(state: JournalState) -> list[str]:
    return list(state.active_ids)


def test_a_later_entry_takes_the_place_of_an_earlier_one():
    state = JournalState()
    state.apply([accepted("1", "ab", "c"), accepted("2", "d")])
    assert ids(state) == ["1", "2"]
    state.apply([accepted("3", "a", "bc")])  # the same text, cut otherwise
    assert ids(state) == ["2", "3"]
    state.apply([accepted("4", "e", replaces="2")])
    assert ids(state) == ["3", "4"]
    state.apply([Withdrawn("3", "", "")])
    assert ids(state) == ["4"]
    assert set(state.accepted) == {"1", "2", "3", "4"}


def test_states_know_their_sentences_and_one_can_go_to_any_of_them():
    state = JournalState()
    assert not state.changed
    state.apply([accepted("1", "a"), Learned(1, ""), accepted("2", "b"), accepted("3", "c")])
    assert (state.unlearned, state.current, state.changed) == (2, 1, True)
    state.apply([Learned(2, ""), Estimated(1, SCORE), Withdrawn("1", "", ""), accepted("4", "d")])
    assert [each.ids for each in state.states] == [(), ("1",), ("1", "2", "3")]
    assert state.states[1].score == SCORE
    assert (state.unlearned, state.changed) == (1, True)
    state.apply([Returned(1, "", "")])
    assert (ids(state), state.unlearned, state.changed, state.current) == (["1"], 0, False, 1)
    state.apply([Returned(2, "", ""), accepted("5", "e")])
    assert (ids(state), state.unlearned) == (["1", "2", "3", "5"], 1)
    state.apply([Returned(0, "", "")])
    assert ids(state) == []
