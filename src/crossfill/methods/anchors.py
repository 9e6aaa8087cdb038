"""Centres of the priors of language vectors, chosen so that similar languages have similar priors."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.errors import ConfigError
from crossfill.grid.partition import Similarity
from crossfill.grid.typology import cosine, load_typology, place

POWER = 1.5
"""Exponent of similarities; with a larger one, only very similar languages have similar priors."""


def language_anchors(
    languages: Sequence[str], encoder: Encoder, config: Config, newcomers: Sequence[str] = ()
) -> dict[str, Float[np.ndarray, "latent"]]:
    """Place the centre a of each language's prior N(a, I), from the similarities in `latents.similarity`.

    `newcomers`, languages without any corpus, are placed among the others and move none of them.
    """
    latents = config.latents
    similarities = [similarity(block, encoder, config, languages) for block in latents.similarity]
    return place(languages, similarities, latents.size, POWER, newcomers)


def similarity(block: str, encoder: Encoder, config: Config, languages: Sequence[str]) -> Similarity:
    """Return the similarity of languages by a block of typological features, or by the centroids of their features.

    Centroids are compared by their directions from the mean centroid of `languages`.
    """
    if block != "centroid":
        typology = load_typology(config.sources.vectors)
        return lambda a, b: typology.similarity(a, b, (block,))
    centroids = encoder.centroids()
    if not centroids:
        raise ConfigError("latents.similarity: centroid needs a frozen encoder with centring mean or standard")
    middle = np.mean([centroids[language] for language in languages], axis=0)
    return lambda a, b: cosine(centroids[a] - middle, centroids[b] - middle)
