"""How alike the languages of a study are: by URIEL, or by their own settings on the artificial grid."""

from collections.abc import Sequence

import numpy as np

from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.experiments.study import DataSettings
from crossfill.partition import Similarity


def language_similarity(data: DataSettings, languages: Sequence[str], features: Sequence[str]) -> Similarity:
    """How alike two languages of the grid are."""
    if data.synthetic is not None:
        vectors = synthetic_grid(SyntheticConfig(**data.synthetic.model_dump()), data.seed).typology
        return lambda a, b: float(np.dot(vectors[a], vectors[b]) / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))
    raise NotImplementedError
