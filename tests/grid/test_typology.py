"""Typological vectors: similarity by hand, missing languages, tables, and lang2vec's own files."""

import math
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.grid import typology
from crossfill.grid.typology import URIEL, cosine, load_typology, place


def write(folder: Path, **tables: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.tsv").write_text(text)
    return folder


def test_similarity_is_the_cosine_of_blocks_of_unit_norm(tmp_path: Path):
    folder = write(
        tmp_path,
        fam="language\ta\tb\nxxx\t3\t0\nyyy\t2\t2\niso\t0\t0\n",
        geo="language\tc\td\te\nxxx\t1\t1\t1\nyyy\t1\t0\t0\niso\t0\t0\t5\n",
        extra="language\tf\nxxx\t1\nyyy\t-1\n",
    )
    found = load_typology(folder)
    x, y = np.array([3.0, 0.0]) / 3, np.array([2.0, 2.0]) / math.sqrt(8)
    long_x, long_y = np.concatenate([x, np.ones(3) / math.sqrt(3)]), np.concatenate([y, [1, 0, 0]])
    expected = long_x @ long_y / (np.linalg.norm(long_x) * np.linalg.norm(long_y))
    assert found.similarity("xxx", "yyy") == pytest.approx(expected) == pytest.approx(found.similarity("yyy", "xxx"))
    assert found.similarity("xxx", "yyy", ("fam",)) == pytest.approx(1 / math.sqrt(2))
    assert found.similarity("xxx", "iso") == pytest.approx((0 + 1 / math.sqrt(3)) / 2)  # an isolate: of no family
    assert math.isnan(found.similarity("xxx", "iso", ("fam",)))
    assert math.isnan(found.similarity("xxx", "zzz"))
    assert found.similarity("xxx", "yyy", ("extra",)) == pytest.approx(-1)
    with pytest.raises(DataError, match="expected typological features syntax_knn, got extra, fam, geo"):
        found.similarity("xxx", "yyy", ("syntax_knn",))


def test_a_script_has_the_vectors_of_its_language_and_a_name_of_ones_own_has_none(tmp_path: Path):
    folder = write(tmp_path, fam="language\ta\tb\nsrp\t3\t0\nwol\t2\t2\nwol-Arab\t0\t1\n")
    found = load_typology(folder)
    assert found.similarity("srp-Latn", "wol") == found.similarity("srp", "wol") == pytest.approx(1 / math.sqrt(2))
    assert found.similarity("srp-Latn", "srp-Cyrl") == pytest.approx(1)
    assert found.similarity("srp", "wol-Arab") == pytest.approx(0)  # its own row comes first
    assert math.isnan(found.similarity("srp-dialect", "srp"))
    assert found.without(["srp-Latn", "my-dialect", "stan1295"], ["fam"]) == ["my-dialect", "stan1295"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header and a row"),
        ("language\ta\nxxx\tone\n", r"fam.tsv:2: expected a language once, and 1 finite numbers"),
        ("language\ta\nxxx\t1\n\nyyy\t1\t2\n", r"fam.tsv:4: expected .* separated by tabs; got 'yyy\t1\t2'"),
        ("language\ta\nxxx\t1\nxxx\t2\n", r"fam.tsv:3: expected a language once"),
        ("language\ta\nxxx\tnan\n", r"fam.tsv:2: expected .* finite numbers"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message):
        load_typology(write(tmp_path, fam=text))


def test_missing_vectors_name_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(DataError, match="expected typological vectors as tables"):
        load_typology(tmp_path)

    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(typology, "distribution", absent)
    with pytest.raises(DataError, match=r"install crossfill\[typology\]"):
        typology._packaged.__wrapped__()


def test_the_package_knows_kin():
    found = load_typology()
    assert set(URIEL) < set(found.blocks)
    assert len(found.blocks["fam"].rows) > 7000
    for language, kin, stranger in (("fin", "est", "vie"), ("tur", "uig", "wol"), ("mlt", "ara", "kor")):
        for features in ((), ("fam",)):
            assert found.similarity(language, kin, features) > found.similarity(language, stranger, features)
    assert math.isnan(found.similarity("eus", "fin", ("fam",)))


def test_places_have_the_similarities_as_inner_products():
    near = {frozenset("ab"): 0.9, frozenset("ac"): 0.5, frozenset("bc"): 0.6}
    points = place("abc", [lambda a, b: near[frozenset((a, b))]], size=4, power=2.0)
    gram = {(a, b): float(points[a] @ points[b]) for a in "abc" for b in "abc"}
    assert gram["a", "b"] == pytest.approx(0.8**2, abs=1e-6)  # (0.9 − 0.5) / (1 − 0.5), squared
    assert gram["a", "c"] == pytest.approx(0.0, abs=1e-6)
    assert gram["b", "c"] == pytest.approx(0.2**2, abs=1e-6)
    assert [gram[a, a] for a in "abc"] == pytest.approx([1.0] * 3, abs=1e-6)
    assert points["a"].shape == (4,)


def test_several_similarities_count_alike_and_an_unknown_language_is_unlike_all():
    first = {frozenset("ab"): 1.0, frozenset("ac"): 0.0, frozenset("bc"): 0.0}

    def second(a: str, b: str) -> float:
        return math.nan if "c" in (a, b) else 0.0 if "x" in (a, b) else 0.5

    points = place("abc", [lambda a, b: first[frozenset((a, b))], second], size=3, power=1.0)
    assert float(points["a"] @ points["b"]) == pytest.approx((1.0 + 0.0) / 2, abs=1e-6)
    assert float(points["c"] @ points["a"]) == pytest.approx(0.0, abs=1e-6)


def test_the_leading_components_are_the_best_approximation():
    """Against numpy's own decomposition: size 2 leaves the sum of the squares of the other eigenvalues."""
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    points = place("abcdef", [lambda a, b: cosine(*(vectors[ord(x) - 97] for x in (a, b)))], size=2, power=1.0)
    whole = place("abcdef", [lambda a, b: cosine(*(vectors[ord(x) - 97] for x in (a, b)))], size=6, power=1.0)
    kernel, near = (np.array([[p[a] @ p[b] for b in "abcdef"] for a in "abcdef"]) for p in (whole, points))
    values = np.sort(np.linalg.eigvalsh(kernel))[::-1]
    assert ((kernel - near) ** 2).sum() == pytest.approx((values[2:] ** 2).sum(), rel=1e-4)


def test_an_isolate_is_not_the_nearest_of_everyone():
    found = load_typology()
    others = ("fin", "heb", "tur", "vie", "kor", "tam", "eus")
    for language, kin in (("est", "fin"), ("ara", "heb"), ("kaz", "tur"), ("tel", "tam")):
        assert max(others, key=lambda other, a=language: found.similarity(a, other)) == kin
    assert found.similarity("eus", "fin") == pytest.approx(
        sum(found.similarity("eus", "fin", (name,)) for name in URIEL[1:]) / 4
    )
