"""The language of a sentence: chosen by its letters, kept without text, and averaged where several are likely."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import crossfill
from crossfill import checkpoint
from crossfill.cli.app import app
from crossfill.errors import CheckpointError, DataError
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.prediction.language_choice import UNKNOWN, LanguageProfiles
from crossfill.prediction.tagging import TaggingOptions
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
TEXTS = {
    "fin": ["Helsinki on Suomen pääkaupunki", "kaupunki on suuri ja kaunis", "minä en tiedä missä hän on"],
    "wol": ["Dakar mooy péeyu Senegaal", "dafa dem ca dëkk ba", "xale yi ñëw nañu"],
    "ell": ["η Αθήνα είναι πρωτεύουσα", "δεν ξέρω πού είναι", "το παιδί ήρθε σήμερα"],
}


def corpora(texts: dict[str, list[str]]) -> dict[str, list[Corpus]]:
    return {name: [Corpus.from_text(Sentence(tuple(s.split())) for s in lines)] for name, lines in texts.items()}


@pytest.fixture(scope="module")
def profiles() -> LanguageProfiles:
    found = LanguageProfiles.of({**corpora(TEXTS), "xxx": []})
    assert found is not None
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    crossfill.train(GRID, "pf-lr", "compact", out, SMALL)
    return out


@pytest.mark.parametrize(
    ("text", "language"), [("tämä on kaunis kaupunki", "fin"), ("xale ba dem na Dakar", "wol"), ("πού είναι", "ell")]
)
def test_languages_are_told_apart(profiles: LanguageProfiles, text: str, language: str):
    shares = profiles.probabilities(Sentence(tuple(text.split())))
    assert next(iter(shares)) == language
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert profiles.languages == ("ell", "fin", "wol")


def test_no_text_is_kept_and_another_language_can_be_added(profiles: LanguageProfiles, tmp_path: Path):
    more = profiles.with_language("heb", corpora({"heb": ["שלום עולם"]})["heb"][0])
    more.save(tmp_path)
    content = (tmp_path / checkpoint.LANGUAGES).read_bytes()
    assert not any(
        word.encode() in content for lines in TEXTS.values() for line in lines for word in line.split() if len(word) > 4
    )
    loaded = LanguageProfiles.load(tmp_path)
    assert loaded is not None
    for sentence in (("שלום",), ("Helsinki", "on"), ("!",)):
        assert loaded.probabilities(Sentence(sentence)) == more.probabilities(Sentence(sentence))
    assert next(iter(loaded.probabilities(Sentence(("עולם",))))) == "heb"
    (tmp_path / checkpoint.LANGUAGES).write_bytes(content[:-100])
    with pytest.raises(CheckpointError, match=r"languages.safetensors: expected a whole safetensors file"):
        LanguageProfiles.load(tmp_path)


def test_a_tagging_is_the_average_over_languages(model: Path):
    tagger = crossfill.load(model)
    assert tagger.profiles is not None
    for corpus in (GRID.development(cell) for cell in GRID.cells[:3]):
        words = corpus[0].words
        tagging = tagger.tag(words, cell="pos", samples=0)
        assert tagging.languages is not None
        each = [tagger.tag(words, f"pos/{language}", samples=0) for language in tagging.languages]
        expected = sum(p * one.probabilities for p, one in zip(tagging.languages.values(), each, strict=True))
        np.testing.assert_allclose(tagging.probabilities, expected, atol=1e-5)
        assert tagging.cell == each[0].cell
        assert (tagging.mutual_information >= 0).all()
    mixture = dict.fromkeys(GRID.languages[:2], 0.5)
    tagger.profiles = type("Fixed", (), {"probabilities": lambda *_: mixture})()  # pyright: ignore[reportAttributeAccessIssue]
    words = GRID.development(GRID.cells[0])[0].words
    half = tagger.tag(words, "ner", samples=2, options=TaggingOptions(interval=0.9))
    one, other = (tagger.tag(words, f"ner/{name}", samples=2, options=TaggingOptions(interval=0.9)) for name in mixture)
    np.testing.assert_allclose(half.probabilities, (one.probabilities + other.probabilities) / 2, atol=1e-5)
    total = -(half.probabilities * np.log(half.probabilities)).sum(1)
    np.testing.assert_allclose(half.entropy, total, atol=1e-4)
    known = (one.entropy - one.mutual_information + other.entropy - other.mutual_information) / 2
    np.testing.assert_allclose(half.mutual_information, total - known, atol=1e-4)


def test_the_chosen_language_is_said_in_every_format(model: Path, tmp_path: Path):
    words = GRID.development(GRID.cells[0])[0].words
    (tmp_path / "in.txt").write_text(" ".join(words) + "\n", encoding="utf-8")
    tagging = crossfill.load(model).tag(words, "pos")
    assert tagging.languages is not None
    language, share = next(iter(tagging.languages.items()))
    said = {
        "jsonl": f'"pos/{language}": {{"labels"',
        "conllu": f"# language {language} {share:.4f}",
        "bio": f"# language {language} {share:.4f}",
        "text": f"{language}  ",
    }
    for form, expected in said.items():
        command = [
            "predict",
            str(model),
            str(tmp_path / "in.txt"),
            "--from",
            "words",
            "--cell",
            "pos",
            "--format",
            form,
        ]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (result.output, result.exception)
        assert expected in result.stdout, form
        if form == "jsonl":
            tags = json.loads(result.stdout)["tags"][f"pos/{language}"]
            assert list(tags["languages"]) == list(tagging.languages)


def test_a_task_alone_is_no_cell_to_adapt(model: Path):
    tagger = crossfill.load(model)
    assert tagger.target("pos") == tagger.target(f"pos/{UNKNOWN}")
    with pytest.raises(DataError, match="unknown task 'poss'"):
        tagger.target("poss")
    with pytest.raises(DataError, match="expected a cell as task/language"):
        tagger.cell("pos")
    tagger.profiles = None
    with pytest.raises(DataError, match=r"pos/und: expected a language, as this model has nothing to choose one by"):
        tagger.tag("Dakar", "pos")
