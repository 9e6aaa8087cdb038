"""How much faster is a training step of PF-lr than a plain reading of the paper?

    python benchmarks/published_step.py [--steps 20] [--threads 1]

The plain one does what sections 2 and 3 and the appendix of the paper say, in the order in which they say it, with
torch's own parts: a loop over the samples, each through the whole generator; the KL of all tasks and of all languages
in one low-rank covariance, by torch.distributions; torch's Adam. Both have the paper's sizes (h = 100, k = 10, a
generator of 400 and four times 768), 33 languages and given features of 768; steps take turns. Time is CPU time, as
cores are shared. One JSON line.
"""

import argparse
import itertools
import json
import statistics
import time

import torch
from torch import Tensor, distributions, nn
from torch.nn import functional
from train_step import FEATURES, LABELS, SENTENCES, WORDS, make_trainer

LANGUAGES, LATENT, RANK, HIDDEN = 33, 100, 10, (400, 768, 768, 768, 768)


class Posterior(nn.Module):
    """q of all vectors together: a mean, a variance and a factor of low rank."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.mean = nn.Parameter(0.1 * torch.randn(n * LATENT))
        self.rho = nn.Parameter(0.5 * torch.rand(n * LATENT))
        self.factor = nn.Parameter(0.5 * torch.rand(n * LATENT, RANK))

    def distribution(self) -> distributions.LowRankMultivariateNormal:
        return distributions.LowRankMultivariateNormal(self.mean, self.factor, functional.softplus(self.rho))

    def sample(self, row: int) -> Tensor:
        return self.distribution().rsample().view(self.n, LATENT)[row]

    def kl(self) -> Tensor:
        """½ (tr S + m² − d − log |S|), S = diag(δ²) + B Bᵀ."""
        q = self.distribution()
        d = self.mean.numel()
        inner = torch.eye(RANK) + self.factor.T @ (self.factor / functional.softplus(self.rho).unsqueeze(1))
        logdet = torch.logdet(inner) + functional.softplus(self.rho).log().sum()
        return 0.5 * (q.variance.sum() + (self.mean**2).sum() - d - logdet)


class Plain(nn.Module):
    """The model as it is described."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks, self.languages = Posterior(len(LABELS)), Posterior(LANGUAGES)
        widths = (4 * LATENT, *HIDDEN)
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
        self.trunk = nn.Sequential(*(module for layer in layers for module in (layer, nn.ReLU())))
        sizes = [n * (FEATURES + 1) for n in LABELS.values()]
        self.means = nn.ModuleList(nn.Linear(widths[-1], size) for size in sizes)
        self.variances = nn.ModuleList(nn.Linear(widths[-1], size) for size in sizes)

    def loss(self, features: Tensor, labels: Tensor, task: int, language: int, n_samples: int, n_words: int) -> Tensor:
        total = torch.zeros(())
        for _ in range(n_samples):
            t, l = self.tasks.sample(task), self.languages.sample(language)
            hidden = self.trunk(torch.cat([t, l, t - l, t * l]))
            mean = self.means[task](hidden)
            scale = functional.softplus(self.variances[task](hidden)).sqrt()
            theta = (mean + scale * torch.randn_like(scale)).view(-1, FEATURES + 1)
            logits = features @ theta[:, :-1].T + theta[:, -1]
            total = total + functional.cross_entropy(logits, labels)
        return total / n_samples + (self.tasks.kl() + self.languages.kl()) / n_words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    features, labels = torch.randn(SENTENCES * WORDS, FEATURES), torch.randint(LABELS["pos"], (SENTENCES * WORDS,))
    task, seconds = list(LABELS).index("pos"), {}
    for n_samples in (3, 1):
        plain, trainer = Plain(), make_trainer(LANGUAGES, n_samples)
        optimiser = torch.optim.Adam(plain.parameters(), lr=5e-6)

        def take_plain_step(plain=plain, optimiser=optimiser, n_samples=n_samples) -> None:
            language = int(torch.randint(LANGUAGES, ()))
            plain.loss(features, labels, task, language, n_samples, LANGUAGES * len(labels)).backward()
            optimiser.step()
            optimiser.zero_grad()

        times: dict[str, list[float]] = {"plain": [], "ours": []}
        for step in range(arguments.steps + 3):
            for name, advance in (("plain", take_plain_step), ("ours", trainer.advance)):
                started = time.process_time()
                advance()
                if step >= 3:
                    times[name].append(time.process_time() - started)
        seconds[n_samples] = {name: statistics.median(values) for name, values in times.items()}
    told = {
        f"{n} sample{'s' * (n > 1)}": {name: round(1000 * value, 1) for name, value in found.items()}
        | {"speedup": round(found["plain"] / found["ours"], 2)}
        for n, found in seconds.items()
    }
    print(json.dumps({"benchmark": "published_step", "milliseconds": told}))


if __name__ == "__main__":
    main()
