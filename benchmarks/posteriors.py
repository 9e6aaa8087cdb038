"""Do posteriors move with data? A language with 10 sentences, with 30, …, with 1,000, over features that are given.

Heads deviate from their task's as a Gaussian process over languages says (six families, `SCALE`), features and labels
are drawn from the model itself, and each language is seen in one of two tasks, with a number of sentences that differs
from language to language. The settings are those of configs/frozen.yaml. Prints one JSON line, by method:

`variance`: how sure the posterior is by the number of sentences, as the variance of a seen cell's head relative to that
of an unseen cell's, mean over parameters (pf-lr: over draws). `latents` (pf-lr): variance of the language vector over
that at the start, and distance of its mean from its anchor. Then measures on unseen cells, plug-in and averaged, and
the correlation of a cell's entropy with its accuracy.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from crossfill.config import Config, load_run_config
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.measures import uncertainty
from crossfill.measures.significance import correlation
from crossfill.methods.baselines.typology_heads import KernelHeads
from crossfill.methods.factorized.factorized_heads import FactorizedHeads
from crossfill.methods.registry import build_model
from crossfill.model import Model
from crossfill.prediction.predict import predict
from crossfill.training.labelled import Labelled
from crossfill.training.loop import Trainer

SIZES = (10, 30, 100, 300, 1000)
"""Training sentences of the seen cells, ten words each."""
N_FAMILIES, PER_FAMILY, N_FEATURES, N_LABELS, N_WORDS = 6, 5, 24, 4, 10
SCALE = 0.7
"""Standard deviation of a head's deviations; what all languages share has 1."""
KINSHIP = 0.7
"""Similarity of two languages of a family; that of others is 0."""
METHODS = ("pf-lr", "jm", "jm-kernel")


class World:
    """Languages, heads and data of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        n = N_FAMILIES * PER_FAMILY
        self.languages = tuple(f"q{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n))
        family = np.arange(n) // PER_FAMILY
        kernel = np.where(family[:, None] == family, KINSHIP, 0.0) + (1 - KINSHIP) * np.eye(n)
        self.vectors = np.linalg.cholesky(kernel)
        shape = (N_LABELS, N_FEATURES + 1)
        self.heads = {
            Cell(task, language): shared + SCALE * np.tensordot(vector, slopes, 1)
            for task in ("one", "two")
            for shared, slopes in [(self.rng.standard_normal(shape), self.rng.standard_normal((n, *shape)))]
            for language, vector in zip(self.languages, self.vectors, strict=True)
        }
        order = self.rng.permutation(n)
        self.seen = {
            Cell("one" if rank % 2 else "two", self.languages[i]): SIZES[rank // 2 % len(SIZES)]
            for rank, i in enumerate(order)
        }
        self.inventory = Inventory.of(dict.fromkeys(("one", "two"), tuple("ABCD")), self.languages)

    def words(self, cell: Cell, n_sentences: int) -> Labelled:
        """Sentences of a cell, with labels drawn from its true head."""
        x = self.rng.standard_normal((n_sentences * N_WORDS, N_FEATURES))
        logits = np.c_[x, np.ones(len(x))] @ self.heads[cell].T
        gold = (logits + self.rng.gumbel(size=logits.shape)).argmax(1)
        inputs = FeatureInputs(torch.tensor(x, dtype=torch.float32), torch.full((n_sentences,), N_WORDS))
        return Labelled(inputs, torch.from_numpy(gold))


def trained(world: World, train: Mapping[Cell, Labelled], dev: Mapping[Cell, Labelled], config: Config) -> Model:
    """A model of the config's method, given the true similarity of languages."""
    model = build_model(config, world.inventory, set(train), FeatureEncoder(N_FEATURES))
    vectors = dict(zip(world.languages, world.vectors.astype(np.float32), strict=True))
    match model.heads:
        case FactorizedHeads() as heads:
            heads.anchor(vectors)
        case KernelHeads() as heads:
            heads.describe(vectors)
        case _:
            pass
    Trainer(model, train, dev, config).run()
    return model


def variance(model: Model, cell: Cell) -> float:
    """The variance of a head's parameters, mean over parameters."""
    with torch.no_grad():
        (head,) = model.heads.sample([cell], 400, torch.Generator().manual_seed(0))
        return float(torch.as_tensor(getattr(head, "parameters", torch.zeros(2))).var(0).mean())


def measured(model: Model, tests: Mapping[Cell, Labelled], n_samples: int) -> dict[str, float]:
    """Measures over all words of the unseen cells, and the correlation over cells."""
    probabilities, gold, points = [], [], []
    for cell, data in tests.items():
        found = predict(model, data.inputs, cell, n_samples)
        right = (found.labels == data.labels).double().mean()
        points.append((float(found.entropy.mean()), float(right)))
        probabilities.append(found.probabilities.numpy().astype(np.float64))
        gold.append(data.labels.numpy())
    p, y, pairs = np.concatenate(probabilities), np.concatenate(gold), np.array(points)
    right = p.argmax(1) == y
    return {
        "accuracy": 100 * float(right.mean()),
        "nll": uncertainty.nll(p, y),
        "ece": uncertainty.reliability(p.max(1), right).error(),
        "aurc": uncertainty.aurc(p.max(1), right),
        "entropy_r": correlation(pairs[:, 0], pairs[:, 1]).r,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[dict]] = {}
    for seed in arguments.seeds:
        world = World(seed)
        train = {cell: world.words(cell, n) for cell, n in world.seen.items()}
        dev = {cell: world.words(cell, 20) for cell in world.seen}
        unseen = [cell for cell in world.heads if cell not in world.seen]
        tests = {cell: world.words(cell, 50) for cell in unseen}
        for method in arguments.methods:
            config = load_run_config(Path("configs/frozen.yaml"), method)
            config = config.change({"training.steps": arguments.steps, "training.seed": seed})
            config = config.change({"latents.size": len(world.languages), "latents.prior": "standard"})
            model = trained(world, train, dev, config)
            row: dict = {"plug_in": measured(model, tests, 0), "averaged": measured(model, tests, 100)}
            if model.heads.has_posterior:
                base = np.mean([variance(model, cell) for cell in unseen])
                by_size = {n: [variance(model, c) for c, m in world.seen.items() if m == n] for n in SIZES}
                row["variance"] = {str(n): float(np.mean(values) / base) for n, values in by_size.items()}
            if isinstance(model.heads, FactorizedHeads):
                start = build_model(config, world.inventory, set(train), FeatureEncoder(N_FEATURES)).heads
                assert isinstance(start, FactorizedHeads)
                index = torch.arange(len(world.languages))
                (mean, now, _), (_, before, _) = model.heads.languages.moments(index), start.languages.moments(index)
                size = {cell.language: n for cell, n in world.seen.items()}
                for n in SIZES:
                    rows = [i for i, language in enumerate(world.languages) if size[language] == n]
                    moved = {"variance": (now / before)[rows].mean(), "mean": mean[rows].norm(dim=1).mean()}
                    row.setdefault("latents", {})[str(n)] = {name: float(value) for name, value in moved.items()}
            found.setdefault(method, []).append(row)
    print(
        json.dumps(
            {"benchmark": "posteriors", "seeds": arguments.seeds, **{m: over_seeds(r) for m, r in found.items()}}
        )
    )


def over_seeds(rows: list) -> object:
    """The mean of equally nested numbers."""
    if isinstance(rows[0], dict):
        return {key: over_seeds([row[key] for row in rows]) for key in rows[0]}
    return round(float(np.mean(rows)), 4)


if __name__ == "__main__":
    main()
