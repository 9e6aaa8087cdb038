"""Agreement between people: against Krippendorff's worked examples, a matrix of coincidences, and spans by hand."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED, Sentence
from crossfill.measures.metrics import krippendorff_alpha, pairable_values
from crossfill.teaching.agreement import Agreement, agreement_of, agreements
from crossfill.teaching.journal import Accepted, Entry, Journal, Withdrawn
from tests.data.folders import bio, write

NER, POS = Cell("ner", "wol"), Cell("pos", "wol")


def counts_of(rows: list[str]) -> np.ndarray:
    """How often each unit (a column) has each value; a dot is a missing one."""
    values = sorted({value for row in rows for value in row} - {"."})
    return np.array([[sum(row[u] == value for row in rows) for value in values] for u in range(len(rows[0]))])


def by_coincidences(counts: np.ndarray) -> float:
    """α from the matrix o of coincidences: each ordered pair of values of a unit, over m − 1."""
    o = np.zeros((counts.shape[1],) * 2)
    for unit in counts:
        values = [c for c, n in enumerate(unit) for _ in range(n)]
        for a, b in permutations(range(len(values)), 2):
            o[values[a], values[b]] += 1 / (len(values) - 1)
    totals, n = o.sum(1), o.sum()
    observed = (n - np.trace(o)) / n
    return 1 - observed / (sum(totals[c] * totals[k] for c, k in permutations(range(len(o)), 2)) / (n * (n - 1)))


@pytest.mark.parametrize(
    ("rows", "alpha"),
    [  # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections A, B and C
        (["0100000010", "1110010000"], 0.095),
        (["aabbdcccedda", "babbbccceddd"], 0.692),
        (["123321412...", "1233224125.3", ".3332342251.", "12332441251."], 0.743),
    ],
)
def test_published_examples(rows: list[str], alpha: float):
    counts = counts_of(rows)
    assert float(krippendorff_alpha(pairable_values(counts).sum(0))) == pytest.approx(alpha, abs=5e-4)
    assert by_coincidences(counts) == pytest.approx(alpha, abs=5e-4)


def test_alpha_is_that_of_the_matrix_of_coincidences():
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 3, size=(rng.integers(5, 20), 4))
        assert float(krippendorff_alpha(pairable_values(counts).sum(0))) == pytest.approx(by_coincidences(counts))
    alike = pairable_values(np.array([[2, 0], [3, 0], [0, 1]]))  # a lone value says nothing
    assert np.isnan(krippendorff_alpha(alike.sum(0)))


def sentence(text: str) -> Sentence:
    return Sentence(*map(tuple, zip(*(word.split("/") for word in text.split()), strict=True)))


def test_spans_of_words_that_people_cut_differently():
    first = sentence("Saint-Louis/B-LOC la/O Awa/B-PER Sow/I-PER dëkk/O")
    second = sentence("Saint/B-LOC -/I-LOC Louis/I-LOC la/O Awa/B-PER Sow/O dëkk/O")
    found = agreement_of(
        NER, [{"anna": first, "ben": second}, {"anna": sentence("Dakar/B-LOC"), "ben": sentence("Dakar/B-LOC")}]
    )
    (pair,) = found.pairs
    assert (found.sentences, found.words, pair.sentences) == (2, 8, 2)
    assert pair.score.value == pytest.approx(2 * 2 / (3 + 3))  # Saint-Louis and Dakar, not Awa Sow
    assert pair.score.low <= pair.score.value <= pair.score.high
    (difference,) = found.differences
    assert difference.labels == {"anna": "I-PER", "ben": "O"}
    assert difference.sentence.words[difference.word] == "Sow"
    assert difference.sentence.labels == ("B-LOC", "I-LOC", "I-LOC", "O", "B-PER", UNLABELLED, "O")


def test_three_names_and_open_words():
    versions = [
        {"anna": sentence("a/X b/Y c/X"), "ben": sentence("a/X b/X c/X"), "cem": sentence("a/Y b/X c/X")},
        {"anna": sentence("d/X"), "ben": Sentence(("d",), (UNLABELLED,))},
        {"ben": sentence("e/X f/Y"), "cem": sentence("e/X f/Y")},
    ]
    found = agreement_of(POS, versions)
    counts = np.array([[2, 1], [2, 1], [3, 0], [1, 0], [2, 0], [0, 2]])
    assert found.alpha.value == pytest.approx(by_coincidences(counts))
    assert {(p.first, p.second): (p.sentences, p.score.value) for p in found.pairs} == {
        ("anna", "ben"): (1, pytest.approx(2 / 3)), ("anna", "cem"): (1, pytest.approx(1 / 3)),
        ("ben", "cem"): (2, pytest.approx(4 / 5)),
    }  # fmt: skip
    assert [difference.sentence.words[difference.word] for difference in found.differences] == ["a", "b"]


def test_the_interval_is_that_of_a_naive_bootstrap():
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=(2, 60, 5))
    labels[1] = np.where(rng.random((60, 5)) < 0.7, labels[0], labels[1])
    sentences = [
        [Sentence(tuple(f"w{i}x{j}" for j in range(5)), tuple("XY"[k] for k in row)) for i, row in enumerate(of)]
        for of in labels
    ]
    found = agreement_of(POS, [{"anna": a, "ben": b} for a, b in zip(*sentences, strict=True)])
    draws = []
    for _ in range(400):
        chosen = rng.integers(60, size=60)
        counts = np.stack([(labels[:, chosen] == k).sum(0).ravel() for k in (0, 1)], axis=1)
        draws.append(by_coincidences(counts))
    assert (found.alpha.low, found.alpha.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.03)


def journal(folder: Path, *entries: Entry) -> Path:
    folder.mkdir(exist_ok=True)
    Journal(folder, NER).append(*entries)
    return folder


def accepted(who: str, text: str, name: str = "", replaces: str | None = None) -> Accepted:
    return Accepted(name or f"{who}-{text[:3]}", who, "2026", sentence(text), replaces)


def test_of_a_journal_count_the_last_versions_that_were_not_taken_back(tmp_path: Path):
    folder = journal(
        tmp_path / "taught",
        accepted("anna", "Dakar/O", "1"),
        accepted("anna", "Dakar/B-LOC", "2", "1"),
        accepted("ben", "Dakar/B-LOC"),
        accepted("ben", "Awa/B-PER dem/O"),
        accepted("anna", "Awa/O dem/O", "3"),
        accepted("", "Ndar/B-LOC"),
        accepted("cem", "Ndar/O", "4"),
        Withdrawn("4", "cem", "2026"),
    )
    (found,) = agreements([folder])
    assert isinstance(found, Agreement)
    assert (found.cell, found.names, found.sentences) == (NER, ("anna", "ben"), 2)
    assert [difference.labels for difference in found.differences] == [{"ben": "B-PER", "anna": "O"}]
    other = journal(tmp_path / "dan", accepted("", "Ndar/O"))
    (found,) = agreements([folder, other])
    assert found.names == ("anna", "ben", "dan", "taught")  # who gives no name has that of the folder


def test_data_folders_have_a_person_each(tmp_path: Path):
    texts = {
        name: [[("Dakar", "B-LOC"), ("la", "O")], [("Awa", last), ("dem", "O")]]
        for name, last in (("a", "O"), ("b", "B-PER"))
    }
    for name, tagged in texts.items():
        write(tmp_path / name, {"ner/wol/train.bio": bio(*tagged)})
    (found,) = agreements([tmp_path / "a", tmp_path / "b"])
    assert (found.names, found.sentences, len(found.differences)) == (("a", "b"), 2, 1)
    with pytest.raises(DataError, match=r"expected sentences that two people have labelled, got none, of a; tick"):
        agreements([tmp_path / "a"])
    taught = journal(tmp_path / "taught", accepted("anna", "Dakar/B-LOC"))
    (taught / "ner-wol.bio").write_text("# accepted\tnonsense\t0\n")
    with pytest.raises(DataError, match=r"ner-wol\.bio:1: expected an entry of a journal"):
        agreements([taught])
