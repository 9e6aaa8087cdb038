"""All settings of a run, immutable and validated. Defaults are the paper's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from crossfill.settings import Count, Seed, Settings, change_values, group_of, merged, read_settings, validated

MethodName = str  # `methods.registry` lists all
KlSchedule = Literal["constant", "linear", "logistic", "blundell"]
Decision = Literal["metric", "valid", "argmax"]
"""How probabilities become labels where a metric scores what is found, as F1 does: by a rule fitted to the `metric` on
held-out cells if there is one, as the best `valid` sequence, or by `argmax` for each word (paper)."""
Batch = Annotated[int, Field(ge=1, le=10**5)]  # number of things that are in memory together
Width = Annotated[int, Field(ge=1, le=2**17)]  # of a vector
Rate = Annotated[float, Field(gt=0, le=1000)]
Scale = Annotated[float, Field(ge=0, le=10**9)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
_Bound = Annotated[float, Field(ge=-1000, le=1000)]
Widths = Annotated[tuple[Width, ...], Field(max_length=100)]
SentencePooling = Literal["mean", "attention"]


def _rising(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError("expected a range from low to high")
    return pair


Range = Annotated[tuple[_Bound, _Bound], AfterValidator(_rising)]


class PretrainedConfig(Settings):
    """How a pretrained encoder is used. Defaults are the paper's."""

    mode: Literal["finetune", "partial", "frozen"] = "finetune"
    """`finetune`: train all layers (paper). `partial`: from `freeze_below` up. `frozen`: none, with features cached."""
    layer: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Layer whose states are pooled: 0 the embeddings, none the last."""
    pooling: Literal["first", "last", "mean"] = "first"
    """Piece that represents a word, or the mean of its pieces. Use `last` for causal models."""
    max_pieces: Batch = 250
    """Most pieces in a sequence, special tokens included; longer sentences are encoded in overlapping windows."""
    overlap: Annotated[int, Field(ge=0, le=10**5)] = 50
    """Number of pieces that two consecutive windows share."""
    freeze_below: Annotated[int, Field(ge=1, le=1000)] = 3
    """First layer that `partial` trains: 3 freezes the embeddings and layers 1 and 2, as the joint baseline does."""
    centring: Literal["none", "mean", "standard"] = "none"
    """`mean`: `frozen` subtracts each language's mean vector; `standard`: and divides by its standard deviations."""
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    """Precision that `frozen` encodes in: `bfloat16`, and `int8` on a processor, are faster where it has instructions
    for them."""
    checkpoint_gradients: bool = False
    """Recompute layers in the backward pass instead of storing them: less memory, a third more time."""


class EncoderConfig(Settings):
    """The network that computes the features of words."""

    name: str = "compact"
    """`compact` (built in, trained from scratch), or a pretrained model's hub name or folder."""
    hidden: Width = 128
    """Size of a word's vector (`compact` only)."""
    layers: Annotated[int, Field(ge=1, le=30)] = 2
    """Number of convolutions over words, each reaching twice as far as the one before (`compact` only)."""
    buckets: Annotated[int, Field(ge=1, le=2**26)] = 4096
    """Rows of the hashed embedding table of character n-grams (`compact` only)."""
    dropout: Probability = 0.1
    """Dropout on a word's vector."""
    surface: bool = False
    """Put case, digits, punctuation, length, place and frequency of a word beside its vector (`frozen` only)."""
    sentences: SentencePooling = "mean"
    """Vector of a sentence where a task labels these: the mean of its words', or a learned weighted mean."""
    pretrained: PretrainedConfig = PretrainedConfig()


class HeadsConfig(Settings):
    """What lies between features and the heads of every method."""

    hidden: Widths = ()
    """Widths of the hidden layers that each task has between features and heads; none: heads over the features."""
    dropout: Probability = 0.0
    """Dropout after each hidden layer."""


class LatentConfig(Settings):
    """The posteriors over task and language vectors."""

    size: Width = 100
    """h, the size of a latent vector."""
    rank: Width = 10
    """k, the number of columns of B in the low-rank covariance (pf-lr only)."""
    joint: bool = False
    """One low-rank covariance over all languages, and one over all tasks, as in the authors' script (pf-lr only)."""
    mean_scale: Annotated[float, Field(ge=0, le=1000)] = 0.1
    """Means are initialised from N(0, mean_scale²)."""
    rho_range: Range = (0.0, 0.5)
    """ρ is initialised uniformly over this range; variances are softplus(ρ)."""
    factor_range: Range = (0.0, 0.5)
    """B is initialised uniformly over this range (pf-lr only)."""
    dropout: Probability = 0.0
    """Probability that a training draw of a language vector comes from the prior, so that heads also train for it."""
    prior: Literal["standard", "similar"] = "standard"
    """Prior of a language vector: `standard`, N(0, I) (paper); `similar`, N(a, I), a close for similar languages."""
    similarity: tuple[str, ...] = ("syntax_knn", "centroid")
    """Similarities behind a, averaged: URIEL blocks (`sources.vectors`) and `centroid`, of mean features; jm-kernel
    uses them, too."""


class GeneratorConfig(Settings):
    """The network that generates a cell's head from its task and language vectors."""

    hidden: Widths = (400, 768, 768, 768, 768)
    """Widths of the layers between the latents and the head."""
    dropout: Probability = 0.0
    """Dropout after each of these layers."""
    deviation: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """Factor on the initial weights of the last layers; at 0 all cells of a task start from one shared head."""
    initial_variance: Rate | None = None
    """Initial variance of a head's parameters; none keeps the default random initialisation (as published)."""


class ObjectiveConfig(Settings):
    """The negative ELBO and how a step estimates it."""

    samples: Annotated[int, Field(ge=1, le=1000)] = 3
    """V, the number of Monte Carlo samples per training step."""
    kl_scale: Literal["words", "published"] = "words"
    """`words`: KL / training words, the ELBO per word. `published`: KL / mini-batches, added to a batch's mean loss."""
    kl_factor: Scale = 1.0
    """Further factor on the KL: 1 is the ELBO, larger values keep posteriors closer to the prior."""
    kl_schedule: KlSchedule = "constant"
    """Weight of the KL over training: `constant` (paper), `linear` or `logistic` (rising), `blundell` (falling)."""
    cell_sampling: Literal["uniform", "proportional"] = "uniform"
    """`uniform` weighs seen cells equally (paper); `proportional` weighs them by their words, as in the ELBO itself."""
    head_prior: Literal["tied", "untied"] = "tied"
    """Prior of a head: `tied`, the generated distribution itself, so that its KL is zero (paper); `untied`, N(0, I)."""


class TrainingConfig(Settings):
    """The training loop."""

    steps: Count = 250_000
    """Maximum number of steps; early stopping usually ends training sooner."""
    batch_sentences: Batch = 8
    """Sentences per cell and step."""
    cells_per_step: Batch = 1
    """Cells drawn per step; their objectives are averaged."""
    step_tasks: Literal["mixed", "one"] = "mixed"
    """Cells of a step: from all tasks (`mixed`), or from `one`, so that a step contrasts languages of the same task."""
    learning_rate: Rate = 5e-6
    """Adam's learning rate."""
    encoder_learning_rate: Rate | None = None
    """Learning rate of an encoder that trains, if different."""
    latent_learning_rate: Rate | None = None
    """Learning rate of the posteriors; none takes `learning_rate`."""
    deviation_learning_rate: Rate | None = None
    """Learning rate of the generator, save the biases of its means; a low one keeps cells near their task's head."""
    decay: Literal["constant", "linear"] = "constant"
    """Learning rate over training: constant (paper) or falling linearly to zero at `steps`."""
    weight_decay: Scale = 0.0
    """Decoupled weight decay on all parameters but the posteriors."""
    clip: Annotated[float, Field(gt=0, le=10**9)] = 5.0
    """Largest norm of a step's gradient; larger ones are scaled down."""
    validate_every: Count = 2500
    """Steps between validations on dev data of seen cells."""
    selection: Literal["seen", "oracle"] = "seen"
    """Dev data that select weights: of `seen` cells, or of unseen ones (`oracle`, as published: not zero-shot)."""
    criterion: Literal["score", "likelihood"] = "score"
    """How the best weights are chosen on these data: by tasks' `score` (paper), or by the `likelihood` of labels."""
    patience: Count = 10
    """Validations without improvement before training stops."""
    checkpoint_every: Count | None = None
    """Steps between checkpoints from which a killed run resumes, besides one every half minute."""
    seed: Seed = 0
    """Random seed of initialisation and training."""
    device: Literal["auto", "cpu"] = "auto"
    """`auto`: the accelerator available to this process, if any."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """`bfloat16`: the encoder runs under autocast; latents, heads and KL stay in float32."""


class SourcesConfig(Settings):
    """How ns, ls and bea choose and combine source languages for a cell without data."""

    vectors: str | None = None
    """Folder with a table per kind of feature; none: `typology/` in the data folder, or else the lang2vec package."""
    largest: str = "eng"
    """Language that ls prefers, even if none of its cells is seen; otherwise the seen language with the most words."""


class PredictionConfig(Settings):
    """How labels are predicted."""

    samples: Annotated[int, Field(ge=0, le=10**5)] = 100
    """Posterior samples to average over; 0 plugs in the posterior means."""
    seed: Seed = 0
    """Random seed of these samples."""
    decision: Decision = "metric"
    """How labels are chosen: for the task's `metric`, as the best `valid` sequence, or by `argmax` (paper)."""


class Config(Settings):
    """All settings of one reproducible run."""

    method: MethodName = "pf-lr"
    """`pf-lr`, `pf-d` (factorised parameters), `jm` (one head per task), `ns` (nearest source), `ls` (largest source),
    `bea` (all sources vote), and variants of the joint baseline with vectors of languages: `jm-kernel` (given) and
    `jm-embedding` (learned)."""
    encoder: EncoderConfig = EncoderConfig()
    heads: HeadsConfig = HeadsConfig()
    latents: LatentConfig = LatentConfig()
    generator: GeneratorConfig = GeneratorConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    sources: SourcesConfig = SourcesConfig()
    training: TrainingConfig = TrainingConfig()
    prediction: PredictionConfig = PredictionConfig()

    def change(self, changes: Mapping[str, Any]) -> "Config":
        """Return the config with some settings changed, each named by its dotted path: `{"training.steps": 500}`."""
        return parse_config(change_values(self.model_dump(), changes)) if changes else self


def parse_config(values: Mapping[str, Any], where: str = "config") -> Config:
    """Validate nested values as a config; all problems are reported in one error."""
    return validated(Config, values, where)


def load_run_config(path: Path, method: str | None = None) -> Config:
    """Read the config of one run from a settings file, or of a method of a study: by default pf-lr, or the first."""
    values = read_settings(path)
    if "methods" not in values:
        return parse_config(values, str(path))
    methods = group_of(values, "methods", str(path))
    name = method or ("pf-lr" if "pf-lr" in methods else str(next(iter(methods), "pf-lr")))
    settings = merged(group_of(values, "config", str(path)), {"method": name})
    return parse_config(merged(settings, group_of(methods, name, f"{path}: methods")), str(path))
