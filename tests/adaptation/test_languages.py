"""Languages with nothing but text: placed after training as training would have placed them."""

from pathlib import Path

import numpy as np
import pytest
import torch

import crossfill
from crossfill.errors import CrossfillError
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.typology import place
from crossfill.methods.factorized.factorized_heads import FactorizedHeads
from crossfill.tagger.tagger import Tagger
from tests.encoders.tiny import bert
from tests.scenarios import SMALL, small_grid

ALONE = {"latents.prior": "similar", "latents.similarity": ["centroid"], "encoder.pretrained.centring": "mean"}


def without(grid: Grid, language: str) -> tuple[Grid, Corpus]:
    """The grid without a language, and its text."""
    text = Corpus.joined(splits.training for cell in grid.cells if cell.language == language for splits in grid[cell])
    return grid.where(lambda cell: cell.language != language), Corpus.from_text(text)


@pytest.fixture(scope="module")
def taggers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tagger, Tagger, str]:
    """A tagger trained with the text of a language, one that it was added to after training, and the language."""
    folder = tmp_path_factory.mktemp("languages")
    bert(folder / "encoder", max_position_embeddings=256)
    config = SMALL.change({"encoder.name": str(folder / "encoder"), "training.steps": 3, **ALONE})
    config = config.change({"encoder.pretrained.mode": "frozen"})
    grid = small_grid()[0].grid
    language = grid.languages[1]
    rest, text = without(grid, language)
    trained = crossfill.train(Grid(rest.corpora, {language: text}), config=config, cache=False)
    added = crossfill.train(rest, config=config, cache=False)
    added.add_language(language, text)
    return trained, added, language


def test_a_language_is_placed_as_training_would_have_placed_it(taggers: tuple[Tagger, Tagger, str]) -> None:
    found = []
    for tagger in taggers[:2]:
        heads, row = tagger.model.heads, tagger.model.inventory.language_index(taggers[2])
        assert isinstance(heads, FactorizedHeads)
        found.append((heads.anchors[row], heads.languages.mean[row], tagger.model.encoder.get_buffer("mean")[row]))
        for cell in tagger.cells:
            if cell.language == taggers[2]:
                assert tagger.status(cell) == "unseen, language without data"
    for trained, added in zip(*found, strict=True):
        torch.testing.assert_close(trained, added)
    assert float(found[0][0].abs().max()) > 0.1


def test_no_other_language_moves_and_every_task_can_be_tagged(
    taggers: tuple[Tagger, Tagger, str], tmp_path: Path
) -> None:
    _, added, language = taggers
    words = ["a", "few", "words"]
    before = {cell: added.tag(words, cell, samples=0).probabilities for cell in added.cells}
    assert {cell.task for cell in before if cell.language == language} == set(added.model.inventory.tasks)
    loaded = crossfill.load(added.save(tmp_path / "model"))
    assert loaded.model.inventory == added.model.inventory
    for cell, expected in before.items():
        np.testing.assert_allclose(loaded.tag(words, cell, samples=0).probabilities, expected, rtol=1e-5, atol=1e-6)
    other = "deu"
    loaded.add_language(other, Corpus.from_text([crossfill.Sentence(("ein", "Satz"))]))
    for cell, expected in before.items():
        np.testing.assert_allclose(loaded.tag(words, cell, samples=0).probabilities, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(CrossfillError, match="tags already"):
        loaded.add_language(other, Corpus.from_text([crossfill.Sentence(("noch", "einer"))]))
    with pytest.raises(CrossfillError, match="got none"):
        loaded.add_language("swe", Corpus.from_text([]))


def test_the_prior_of_a_language_is_as_wide_as_seen_ones_and_their_places_leave_it(
    taggers: tuple[Tagger, Tagger, str],
) -> None:
    _, added, language = taggers
    heads = added.model.heads
    assert isinstance(heads, FactorizedHeads)
    row = added.model.inventory.language_index(language)
    mean, variance, factor = heads.languages.moments(heads.seen_rows.nonzero().squeeze(1))
    moment = float((mean**2 + variance + (factor**2).sum(-1)).mean())
    lacking = float((heads.anchors[heads.seen_rows] ** 2).mean() - (heads.anchors[row] ** 2).mean())
    assert lacking > 0
    expected = (moment + lacking) ** 0.5
    assert float(heads.language_scales()[row]) == pytest.approx(min(1.0, expected))
    draws = heads.languages.sample(torch.tensor([row]), 4000) * heads.language_scales()[[row]]
    assert float(draws.detach().std()) == pytest.approx(min(1.0, expected), rel=0.1)


def test_newcomers_are_placed_among_the_others_and_move_none() -> None:
    points = dict(zip("abcde", np.random.default_rng(0).standard_normal((5, 3)), strict=True))

    def similarity(first: str, second: str) -> float:
        return float(np.exp(-((points[first] - points[second]) ** 2).sum() / 4))

    alone = place(list("abcd"), [similarity], 4, 1.5)
    together = place(list("abcd"), [similarity], 4, 1.5, ["e"])
    for name in "abcd":
        np.testing.assert_array_equal(alone[name], together[name])
    points["twin"] = points["a"]
    twin = place(list("abcd"), [similarity], 4, 1.5, ["twin"])["twin"]
    np.testing.assert_allclose(twin, alone["a"], atol=1e-5)
    # what an anchor lacks in length is the variance of a Gaussian process at the language, given the others
    kernel, across = np.array([list(alone.values())]) @ np.array(list(alone.values())).T, np.array(list(alone.values()))
    own = across @ together["e"]
    assert (together["e"] ** 2).sum() == pytest.approx(own @ np.linalg.solve(kernel[0], own), rel=1e-4)


def test_text_in_a_data_folder_gives_a_language_a_column(tmp_path: Path) -> None:
    from tests.data.folders import bio, write

    tagged = bio([("Anna", "B-PER"), ("sleeps", "O")])
    files = {"ner/eng/train.bio": tagged, "ner/wol/train.bio": tagged, "text/sv/a.txt": "En mening. Och en till.\n"}
    write(tmp_path, files)
    grid = crossfill.load_grid(tmp_path, cache=False)
    assert grid.languages == ("eng", "wol")
    assert grid.inventory.languages == ("eng", "swe", "wol")
    assert grid.inventory.newcomers == {"swe"}
    assert grid.texts["swe"].n_words >= 5
    assert Cell("ner", "swe") not in grid.corpora
