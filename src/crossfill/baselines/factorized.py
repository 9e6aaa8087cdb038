"""PF, parameter space factorization: the method of the paper, with a low-rank or a diagonal covariance."""

import numpy as np

from crossfill.baselines.method import Method
from crossfill.config import Config
from crossfill.encoders.base import CentredEncoder, Encoder
from crossfill.errors import ConfigError
from crossfill.model import FactorizedHeads
from crossfill.partition import Similarity
from crossfill.typology import cosine, load_typology, place


def anchor_priors(heads: FactorizedHeads, encoder: Encoder, config: Config) -> None:
    """Centre the priors of language vectors where the config wants them; the encoder knows its languages by now."""
    latents = config.latents
    if latents.prior == "standard":
        return
    similarities = [similarity(block, encoder, config) for block in latents.similarity]
    points = place(heads.inventory.languages, similarities, latents.size, latents.similarity_power)
    heads.anchor({language: latents.anchor_scale * point for language, point in points.items()})


def similarity(block: str, encoder: Encoder, config: Config) -> Similarity:
    """How alike two languages are, by a block of typological features or by the centroids of their features."""
    if block != "centroid":
        typology = load_typology(config.sources.vectors)
        return lambda a, b: typology.similarity(a, b, (block,))
    centroids = encoder.centroids() if isinstance(encoder, CentredEncoder) else {}
    if not centroids:
        raise ConfigError(
            "latents.similarity: centroid needs a frozen encoder with encoder.pretrained.centring mean or standard"
        )
    middle = np.mean(list(centroids.values()), axis=0)
    return lambda a, b: cosine(centroids[a] - middle, centroids[b] - middle)


METHODS = (
    Method("pf-lr", "factorised, low-rank covariance", FactorizedHeads),
    Method("pf-d", "factorised, diagonal covariance", FactorizedHeads),
)
