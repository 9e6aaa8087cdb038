"""Scores against naive loops and against seqeval, nervaluate and scikit-learn, on random label sequences."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import f1_score

from crossfill.grid.task import Task, TaskKind
from crossfill.measures.metrics import Labelling, accuracy, macro_f1, published_f1, score, span_f1, token_f1

LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
TAGS = ("ADJ", "NOUN", "VERB", "X")
NER, POS, CASE = Task("ner", LABELS), Task("pos", TAGS), Task("feats:Case", ("Acc", "Nom", "_"))


def naive_spans(labels: list[str]) -> set[tuple[int, int, str]]:
    """Strict IOB2: B-X, then all I-X that follow without a gap; an I-X on its own is nothing."""
    found = set()
    i = 0
    while i < len(labels):
        if labels[i].startswith("B-"):
            end = i + 1
            while end < len(labels) and labels[end] == "I-" + labels[i][2:]:
                end += 1
            found.add((i, end, labels[i][2:]))
            i = end
        else:
            i += 1
    return found


def sentences(ids: np.ndarray, lengths: np.ndarray, labels: tuple[str, ...] = LABELS) -> list[list[str]]:
    return [[labels[i] for i in part] for part in np.split(ids, np.cumsum(lengths)[:-1])]


def random_pairs(n: int, n_labels: int = len(LABELS), shortest: int = 0):
    """Gold and predicted labels of a few sentences: half of the words agree, any sequence may occur."""
    rng = np.random.default_rng(n_labels)
    for _ in range(n):
        lengths = rng.integers(shortest, 8, size=rng.integers(1, 6))
        gold, other = rng.integers(n_labels, size=(2, lengths.sum()))
        yield gold, np.where(rng.random(len(gold)) < 0.5, gold, other), lengths


@pytest.mark.parametrize("task", [NER, POS, CASE])
def test_words_without_a_gold_label_are_left_out_and_end_sentences(task: Task):
    for gold, predicted, lengths in random_pairs(100, len(task.labels), shortest=1):
        known = np.random.default_rng(len(gold)).random(len(gold)) < 0.7
        ends = np.zeros(len(gold), dtype=bool)
        ends[np.cumsum(lengths) - 1] = True
        pieces, size = [], 0
        for is_known, is_end in zip(known, ends, strict=True):
            size += is_known
            if size and (is_end or not is_known):
                pieces.append(size)
                size = 0
        some = Labelling(np.where(known, gold, -1), predicted, task, lengths)
        cut = Labelling(gold[known], predicted[known], task, np.array(pieces, dtype=np.int64))
        assert some.scores() == pytest.approx(cut.scores())
        assert some.by_label() == cut.by_label()
        assert some.counts().shape == (len(lengths), 3)
        np.testing.assert_array_equal(some.counts().sum(0), cut.counts().sum(0))


def test_span_f1_equals_a_naive_loop_and_so_do_counts_and_types():
    for gold, predicted, lengths in random_pairs(200):
        pairs = zip(sentences(gold, lengths), sentences(predicted, lengths), strict=True)
        found = [(naive_spans(one), naive_spans(two)) for one, two in pairs]
        counts = np.array([(len(one & two), len(one), len(two)) for one, two in found])
        hits, n_gold, n_predicted = counts.sum(0)
        expected = 2 * hits / (n_gold + n_predicted) if n_gold + n_predicted else 0.0
        assert span_f1(gold, predicted, LABELS, lengths) == pytest.approx(expected)
        labelling = Labelling(gold, predicted, NER, lengths)
        np.testing.assert_array_equal(labelling.counts(), counts)
        by_type = {}
        for kind in ("LOC", "PER"):
            sides = [[{span for span in side if span[2] == kind} for side in pair] for pair in found]
            total = sum(len(one) + len(two) for one, two in sides)
            if total:
                by_type[kind] = 2 * sum(len(one & two) for one, two in sides) / total
        assert labelling.by_label() == pytest.approx(by_type)


def test_span_f1_is_seqevals_strict_and_default():
    from seqeval.metrics import f1_score as seqeval_f1
    from seqeval.scheme import IOB2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # undefined ratios where there is no span
        for gold, predicted, lengths in random_pairs(300, shortest=1):
            one, two = sentences(gold, lengths), sentences(predicted, lengths)
            strict = seqeval_f1(one, two, mode="strict", scheme=IOB2, zero_division=0)
            assert span_f1(gold, predicted, LABELS, lengths) == pytest.approx(float(strict))
            default = seqeval_f1(one, two, zero_division=0)
            assert span_f1(gold, predicted, LABELS, lengths, lenient=True) == pytest.approx(float(default))


def test_span_f1_is_nervaluates_strict_on_well_formed_sequences():
    from nervaluate.evaluator import Evaluator

    def mended(ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """An I- that continues nothing becomes B-."""
        made, starts = ids.copy(), set(np.cumsum(lengths) - lengths)
        for i, label in enumerate(made):
            before = LABELS[made[i - 1]] if i not in starts else "O"
            if LABELS[label].startswith("I-") and before[2:] != LABELS[label][2:]:
                made[i] = LABELS.index("B-" + LABELS[label][2:])
        return made

    for gold, predicted, lengths in random_pairs(100, shortest=1):
        one, two = mended(gold, lengths), mended(predicted, lengths)
        sides = [sentences(side, lengths) for side in (one, two)]
        found = Evaluator(*sides, tags=["LOC", "PER"], loader="list").evaluate()["overall"]["strict"]
        ours = Labelling(one, two, NER, lengths).counts().sum(0)
        assert (found.correct, found.possible, found.actual) == tuple(ours.tolist())
        assert span_f1(one, two, LABELS, lengths) == pytest.approx(found.f1, abs=1e-9)


def test_tag_scores_are_scikit_learns():
    for gold, predicted, lengths in random_pairs(100, n_labels=4, shortest=1):
        labelling = Labelling(gold, predicted, POS, lengths)
        kept = sorted(set(gold) | set(predicted))
        assert macro_f1(gold, predicted) == pytest.approx(f1_score(gold, predicted, average="macro"))
        each = f1_score(gold, predicted, average=None, labels=kept)
        assert labelling.by_label() == pytest.approx({TAGS[k]: value for k, value in zip(kept, each, strict=True)})
        hits, n_gold, n_predicted = labelling.counts().sum(0)
        assert 2 * hits / (n_gold + n_predicted) == pytest.approx(accuracy(gold, predicted))
        assert (labelling.counts()[:, 1] == lengths).all()


def test_token_and_published_f1_are_scikit_learns_over_fewer_labels():
    for gold, predicted, _ in random_pairs(100, shortest=1):
        kept = [LABELS.index(label) for label in sorted(LABELS)[1:]]  # as the script has it: all but the first, O stays
        expected = f1_score(gold, predicted, labels=kept, average="micro", zero_division=0)
        assert published_f1(gold, predicted, LABELS) == pytest.approx(expected)
        without_o = f1_score(gold, predicted, labels=range(4), average="micro", zero_division=0)
        assert token_f1(gold, predicted, null=4) == pytest.approx(without_o)


def test_counts_of_features_leave_the_absent_value_out():
    lengths = np.array([2, 3])
    gold, predicted = np.array([0, 2, 1, 2, 1]), np.array([0, 1, 0, 2, 1])
    labelling = Labelling(gold, predicted, CASE, lengths)
    assert labelling.counts().tolist() == [[1, 1, 2], [1, 2, 2]]
    assert labelling.scores()["score"] == labelling.scores()["token_f1"] == pytest.approx(2 * 2 / (3 + 4))


def test_labels_choose_the_metrics():
    assert (NER.kind, NER.metric, NER.absent) == (TaskKind.SPANS, "span_f1", "O")
    assert (POS.kind, POS.metric, POS.absent) == (TaskKind.TAGS, "accuracy", None)
    assert (CASE.kind, CASE.metric, CASE.absent) == (TaskKind.VALUES, "token_f1", "_")
    gold, predicted, lengths = np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([3])
    assert score(gold, predicted, POS, lengths) == accuracy(gold, predicted) == pytest.approx(2 / 3)
    names = {task.name: set(Labelling(gold, predicted, task, lengths).scores()) for task in (NER, POS)}
    assert names["ner"] == {"score", "span_f1", "lenient_f1", "token_f1", "published_f1"}
    assert names["pos"] == {"score", "accuracy", "macro_f1"}


def test_no_words_score_zero():
    none = np.zeros(0, dtype=np.int64)
    for task in (NER, POS, CASE):
        labelling = Labelling(none, none, task, np.zeros(2, dtype=np.int64))
        assert set(labelling.scores().values()) == {0.0}
        assert labelling.counts().tolist() == [[0, 0, 0], [0, 0, 0]]
        assert labelling.by_label() == {}
