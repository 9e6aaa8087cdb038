"""Where words and sentences end in raw text, as treebanks teach it: linear models of the characters around a place.

p(boundary | place) = σ(Σ_f w_f + v_f) over features f of the place: characters and their kinds, the word so far, what
ICU's rules say. The weights w are those of all languages, v those of one. FTRL-proximal (McMahan et al. 2013) leaves
most of them zero. A contraction (`du`) becomes words (`de le`) by its ending, or by further boundaries within it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, NamedTuple
from unicodedata import category

import numpy as np
from jaxtyping import Bool, Float, Integer
from pydantic import Field

from crossfill.data.codes import language_tag
from crossfill.errors import DataError
from crossfill.grid.cells import without_script
from crossfill.grid.sentence import Sentence

MOST_SENTENCES, FEWEST_SENTENCES = 3000, 10
"""Sentences of a language that are learnt from, and those without which nothing is."""
_MOST_OF_EACH = 150
"""Sentences of each language that the weights of all languages are learnt from."""
_FEWEST_PARTS = 20  # contractions that are the words they stand for, one after the other, before splits are learnt
_STEP, _SPARSENESS, _PASSES, _BATCH = 0.5, 1.0, 6, 256
_UNIT = 64  # weights are kept in parts of one
_LONGEST_ENDING, _SPACED = 6, 0.01  # the share of words with a space from which on words may hold some
_PAD, _JOINER = 8, 0x200D
_BASE, _MIX, _STIR = (np.uint64(n) for n in (1099511628211, 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD))
_INVERSE = np.uint64(pow(1099511628211, -1, 2**64))
_KINDS = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 4, "M": 5, "N": 6, "Z": 7, "C": 8}
_CHUNK, _SPACE = re.compile(r"\S+"), re.compile(r"\s")

Places = Integer[np.ndarray, "places"]
Features = Integer[np.ndarray, "places features"]
Bounds = tuple[int, int]
"""Start and end (exclusive) of a word, in characters of its text."""
Token = tuple[Bounds, list[str]]
"""The bounds of a token, and the words that it stands for; none if it is a word."""


def icu_places(text: str, language: str) -> list[int]:
    """List the places where ICU's rules of a language divide a text, both ends among them."""
    from icu4py.breakers import WordBreaker

    places = [0]
    for piece in WordBreaker(text, language_tag(language)):
        places.append(places[-1] + len(piece))
    return places


def sentence_lengths(text: str, language: str) -> list[int]:
    """List the lengths of the sentences of a paragraph by the rules of sentencex; together they are all of it."""
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]

    return [len(sentence) for sentence in segment(language_tag(without_script(language)), _SPACE.sub(" ", text))]


def _hashed(*parts: Places) -> Places:
    mixed = np.zeros_like(parts[0])
    for part in parts:
        mixed = (mixed ^ (part + _MIX)) * _STIR
        mixed ^= mixed >> np.uint64(32)
    return mixed >> np.uint64(32)


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of hashed features, in parts of one; all others are zero."""

    ids: list[Annotated[int, Field(strict=True, ge=0, lt=2**32)]] = field(default_factory=list)
    values: list[Annotated[int, Field(strict=True, gt=-(2**15), lt=2**15)]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.values) or any(a >= b for a, b in pairwise(self.ids)):
            raise DataError("expected weights of features in their order, one each")

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.ids, dtype=np.uint64), np.array(self.values, dtype=np.float64) / _UNIT

    def scores(self, features: Features) -> Float[np.ndarray, "places"]:
        """Add up the weights of the features of each place: ln p(boundary) - ln p(none)."""
        ids, values = self._arrays
        if not len(ids):
            return np.zeros(len(features))
        places = np.minimum(np.searchsorted(ids, features), len(ids) - 1)
        return np.where(ids[places] == features, values[places], 0).sum(axis=1)

    @classmethod
    def fit(
        cls, features: Features, wanted: Bool[np.ndarray, "places"], known: Float[np.ndarray, "places"] | float = 0
    ) -> "Weights":
        """Learn weights that, with the scores that are `known`, tell the places that are wanted from the others."""
        every, places, counts = np.unique(features, return_inverse=True, return_counts=True)
        kept = counts > 1
        n, rows = int(kept.sum()), np.where(kept, np.cumsum(kept) - 1, kept.sum())[places.reshape(features.shape)]
        z, squares, weights = (np.zeros(n + 1) for _ in range(3))  # the last is of all that occur once
        known, random = np.broadcast_to(known, len(rows)), np.random.default_rng(0)
        for _ in range(_PASSES):
            order = random.permutation(len(rows))
            for batch in (order[i : i + _BATCH] for i in range(0, len(order), _BATCH)):
                scores = weights[rows[batch]].sum(axis=1) + known[batch]
                error = 1 / (1 + np.exp(-scores.clip(-30, 30))) - wanted[batch]
                ids, which = np.unique(rows[batch], return_inverse=True)
                gradient = np.bincount(which.ravel(), np.repeat(error, rows.shape[1]), len(ids))
                before, squares[ids] = np.sqrt(squares[ids]), squares[ids] + gradient**2
                z[ids] += gradient - (np.sqrt(squares[ids]) - before) / _STEP * weights[ids]
                shrunk = np.sign(z[ids]) * np.maximum(np.abs(z[ids]) - _SPARSENESS, 0)
                weights[ids] = -shrunk * _STEP / (1 + np.sqrt(squares[ids]))
                weights[n] = 0
        whole = np.rint(weights[:n] * _UNIT).clip(1 - 2**15, 2**15 - 1).astype(int)
        return cls(every[kept][whole != 0].tolist(), whole[whole != 0].tolist())


@dataclass(frozen=True, eq=False)
class LearntCuts:
    """What the treebanks of a language, or of all languages, teach."""

    words: Weights = field(default_factory=Weights)
    sentences: Weights = field(default_factory=Weights)
    parts: Weights = field(default_factory=Weights)
    """Where words begin within contractions."""
    spaced: bool = False
    """Whether words may hold spaces, as in Vietnamese treebanks."""
    endings: dict[str, tuple[Annotated[int, Field(ge=0, lt=100)], list[str]]] = field(default_factory=dict)
    """Endings of contractions, or whole ones after `^`: how many characters go, and what their words have instead."""

    def contracted(self, token: str) -> list[str]:
        """Return the words that a contraction stands for by its ending; none if it stands for itself."""
        plain = token.lower()
        keys = (f"^{plain}", *(plain[-n:] for n in range(min(_LONGEST_ENDING, len(plain)), 0, -1)))
        n_gone, changed = next((self.endings[key] for key in keys if key in self.endings), (0, []))
        words = [token[: max(0, len(token) - n_gone)] + changed[0], *changed[1:]] if len(changed) > 1 else []
        if not words or not all(words):
            return []
        return [words[0][0].upper() + words[0][1:], *words[1:]] if token[0].isupper() else words


class _Places(NamedTuple):
    """Places where a word or sentence may end: at `left`, and the next begins at `right`, both within a stretch."""

    left: Places
    right: Places
    start: Places
    end: Places

    @classmethod
    def within(cls, starts: Places, ends: Places) -> "_Places":
        """List all places within some stretches."""
        n = ends - starts - 1
        first, last = np.repeat(starts, n), np.repeat(ends, n)
        inside = first + 1 + np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        return cls(inside, inside, first, last)


class _Text:
    """Text to be cut: its characters and their kinds as numbers, and the stretches between its white space."""

    def __init__(self, text: str, language: str) -> None:
        self.text, self.language, self.marks = text, language, np.array(icu_places(text, language))
        bounds = np.array([match.span() for match in _CHUNK.finditer(text)]).reshape(-1, 2)
        self.starts, self.ends = bounds[:, 0], bounds[:, 1]
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        distinct, which = np.unique(codes, return_inverse=True)
        plain, kinds = (
            np.array([number(chr(code)) for code in distinct], dtype=np.uint64)[which] for number in (_code, _kind)
        )
        self.codes, self.kinds = (np.pad(values, _PAD) for values in (plain, kinds))
        powers, inverse = (np.cumprod(np.full(len(text), base, np.uint64)) for base in (_BASE, _INVERSE))
        self._sums, self._inverse = np.pad(np.cumsum((plain + np.uint64(1)) * powers), (1, 0)), np.insert(inverse, 0, 1)

    def part(self, start: Places, end: Places) -> Places:
        """Hash the text from each start to each end."""
        return (self._sums[end] - self._sums[start]) * self._inverse[start]

    def word_places(self, spaced: bool) -> tuple[_Places, Features]:
        """List the places within runs of characters without white space, and at single spaces if words hold some."""
        places = _Places.within(self.starts, self.ends)
        if spaced and len(self.starts) > 1:
            gaps = np.flatnonzero([self.text[a:b] == " " for a, b in zip(self.ends, self.starts[1:], strict=False)])
            more = (self.ends[gaps], self.starts[gaps + 1], self.starts[gaps], self.ends[gaps + 1])
            places = _Places(*map(np.concatenate, zip(places, more, strict=True)))
        return places, self._features(places, self.marks, np.isin(places.right, self.marks))

    def may_cut(self, places: _Places) -> Bool[np.ndarray, "places"]:
        """Tell which places are not within a character as people see it: before a mark, or next to a joiner."""
        joined = self.codes[[places.left + _PAD - 1, places.right + _PAD]] == _JOINER
        return ~joined.any(axis=0) & (self.kinds[places.right + _PAD] != _KINDS["M"])

    def cut_words(self, places: _Places, cut: Bool[np.ndarray, "places"]) -> tuple[Places, Places]:
        """Return starts and ends of words, given at which places to cut."""
        starts = np.setdiff1d(np.union1d(self.starts, places.right[cut]), places.right[~cut])
        return starts, np.setdiff1d(np.union1d(self.ends, places.left[cut]), places.left[~cut])

    def sentence_places(self, starts: Places, ends: Places) -> tuple[_Places, Features]:
        """List the places between words."""
        left, right = ends[:-1], starts[1:]
        first, second = (np.searchsorted(self.starts, place, "right") - 1 for place in (left - 1, right))
        places = _Places(left, right, self.starts[first], self.ends[second])
        rules = np.cumsum(sentence_lengths(self.text, self.language))
        is_rule = np.searchsorted(rules, left, "left") < np.searchsorted(rules, right, "right")
        return places, self._features(places, np.union1d(starts, ends), is_rule)

    def part_places(self, starts: Places, ends: Places) -> tuple[_Places, Features]:
        """List the places within words."""
        places = _Places.within(starts, ends)
        return places, self._features(places, np.union1d(starts, ends), np.isin(places.right, self.marks))

    def _features(self, places: _Places, marks: Places, is_mark: Bool[np.ndarray, "places"]) -> Features:
        """Hash the features of each place; `marks` are other boundaries, and `is_mark` says what places are one."""
        left, right, start, end = places
        c, k = ([values[left + _PAD - i] for i in (1, 2, 3, 4)] for values in (self.codes, self.kinds))
        d, m = ([values[right + _PAD + i] for i in (0, 1, 2, 3)] for values in (self.codes, self.kinds))
        at, to = np.searchsorted(marks, left, "left"), np.searchsorted(marks, right, "right")
        last, second = (np.minimum(marks[np.maximum(at - i, 0)], left) for i in (1, 2))
        soon, later = (np.maximum(marks[np.minimum(to + i, len(marks) - 1)], right) for i in (0, 1))
        before, after, word, following = map(self.part, (start, right, last, right), (left, end, left, soon))
        sizes = (right - left, left - start, end - right, left - last, soon - right)
        mark, gap, *sizes = (np.minimum(n, 6).astype(np.uint64) for n in (is_mark, *sizes))
        # fmt: off
        every = [
            (mark, gap), (c[0], mark), (c[0], c[1]), (c[0], c[1], c[2]), (*c,), (d[0], mark), (d[0], d[1]),
            (d[0], d[1], d[2]), (*d,), (c[0], d[0], gap), (c[0], c[1], d[0]), (c[0], d[0], d[1]),
            (c[0], c[1], d[0], d[1]), (k[0], m[0], mark, gap), (k[0], k[1], m[0], mark, gap),
            (k[0], m[0], m[1], mark, gap), (k[0], k[1], m[0], m[1], mark), (*k[:3], *m[:3], mark), (*k, *m),
            (before,), (after,), (before, after), (*sizes[:2], mark), (before, m[0]), (k[0], after),
            (word, mark), (following, mark), (word, following), (self.part(second, left),), (self.part(right, later),),
            (*sizes[2:], mark),
        ]
        # fmt: on
        return np.stack([_hashed(np.full_like(mark, i), *parts) for i, parts in enumerate(every)], axis=1)


def _code(character: str) -> int:
    return 32 if character.isspace() else ord(character)


def _kind(character: str) -> int:
    kind = category(character)
    return ord(character) if kind[0] in "PS" else _KINDS.get(kind) or _KINDS[kind[0]]


@dataclass(frozen=True, eq=False)
class Segmentation:
    """What treebanks teach of cutting text: into sentences, and in their own languages into words."""

    shared: LearntCuts
    languages: dict[str, LearntCuts]

    def cut(self, text: str, language: str, one: bool = False) -> list[list[Token]]:
        """Cut a paragraph into sentences, or `one`, of tokens, each with the words that it stands for, if others."""
        every, own = _Text(text, language), self.languages.get(language, LearntCuts())
        if not len(every.starts):
            return []
        places, features = every.word_places(own.spaced)
        cut = np.isin(places.right, every.marks)
        if language in self.languages:  # else ICU's rules are better than what other languages teach of words
            cut = (self.shared.words.scores(features) + own.words.scores(features) > 0) & every.may_cut(places)
        starts, ends = every.cut_words(places, cut)
        is_end = np.zeros(len(starts) - 1, dtype=np.bool_)
        if not one:
            _, features = every.sentence_places(starts, ends)
            is_end = self.shared.sentences.scores(features) + own.sentences.scores(features) > 0
        within: dict[int, list[int]] = defaultdict(list)
        if own.parts.ids:
            places, features = every.part_places(starts, ends)
            chosen = own.parts.scores(features) > 0
            for start, place in zip(places.start[chosen].tolist(), places.left[chosen].tolist(), strict=True):
                within[start].append(place)
        sentences: list[list[Token]] = [[]]
        for start, end, last in zip(starts.tolist(), ends.tolist(), [*is_end.tolist(), True], strict=True):
            words = own.contracted(text[start:end]) if own.endings else []
            if not words and start in within:
                words = [text[a:b] for a, b in pairwise((start, *within[start], end))]
            sentences[-1].append(((start, end), words))
            if last:
                sentences.append([])
        return sentences[:-1]

    @classmethod
    def fit(cls, sentences: Mapping[str, Sequence[Sentence]]) -> "Segmentation | None":
        """Learn from sentences of each language that say where there is no space between words; none without any."""
        given = {language: [*some[:MOST_SENTENCES]] for language, some in sorted(sentences.items())}
        given = {name: some for name, some in given.items() if len(some) >= FEWEST_SENTENCES}
        given = {name: some for name, some in given.items() if not all(all(s.spaces[:-1]) for s in some)}
        if not given:
            return None
        few = [_Treebank(some[:_MOST_OF_EACH], language).lessons for language, some in given.items()]
        lessons = [
            [np.concatenate(parts) for parts in zip(*of_kind, strict=True)] for of_kind in zip(*few, strict=True)
        ]
        of_words, of_sentences = (Weights.fit(*lesson) for lesson in lessons)
        shared = LearntCuts(of_words, of_sentences)
        return cls(shared, {language: _Treebank(some, language).learnt(shared) for language, some in given.items()})


class _Treebank:
    """Sentences joined as raw text, with their tokens, the words of these, and where sentences begin."""

    def __init__(self, sentences: Iterable[Sentence], language: str) -> None:
        pieces, bounds, length = list[str](), list[Bounds](), 0
        self.words, self.firsts = list[tuple[str, ...]](), list[int]()
        for sentence in sentences:
            self.firsts.append(length)
            for first, last, token in sentence.tokens:
                bounds.append((length, length + len(token)))
                self.words.append(sentence.words[first:last])
                pieces.append(token + (" " if not sentence.spaces or sentence.spaces[last - 1] else ""))
                length += len(pieces[-1])
        self.raw = _Text("".join(pieces), language)
        self.tokens = [self.raw.text[start:end] for start, end in bounds]
        self.starts, self.ends = np.array(bounds).T
        self.spaced = sum(" " in word for words in self.words for word in words) > _SPACED * len(self.words)

    @property
    def lessons(self) -> list[tuple[Features, Bool[np.ndarray, "places"]]]:
        """Features of places, and which of them are boundaries: of words, and of sentences."""
        places, of_words = self.raw.word_places(self.spaced)
        between, of_sentences = self.raw.sentence_places(self.starts, self.ends)
        wanted = np.isin(places.right, self.starts), np.isin(between.right, self.firsts)
        return [*zip((of_words, of_sentences), wanted, strict=True)]

    def learnt(self, shared: LearntCuts) -> LearntCuts:
        """Learn what is particular to the language."""
        known = (shared.words, shared.sentences)
        lessons = zip(self.lessons, known, strict=True)
        of_words, of_sentences = (Weights.fit(*one, weights.scores(one[0])) for one, weights in lessons)
        return LearntCuts(of_words, of_sentences, self.parts(), self.spaced, self.endings())

    def parts(self) -> Weights:
        """Learn where words begin within contractions that are their words, one after the other."""
        whole = np.array(["".join(words) == token for token, words in zip(self.tokens, self.words, strict=True)])
        joints = [
            start + len("".join(words[:i]))
            for start, words, chosen in zip(self.starts.tolist(), self.words, whole, strict=True)
            for i in range(1, len(words) if chosen else 0)
        ]
        if len(joints) < _FEWEST_PARTS:
            return Weights()
        places, features = self.raw.part_places(self.starts[whole], self.ends[whole])
        return Weights.fit(features, np.isin(places.left, joints))

    def endings(self) -> dict[str, tuple[int, list[str]]]:
        """Find the endings of words that tell how contractions become others than their parts, where most words do."""
        counts: dict[str, Counter[tuple[int, tuple[str, ...]]]] = defaultdict(Counter)
        lower = (
            (token.lower(), (words[0].lower(), *words[1:]))
            for token, words in zip(self.tokens, self.words, strict=True)
        )
        for (token, words), n_times in Counter(lower).items():
            n_same = max(n for n in range(len(words[0]) + 1) if token.startswith(words[0][:n]))
            is_rule = len(words) > 1 and "".join(words) != token
            rule = (len(token) - n_same, (words[0][n_same:], *words[1:])) if is_rule else (0, ())
            for n in range(max(1, rule[0]), min(_LONGEST_ENDING, len(token) - 1) + 1):
                counts[token[-n:]][rule] += 1
            counts[f"^{token}"][rule] += n_times
        rules: dict[str, tuple[int, list[str]]] = {}
        for key in sorted(counts, key=lambda key: (key.startswith("^"), len(key), key)):
            ((rule, n),) = counts[key].most_common(1)
            shorter = next((rules[key[i:]] for i in range(1, len(key)) if key[i:] in rules), (0, []))
            enough = 2 * n > counts[key].total() and (key.startswith("^") or n > 1)
            if enough and (rule[0], [*rule[1]]) != shorter:
                rules[key] = (rule[0], [*rule[1]])
        return rules
