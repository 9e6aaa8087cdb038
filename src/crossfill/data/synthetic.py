"""A grid of artificial languages, in which the same forms mean different things in different languages.

Languages descend from families. A family has a lexicon and six *settings*, binary choices of grammar, of which its
languages change a few. Three settings are hidden: they say which of two forms marks nouns and which verbs, which names
and which adjectives, which is the determiner and which the adposition. The grammar is symmetric in each such pair, so
only labels (of any task) reveal them, not text alone, and no language-agnostic head can be right everywhere. The other
three settings, of word order, show in the text. Everything is determined by one seed; see docs/model.md.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Annotated, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from pydantic import Field

from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit
from crossfill.settings import Settings

TaskName = Literal["pos", "ner", "chunk", "deprel", "theme", "change"]
Side = Literal["nominal", "verbal"]
TASKS: tuple[TaskName, ...] = ("pos", "ner", "chunk", "deprel")
SENTENCE_TASKS: tuple[TaskName, ...] = ("theme", "change")
"""`theme` labels sentences: whether they have more names than adjectives. `change` labels pairs: whether the second has
more names than the first. Both depend on which derivation makes names, and which inflection nominal words have."""

CONSONANTS, VOWELS = "ptkbdgmnslrvzh", "aeiou"
SOUND_CHANGES = ("p→b", "t→d", "k→g", "s→z", "v→b", "h→", "e→i", "o→u", "l→r", "n→m")
INFLECTIONS = ("ka", "mi")  # of nominal and verbal words; a setting decides which is which
DERIVATIONS = ("sen", "rul")  # of names and adjectives; a setting decides which is which
PARTICLES = ("na", "le")  # determiner and adposition; a setting decides which is which
RELATIONS = {"NOUN": "nsubj", "ADJ": "amod", "PROPN": "appos", "DET": "det", "ADP": "case"}
RELATIONS |= {"VERB": "root", "ADV": "advmod", "AUX": "aux"}
SETTINGS = ("inflections", "derivations", "particles", "verbs_first", "particles_follow", "modifiers_follow")
N_HIDDEN = 3  # the number of hidden settings, which come first: they do not show in the text
DRIFT = 0.1  # probability that a step down the family tree changes a setting, at diversity 1


class SyntheticConfig(Settings):
    """Size and diversity of the artificial grid: see docs/model.md."""

    families: Annotated[int, Field(ge=1, le=1000)] = 8
    branches: Annotated[int, Field(ge=1, le=1000)] = 2
    """Branches of a family; each has one sound change, and each of its languages one more."""
    languages_per_family: Annotated[int, Field(ge=1, le=1000)] = 5
    train_sentences: Annotated[int, Field(ge=1, le=10**6)] = 100
    dev_sentences: Annotated[int, Field(ge=1, le=10**6)] = 20
    test_sentences: Annotated[int, Field(ge=1, le=10**6)] = 200
    roots: Annotated[int, Field(ge=1, le=10**6)] = 400
    """Roots in a family's lexicon; their frequencies follow Zipf's law."""
    diversity: Annotated[float, Field(ge=0, le=1)] = 1.0
    """From 0 (all languages have the same settings) to 1 (those of two families are independent)."""
    tasks: tuple[TaskName, ...] = TASKS
    """The tasks of the grid; `theme` labels sentences, and `change` pairs of sentences."""


class Word(NamedTuple):
    """A word with its label in each task."""

    form: str
    pos: str
    ner: str
    chunk: str
    deprel: str


@dataclass(frozen=True)
class Language:
    """An artificial language."""

    code: str
    """From the range that ISO 639-3 reserves for private use."""
    family: int
    settings: tuple[bool, ...]
    """In the order of `SETTINGS`."""
    marking: float
    """Probability that an inflection is written; other words are recognised only by their stem or their neighbours."""
    roots: dict[str, list[str]]
    """Forms by the side of the grammar that they belong to, nominal or verbal."""

    def setting(self, name: str) -> bool:
        """Tell whether this setting takes the second of its two options."""
        return self.settings[SETTINGS.index(name)]


@dataclass(frozen=True)
class SyntheticGrid:
    """The grid with the true settings of its languages."""

    grid: Grid
    languages: tuple[Language, ...]

    @property
    def typology(self) -> dict[str, Float[np.ndarray, "settings"]]:
        """The settings of each language as a vector of ±1."""
        return {language.code: np.array(language.settings) * 2.0 - 1.0 for language in self.languages}


@lru_cache(maxsize=2)  # a study asks for its grid several times, and a large one takes seconds
def synthetic_grid(config: SyntheticConfig, seed: int) -> SyntheticGrid:
    """Make the artificial grid of this seed: every task in every language, each with sentences of its own."""
    rng = random.Random(seed)  # noqa: S311 - an experiment, not a secret
    languages = _languages(config, rng)
    sizes = (config.train_sentences, config.dev_sentences, config.test_sentences)
    corpora = {
        Cell(task, language.code): (Splits("synthetic", *(_corpus(language, task, size, rng) for size in sizes)),)
        for language in languages
        for task in config.tasks
    }
    return SyntheticGrid(Grid(corpora), languages)


def _languages(config: SyntheticConfig, rng: random.Random) -> tuple[Language, ...]:
    forms = sorted({_root(rng) for _ in range(2 * config.roots)})  # shared: families give a form different classes
    hidden = list(product((False, True), repeat=N_HIDDEN))  # each combination once in eight families, in random order
    rng.shuffle(hidden)
    languages: list[Language] = []
    for family in range(config.families):
        roots = rng.sample(forms, config.roots)
        visible = tuple(rng.random() < 0.5 for _ in SETTINGS[N_HIDDEN:])
        settings = [s and rng.random() < config.diversity for s in (*hidden[family % len(hidden)], *visible)]
        branches = [_descend(roots, settings, config, rng) for _ in range(config.branches)]
        for i in range(config.languages_per_family):
            words, choices = _descend(*branches[i % config.branches], config, rng)
            code = "q" + chr(ord("a") + len(languages) // 26) + chr(ord("a") + len(languages) % 26)
            sides = {"nominal": words[::2], "verbal": words[1::2]}
            languages.append(Language(code, family, tuple(choices), rng.uniform(0.3, 1.0), sides))
    return tuple(languages)


def _descend(
    roots: Sequence[str], settings: Sequence[bool], config: SyntheticConfig, rng: random.Random
) -> tuple[list[str], list[bool]]:
    """Take a step down the family tree: one sound change, and possibly changed settings."""
    before, after = rng.choice(SOUND_CHANGES).split("→")
    words = [root.replace(before, after) or root for root in roots]
    return words, [setting ^ (rng.random() < DRIFT * config.diversity) for setting in settings]


def _root(rng: random.Random) -> str:
    """Make one to three syllables, the last of them open or closed."""
    syllables = "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(1, 3)))
    return syllables + (rng.choice(CONSONANTS) if rng.random() < 0.5 else "")


def _corpus(language: Language, task: TaskName, n_sentences: int, rng: random.Random) -> Corpus:
    return Corpus.from_sentences(_item(task, _sentence(language, rng), language, rng) for _ in range(n_sentences))


def _item(task: TaskName, words: Sequence[Word], language: Language, rng: random.Random) -> Sentence:
    """Make a sentence with labels of its words or with its theme, or with another one and what changes between them."""
    forms = tuple(word.form for word in words)
    if task == "theme":
        gap = _count(words, "PROPN") - _count(words, "ADJ")
        return Sentence(forms, (("neither", "names", "qualities")[(gap > 0) - (gap < 0)],), unit=Unit.SENTENCE)
    if task == "change":
        other = _sentence(language, rng)
        gap = _count(other, "PROPN") - _count(words, "PROPN")
        label = ("as_many", "more", "fewer")[(gap > 0) - (gap < 0)]
        return Sentence.pair(Sentence(forms), Sentence(tuple(word.form for word in other)), label)
    return Sentence(forms, tuple(getattr(word, task) for word in words))


def _count(words: Sequence[Word], tag: str) -> int:
    return sum(word.pos == tag for word in words)


def _sentence(language: Language, rng: random.Random) -> list[Word]:
    """Make one to three clauses of a nominal and a verbal phrase each."""
    words = []
    for _ in range(rng.randint(1, 3)):
        clause = [_phrase(language, "nominal", rng), _phrase(language, "verbal", rng)]
        if language.setting("verbs_first"):
            clause.reverse()
        words += clause[0] + clause[1]
    return [*words, Word(".", "PUNCT", "O", "O", "punct")]


def _phrase(language: Language, side: Side, rng: random.Random) -> list[Word]:
    """Make a head, modifiers, or both, with or without a particle: the same for nominal and verbal phrases."""
    shape, derivation = rng.random(), rng.randrange(2)
    n_modifiers = (1 + (rng.random() < 0.3)) if shape < 0.7 else 0
    modifiers = [_word(language, side, derivation, rng) for _ in range(n_modifiers)]
    heads = [_word(language, side, None, rng)] if shape > 0.3 else []
    tagged = [*heads, *modifiers] if language.setting("modifiers_follow") else [*modifiers, *heads]
    if rng.random() < 0.5:
        particle = rng.randrange(2)
        word = (PARTICLES[particle], "ADP" if bool(particle) != language.setting("particles") else "DET")
        tagged = [*tagged, word] if language.setting("particles_follow") else [word, *tagged]
    return _labelled(tagged, side)


def _word(language: Language, side: Side, derivation: int | None, rng: random.Random) -> tuple[str, str]:
    """Make a head (no derivation) or a modifier, with its part of speech."""
    if rng.random() < 0.2:
        form = _root(rng)
    else:
        roots = language.roots[side]
        rank = int(len(roots) ** rng.random()) - 1  # log-uniform over ranks, P(rank) ∝ 1 / rank: Zipf's law
        form = roots[min(rank, len(roots) - 1)]
    if derivation is None:
        tag = "NOUN" if side == "nominal" else "VERB"
    else:
        form += DERIVATIONS[derivation]
        first = bool(derivation) == language.setting("derivations")
        tag = {"nominal": ("ADJ", "PROPN"), "verbal": ("ADV", "AUX")}[side][first]
    if rng.random() < language.marking:
        form += INFLECTIONS[(side == "verbal") ^ language.setting("inflections")]
    return form, tag


def _labelled(tagged: Sequence[tuple[str, str]], side: Side) -> list[Word]:
    """Label a phrase in all tasks. Names are chunks of their own, and places if there is an adposition."""
    tags = [tag for _, tag in tagged]
    chunk = "VP" if side == "verbal" else "PP" if "ADP" in tags else "NP"
    entity = "LOC" if "ADP" in tags else "PER"
    words: list[Word] = []
    for form, tag in tagged:
        before = words[-1] if words else Word("", "", "O", "O", "")
        is_name, was_name = tag == "PROPN", before.pos == "PROPN"
        ner = ("I-" if was_name else "B-") + entity if is_name else "O"
        start = "B-" if before.chunk == "O" or is_name != was_name else "I-"
        relation = "obl" if (tag, chunk) == ("NOUN", "PP") else RELATIONS[tag]
        words.append(Word(form, tag, ner, "O" if form in PARTICLES else start + chunk, relation))
    return words
