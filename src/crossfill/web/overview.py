"""The grid of a model as the page shows it: cells with scores, a map of languages, example sentences."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

import numpy as np

from crossfill.adaptation.heads import without_adapted
from crossfill.data.codes import is_private, language_name, language_tag
from crossfill.data.parallel_corpus import parallel_languages, parallel_sentences
from crossfill.grid.cells import Cell
from crossfill.measures.significance import pca
from crossfill.methods.registry import find_method
from crossfill.tagger.tagger import Tagger
from crossfill.web.serve_settings import MAX_CELLS, ServeSettings

EXAMPLES = (16, 51)
"""Sentences of the parallel corpus that serve as examples, by number: they name people, places, organisations."""


def describe_grid(
    tagger: Tagger, name: str, examples: Mapping[str, Sequence[str]], settings: ServeSettings, teach: bool = False
) -> dict[str, Any]:
    """Describe a model: its grid, scores and labels, a map of its languages, example sentences and limits."""
    inventory, config = tagger.model.inventory, tagger.config
    places, spreads, shares = language_map(tagger)
    return {
        "model": {
            "name": name,
            "method": config.method,
            "encoder": PurePath(config.encoder.name).name,
            "samples": min(config.prediction.samples, settings.max_samples),
            "bayesian": tagger.model.heads.has_posterior,
        },
        "tasks": [
            {"name": task.name, "labels": task.labels, "metric": task.metric, "unit": task.unit}
            for task in inventory.tasks.values()
        ],
        "languages": [
            {
                "code": code,
                "tag": "und" if is_private(code) else language_tag(code),
                "name": language_name(code),
                "place": places.get(code),
                "spread": spreads.get(code),
                "examples": examples.get(code) or _known_examples().get(code, []),
            }
            for code in inventory.languages
        ],
        "cells": [_cell(tagger, cell) for cell in tagger.cells],
        "map_shares": shares,
        "limits": {
            "characters": settings.max_characters,
            "words": settings.max_words,
            "samples": settings.max_samples,
            "cells": MAX_CELLS,
        },
        "teach": teach,
    }


def language_map(tagger: Tagger) -> tuple[dict[str, list[float]], dict[str, list[float]], list[float]]:
    """Project the posteriors of languages on two principal components: means, standard deviations, shares of variance.

    All are empty if the method has no language vectors, or there are fewer than three languages.
    """
    languages, read = tagger.model.inventory.languages, find_method(tagger.config.method).language_vectors
    if read is None or len(languages) < 3:
        return {}, {}, []
    means, variance, factor = (part.cpu().double().numpy() for part in read(without_adapted(tagger.model)))
    projection = pca(means, 2)
    if projection.points.shape[1] < 2:
        return {}, {}, []
    # the diagonal of V (diag(δ²) + B Bᵀ) Vᵀ, V the directions
    across = variance @ (projection.directions**2).T + ((projection.directions @ factor) ** 2).sum(-1)
    places = dict(zip(languages, projection.points.round(4).tolist(), strict=True))
    spreads = dict(zip(languages, np.sqrt(across).round(4).tolist(), strict=True))
    return places, spreads, projection.shares.round(4).tolist()


def _cell(tagger: Tagger, cell: Cell) -> dict[str, Any]:
    """Describe a cell with its mean scores over corpora, or if it has none, with what it is expected to score."""
    results = [result for result in tagger.results if result.cell == cell]
    expectations, expected = tagger.expectations, None
    if not results and expectations is not None and (score := expectations.of(cell)) is not None:
        expected = {"score": score.score, "low": score.low, "high": score.high, "level": expectations.level}
    return {
        "cell": str(cell),
        "status": "seen" if cell in tagger.seen else "unseen",
        "score": float(np.mean([result.score for result in results])) if results else None,
        "n_words": sum(result.n_words for result in results),
        "expected": expected,
    }


@cache
def _known_examples() -> dict[str, list[str]]:
    """Load a few sentences in some widely spoken languages, the same in each; two are of the parallel corpus."""
    known = json.loads(files("crossfill.web").joinpath("examples.json").read_text(encoding="utf-8"))
    for language in parallel_languages():
        sentences = parallel_sentences("ner", language)
        known[language] += [sentences[number].text for number in EXAMPLES]
    return known
