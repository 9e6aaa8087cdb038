"""What looks wrong, and what does not."""

from crossfill.data.messages import check_grid
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence


def corpus(*sentences: str) -> Corpus:
    """Sentences written `word/LABEL word/LABEL`."""
    pairs = [[token.rpartition("/") for token in sentence.split(" ")] for sentence in sentences]
    return Corpus.from_sentences(Sentence(tuple(w for w, _, _ in p), tuple(label for _, _, label in p)) for p in pairs)


def told(**cells: Splits) -> list[str]:
    return [str(p) for p in check_grid(Grid({Cell(*name.split("_")): (splits,) for name, splits in cells.items()}))]


CLEAN = corpus(*(f"moku{i}/NOUN erwa/VERB" for i in range(40)))


def test_a_clean_cell_is_silent():
    assert told(pos_wol=Splits("x", train=CLEAN, test=CLEAN)) == []
    assert told(pos_wol=Splits("x", test=CLEAN)) == []


def test_labels_seen_only_in_dev_or_test():
    splits = Splits("x", train=CLEAN, dev=corpus("a/X"), test=corpus("a/NOUN b/X c/X d/ADJ"))
    assert told(pos_wol=splits) == ["pos/wol: X only in dev (1 word)", "pos/wol: ADJ, X only in test (3 words)"]
    many = Splits("x", train=CLEAN, test=corpus(*(f"a/L{i}" for i in range(8))))
    assert told(pos_wol=many)[0] == "pos/wol: L0, L1, L2, L3, L4, L5 and 2 more only in test (8 words)"


def test_a_few_words_with_a_label_that_other_cells_train_on_are_nothing_odd():
    rare = {n: Splits("x", train=CLEAN, test=corpus(" ".join(["a/X"] * n))) for n in (9, 10)}
    teacher = Splits("x", train=corpus("a/X"))
    assert told(pos_wol=rare[9], pos_yor=teacher) == []
    assert told(pos_wol=rare[10], pos_yor=teacher) == ["pos/wol: X only in test (10 words)"]
    assert told(pos_wol=rare[9], ner_yor=teacher) == ["pos/wol: X only in test (9 words)"]


def test_duplicate_sentences():
    repeated = corpus(*["a/X b/X"] * 2, *(f"w{i}/X" for i in range(17)))
    assert told(pos_wol=Splits("x", train=repeated)) == ["pos/wol: 1 of 19 train sentences repeat another (5%)"]
    fewer = corpus(*["a/X b/X"] * 2, *(f"w{i}/X" for i in range(18)))
    assert told(pos_wol=Splits("x", train=fewer)) == []


def test_scripts():
    assert told(pos_kaz=Splits("x", train=corpus("аежж/X abc/X"))) == [
        "pos/kaz: mixed scripts: Cyrillic 57%, Latin 43%"
    ]
    assert told(pos_jpn=Splits("x", train=corpus("漢かカ/X 字/X"))) == []
    two = {"pos_kmr": Splits("x", train=corpus("rojbaş/X")), "ner_kmr": Splits("x", train=corpus("ڕۆژباش/O"))}
    assert told(**two) == ["kmr: different scripts: ner in Arabic; pos in Latin"]


def test_words_and_labels_that_are_missing():
    assert told(pos_wol=Splits("x", train=corpus("_/NOUN _/VERB"))) == [
        "pos/wol: 100% of the words are _: this corpus comes without its text"
    ]
    assert told(pos_wol=Splits("x", train=corpus("a/_ b/X"))) == ["pos/wol: 1 of 2 words have no label (_)"]
    grid = Grid({Cell("feats:Case", "wol"): (Splits("x", train=corpus("a/_ b/X")),)})
    assert check_grid(grid) == []


def test_treebanks_are_told_apart():
    grid = Grid({Cell("pos", "tur"): (Splits("imst", train=CLEAN, test=corpus("a/X")), Splits("pud", test=CLEAN))})
    assert [str(p) for p in check_grid(grid)] == ["pos/tur (imst): X only in test (1 word)"]


def test_tag_sets_that_differ_are_noticed():
    def spans(*types: str) -> Splits:
        return Splits("x", train=corpus(*(f"{kind.lower()}{i}/B-{kind} erwa/O" for i in range(20) for kind in types)))

    assert told(ner_wol=spans("PER", "LOC"), ner_fin=spans("PER", "MISC")) == []
    assert told(ner_wol=spans("PERSON", "GPE"), ner_fin=spans("PERSON")) == []
    assert told(ner_wol=spans("PERSON", "GPE"), pos_fin=Splits("x", train=CLEAN)) == []
    (message,) = told(ner_wol=spans("PERSON", "GPE", "ORG"), ner_fin=spans("PER", "LOC", "ORG"))
    assert message == (
        "ner/wol: GPE, PERSON here, LOC, PER in ner/fin: to have one name for each, write them into a file labels.txt "
        "next to it, one a line: GPE<TAB>LOC, PERSON<TAB>PER"
    )
    both = told(ner_wol=spans("Drug"), ner_fin=spans("LOC"))
    assert both[0].startswith("ner/fin: no label in common with other corpora of ner (LOC): rename them in labels.txt")
