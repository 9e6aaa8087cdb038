"""Small grids, configs and models that several tests share."""

import torch

from crossfill.config import Config
from crossfill.data.synthetic import SyntheticConfig, SyntheticGrid, synthetic_grid
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.partition import Partition, random_halves
from crossfill.methods.registry import build_model
from crossfill.model import Model
from crossfill.settings import parse_assignments
from crossfill.training.labelled import Labelled

INVENTORY = Inventory.of({"ner": ("B-PER", "I-PER", "O"), "pos": ("ADJ", "NOUN", "VERB", "X")}, ("aaa", "bbb", "ccc"))
SEEN = frozenset({Cell("ner", "aaa"), Cell("pos", "aaa"), Cell("pos", "bbb")})
N_FEATURES = 5
SMALL = Config().change(
    {
        "latents.size": 3,
        "latents.rank": 2,
        "generator.hidden": [8, 7],
        "generator.initial_variance": 0.01,
        "encoder.hidden": 16,
        "encoder.buckets": 128,
        "training.steps": 20,
        "training.batch_sentences": 4,
        "training.learning_rate": 0.01,
        "training.validate_every": 10,
        "training.checkpoint_every": 5,
        "prediction.samples": 7,
    }
)


def small_model(method: str = "pf-lr", *overrides: str) -> Model:
    """A model over given features, in float64."""
    config = SMALL.change({"method": method, **parse_assignments(overrides)})
    return build_model(config, INVENTORY, SEEN, FeatureEncoder(N_FEATURES)).double()


def labelled(cell: Cell, lengths: list[int], seed: int = 0) -> Labelled:
    """Random features and labels for sentences of these lengths."""
    rng = torch.Generator().manual_seed(seed)
    n_words, n_labels = sum(lengths), len(INVENTORY.task(cell.task).labels)
    features = torch.randn(n_words, N_FEATURES, dtype=torch.float64, generator=rng)
    labels = torch.randint(n_labels, (n_words,), generator=rng)
    return Labelled(FeatureInputs(features, torch.tensor(lengths)), labels)


def small_grid(seed: int = 3) -> tuple[SyntheticGrid, Partition]:
    """An artificial grid of four languages, half of it held out."""
    config = SyntheticConfig(
        families=2, languages_per_family=2, train_sentences=10, dev_sentences=4, test_sentences=6, roots=30
    )
    made = synthetic_grid(config, seed)
    return made, random_halves(made.grid.cells, seed)[0]


def mixed_grid(families: int) -> Grid:
    """Artificial languages, two in a family, with a task of words, one of sentences and one of pairs."""
    sizes = {"train_sentences": 24, "dev_sentences": 8, "test_sentences": 8, "roots": 30}
    tasks = ("pos", "theme", "change")
    return synthetic_grid(SyntheticConfig(families=families, languages_per_family=2, tasks=tasks, **sizes), seed=1).grid
