"""The artificial grid: reproducible, well formed, symmetric in what it hides, and uniform without diversity."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from crossfill.data.synthetic import (
    DERIVATIONS,
    INFLECTIONS,
    PARTICLES,
    SETTINGS,
    TASKS,
    SyntheticConfig,
    SyntheticGrid,
    _count,
    _item,
    _sentence,
    synthetic_grid,
)
from crossfill.grid.cells import Cell

SMALL = SyntheticConfig(families=4, languages_per_family=3, train_sentences=60, dev_sentences=5, test_sentences=5)
TINY = SyntheticConfig(train_sentences=1, dev_sentences=1, test_sentences=1)


def test_labels_of_sentences_and_pairs_depend_on_hidden_settings():
    """With the other derivation for names, the same text has more names where it had more adjectives."""
    settings = TINY.model_copy(update={"families": 1, "languages_per_family": 1})
    (language,) = synthetic_grid(settings, 3).languages
    flipped = list(language.settings)
    flipped[SETTINGS.index("derivations")] ^= True
    other = replace(language, settings=tuple(flipped))
    opposite = {"names": "qualities", "qualities": "names", "neither": "neither"}
    found = Counter()
    for seed in range(60):
        one, two = (_item("theme", _sentence(l, rng), l, rng) for l in (language, other) for rng in [Random(seed)])
        assert one.words == two.words
        assert two.labels == (opposite[one.labels[0]],)
        found.update(one.labels)
        pair = _item("change", _sentence(language, rng := Random(seed)), language, rng)
        again = [_count(_sentence(language, rng), "PROPN") for rng in [Random(seed)] for _ in range(2)]
        assert pair.labels == (("fewer", "as_many", "more")[int(np.sign(again[1] - again[0])) + 1],)
        found.update(pair.labels)
    assert min(found.values()) >= 5


@pytest.fixture(scope="module")
def made() -> SyntheticGrid:
    return synthetic_grid(SMALL, 1)


def test_one_seed_makes_one_grid():
    one, two, other = (synthetic_grid(TINY.model_copy(update={"families": 2}), seed) for seed in (1, 1, 2))
    for cell in one.grid.cells:
        assert one.grid.training(cell).text_hash == two.grid.training(cell).text_hash
        assert one.grid.training(cell).text_hash != other.grid.training(cell).text_hash


def test_every_task_is_annotated_in_every_language_on_text_of_its_own(made):
    assert set(made.grid.cells) == {Cell(task, language.code) for task in TASKS for language in made.languages}
    texts = [made.grid.training(Cell(task, made.languages[0].code))[0].text for task in TASKS]
    assert len(set(texts)) == len(TASKS)


def test_labels_are_strict_iob2(made):
    for cell in made.grid.cells:
        if cell.task in ("ner", "chunk"):
            for sentence in made.grid.training(cell):
                for before, label in zip(("O", *sentence.labels), sentence.labels, strict=False):
                    assert not label.startswith("I-") or before[2:] == label[2:]


@pytest.mark.parametrize(
    ("setting", "forms", "tags"),
    [("inflections", INFLECTIONS, ("NOUN", "VERB")), ("particles", PARTICLES, ("DET", "ADP"))],
)
def test_the_same_form_means_different_things(made, setting, forms, tags):
    meanings = set()
    for language in made.languages:
        corpus = made.grid.training(Cell("pos", language.code))
        found = Counter(
            tag
            for word, tag in zip(corpus.words, corpus.labels, strict=True)
            if word.endswith(forms[0]) and tag in tags
        )
        (tag, hits), *_ = found.most_common()
        assert hits > 0.7 * sum(found.values())  # a bare root may end like a suffix
        assert tag == tags[language.setting(setting)]
        meanings.add(tag)
    assert meanings == set(tags)


def test_text_does_not_tell_the_forms_of_a_hidden_pair_apart():
    """Within a language, both forms of a pair are equally frequent, whatever the setting: text alone is no clue."""
    config = SyntheticConfig(families=1, languages_per_family=2, train_sentences=600, dev_sentences=1, test_sentences=1)
    made = synthetic_grid(config, 5)
    for language in made.languages:
        words = made.grid.training(Cell("pos", language.code)).words
        for pair in (INFLECTIONS, DERIVATIONS):
            first, second = (sum(form in word[-5:] for word in words) for form in pair)
            assert first / (first + second) == pytest.approx(0.5, abs=0.06)
        first, second = (sum(word == form for word in words) for form in PARTICLES)
        assert first / (first + second) == pytest.approx(0.5, abs=0.06)


def test_diversity_goes_from_one_grammar_to_many():
    def grammars(diversity: float) -> int:
        made = synthetic_grid(TINY.model_copy(update={"diversity": diversity}), 0)
        return len({language.settings for language in made.languages})

    assert grammars(0.0) == 1
    assert 1 < grammars(0.3) < grammars(1.0)


def test_related_languages_share_settings_and_words():
    made = synthetic_grid(TINY, 0)
    pairs = [(a, b) for i, a in enumerate(made.languages) for b in made.languages[:i]]

    def agreement(related: bool) -> float:
        chosen = [(a, b) for a, b in pairs if (a.family == b.family) is related]
        return float(np.mean([x == y for a, b in chosen for x, y in zip(a.settings, b.settings, strict=True)]))

    assert agreement(True) > agreement(False) + 0.15
    first, second = made.languages[0], made.languages[2]  # one branch
    assert len(set(first.roots["nominal"]) & set(second.roots["nominal"])) > 20
    assert set(made.typology) == {language.code for language in made.languages}
