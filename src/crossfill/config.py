"""Every setting of a run: frozen, documented and validated where it stands. Defaults are the paper's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from crossfill.errors import ConfigError, unknown
from crossfill.files import shipped

MethodName = str
"""The name of a method; `methods.registry` knows which there are."""
KlSchedule = Literal["constant", "linear", "logistic", "blundell"]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class Settings(BaseModel):
    """A group of settings: frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class PretrainedConfig(Settings):
    """A pretrained encoder, named by hub name or folder. Its defaults are the paper's."""

    mode: Literal["finetune", "partial", "frozen"] = "finetune"
    """`finetune`: all of it trains (paper). `partial`: from layer `freeze_below` up. `frozen`: none of it, cached."""
    layer: NonNegativeInt | Literal["mix"] | None = None
    """Layer whose states are pooled, 0 for the embeddings; none is the last; `mix`: a learned weighted mean of all."""
    pooling: Literal["first", "last", "mean"] = "first"
    """The piece of a word that stands for it, or the mean of its pieces. Causal models want `last`."""
    max_pieces: PositiveInt = 250
    """Pieces that pass the encoder at once, special tokens included; longer sentences pass in overlapping windows."""
    overlap: NonNegativeInt = 50
    """Pieces that two such windows share."""
    freeze_below: PositiveInt = 3
    """`partial` trains from this layer up: 3 freezes the embeddings and layers 1 and 2, as the joint baseline does."""
    centring: Literal["none", "mean", "standard"] = "none"
    """`frozen` subtracts each language's mean vector, or also divides by its standard deviations (`standard`)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Numbers that `frozen` encodes with; bfloat16 is faster where the processor has instructions for it."""
    piece_budget: PositiveInt = 2048
    """Pieces in one batch of `frozen` encoding and of prediction, padding included."""
    checkpoint_gradients: bool = False
    """Compute layers again on the way back instead of keeping them: less memory, a third more time."""


class EncoderConfig(Settings):
    """The network under the heads."""

    name: str = "compact"
    """`compact` (built in, trained from scratch), or a pretrained model's hub name or folder."""
    hidden: PositiveInt = 128
    """Size of a word's vector (`compact` only)."""
    layers: PositiveInt = 2
    """Convolutions over words, each with twice the reach of the one before (`compact` only)."""
    buckets: PositiveInt = 4096
    """Rows of the hashed table of character n-grams (`compact` only)."""
    dropout: Probability = 0.1
    """Dropout on a word's vector."""
    pretrained: PretrainedConfig = PretrainedConfig()


class LatentConfig(Settings):
    """The posteriors over task and language vectors."""

    size: PositiveInt = 100
    """h, the size of a latent vector."""
    rank: PositiveInt = 10
    """k, the columns of B in the low-rank covariance (pf-lr only)."""
    joint: bool = False
    """One low-rank covariance over all languages, and one over all tasks, as in the authors' script (pf-lr only)."""
    mean_scale: NonNegativeFloat = 0.1
    """Means start from N(0, mean_scale²)."""
    rho_range: tuple[float, float] = (0.0, 0.5)
    """ρ starts from the uniform distribution over this range; variances are softplus(ρ)."""
    factor_range: tuple[float, float] = (0.0, 0.5)
    """B starts from the uniform distribution over this range (pf-lr only)."""
    dropout: Probability = 0.0
    """Probability that a training draw of a language vector comes from the prior, which so becomes a language."""
    prior: Literal["standard", "similar"] = "standard"
    """Of a language vector l: `standard` N(0, I) (paper); `similar` N(a, I), so that like languages start alike."""
    similarity: tuple[str, ...] = ("syntax_knn", "centroid")
    """What makes languages alike: blocks of URIEL, read from `sources.vectors`, and `centroid`, their mean features."""


class GeneratorConfig(Settings):
    """The network that makes a cell's head from its task and language vectors."""

    hidden: tuple[PositiveInt, ...] = (400, 768, 768, 768, 768)
    """Widths of the layers between the latents and the head."""
    deviation: NonNegativeFloat = 1.0
    """Last layers start at this share of their usual scale; at 0 all cells of a task start from one shared head."""
    initial_variance: PositiveFloat | None = None
    """Variance of a head's parameters at the start; none leaves the layer at its usual random start (as published)."""


class ObjectiveConfig(Settings):
    """The negative ELBO and how a step estimates it."""

    samples: PositiveInt = 3
    """V, Monte Carlo samples per training step."""
    kl_scale: Literal["words", "published"] = "words"
    """`words`: KL / training words, the ELBO per word. `published`: KL / mini-batches against a batch's mean loss."""
    kl_factor: NonNegativeFloat = 1.0
    """What the KL is multiplied by besides; 1 is the ELBO, more presses latents into fewer bits."""
    kl_schedule: KlSchedule = "constant"
    """Weight of the KL over training: `constant` (paper), `linear` or `logistic` (rising), `blundell` (falling)."""
    cell_sampling: Literal["uniform", "proportional"] = "uniform"
    """`uniform` weighs seen cells equally (paper); `proportional` draws them by words, which is the ELBO itself."""
    head_prior: Literal["tied", "untied"] = "tied"
    """`tied`: the prior of a head is what the generator makes, KL zero (paper). `untied`: N(0, I)."""


class TrainingConfig(Settings):
    """The loop."""

    steps: PositiveInt = 250_000
    """Most steps; early stopping usually ends sooner."""
    batch_sentences: PositiveInt = 8
    """Sentences of a cell per step."""
    cells_per_step: PositiveInt = 1
    """Cells drawn per step; their objectives are averaged."""
    step_tasks: Literal["mixed", "one"] = "mixed"
    """Cells of a step: of all tasks alike, or of `one`, so that its languages are weighed against each other."""
    learning_rate: PositiveFloat = 5e-6
    """Adam's learning rate."""
    latent_learning_rate: PositiveFloat | None = None
    """Learning rate of the posteriors, where it should differ from the rest."""
    deviation_learning_rate: PositiveFloat | None = None
    """Learning rate of the generator's weights, where it should differ: lower keeps cells near their task's head."""
    decay: Literal["constant", "linear"] = "constant"
    """Learning rate over training: constant (paper) or falling linearly to zero at `steps`."""
    weight_decay: NonNegativeFloat = 0.0
    """Decoupled weight decay on everything but the posteriors."""
    clip: PositiveFloat = 5.0
    """Largest norm of a step's gradient."""
    validate_every: PositiveInt = 2500
    """Steps between validations on dev data of seen cells."""
    selection: Literal["seen", "oracle"] = "seen"
    """Whose dev data choose the best weights: seen cells', or (`oracle`, as published) unseen ones': not zero-shot."""
    patience: PositiveInt = 10
    """Validations without a better score before training stops."""
    calibration_share: Probability = 0.0
    """Share of the dev sentences of seen cells that select nothing, so that probabilities can be calibrated on them."""
    checkpoint_every: PositiveInt = 500
    """Steps between checkpoints from which a killed run resumes."""
    seed: int = 0
    """Seed of everything random."""
    device: Literal["auto", "cpu"] = "auto"
    """`auto`: the accelerator that this process is given, if any."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: the encoder computes under autocast; latents, heads and KL stay in float32."""


class SourcesConfig(Settings):
    """How ns, ls and bea find the languages whose heads serve a cell without data."""

    similarity: Literal["uriel", "family", "pos-trigrams"] = "uriel"
    """What makes a source near (ns): URIEL family, area, syntax, phonology (paper); family alone; or POS trigrams."""
    vectors: str | None = None
    """Folder of typological vectors, one table per kind of feature; none looks for `typology/` in the data folder,
    then for the lang2vec package."""
    largest: str = "eng"
    """The language that ls prefers, also where no cell of it is seen; without it, the seen language of most words."""
    cut: bool = True
    """Cut the training set of such an outside language to the words of the task's seen cells together (paper)."""
    vote: Literal["bea", "majority"] = "bea"
    """How the heads of all seen languages decide (bea): by their estimated reliability (paper), or the most votes."""


class JointConfig(Settings):
    """The variants of the joint baseline."""

    members: PositiveInt = 5
    """Heads per task in jm-ensemble."""
    layers: PositiveInt = 2
    """Hidden layers of a head in jm-deep."""
    width: PositiveInt | None = None
    """Units in each of them; none takes as many as give jm-deep the parameters of pf-lr with the same settings."""


class PredictionConfig(Settings):
    """Tagging."""

    samples: int = Field(default=100, ge=0)
    """Posterior samples to average over; 0 plugs in the posterior means."""
    seed: int = 0
    """Seed of those samples."""


class Config(Settings):
    """One reproducible run."""

    method: MethodName = "pf-lr"
    """`pf-lr`, `pf-d` (factorised parameters), `jm` (one head per task), `ns` (nearest source), `ls` (largest source),
    `bea` (all sources vote), and variants of the joint baseline: `jm-dropout`, `jm-ensemble`, `jm-deep`."""
    encoder: EncoderConfig = EncoderConfig()
    latents: LatentConfig = LatentConfig()
    generator: GeneratorConfig = GeneratorConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    sources: SourcesConfig = SourcesConfig()
    joint: JointConfig = JointConfig()
    training: TrainingConfig = TrainingConfig()
    prediction: PredictionConfig = PredictionConfig()

    def change(self, changes: Mapping[str, Any]) -> "Config":
        """The config with some settings changed, each named by its dotted path: `{"training.steps": 500}`."""
        return parse_config(change_values(self.model_dump(), changes)) if changes else self


def parse_config(values: Mapping[str, Any], where: str = "config") -> Config:
    """The config of these nested values; all that is wrong with them is reported at once."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(describe_problem(Config, where, detail) for detail in error.errors())) from None


def merged(values: Mapping[str, Any], changes: Mapping[str, Any], whole: Collection[str] = ()) -> dict[str, Any]:
    """Nested values with others put over them; neither argument is changed. `whole` keys are replaced, not merged."""
    result = dict(values)
    for key, value in changes.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping) and key not in whole:
            value = merged(inner, value)
        result[key] = value
    return result


def read_settings(path: Path) -> dict[str, Any]:
    """The values in a YAML file of settings or of a study.

    A file may name another as its `base`, beside it or one of crossfill's: its own values are put over those of the
    base, group by group. Only `methods` are replaced as a whole, since a study runs those it lists and no others.
    """
    values, names = _read_yaml(path), {shipped(path).resolve()}
    place = shipped(path).parent
    while (base := values.pop("base", None)) is not None:
        beside = place / str(base)
        found = shipped(beside if beside.is_file() else Path(str(base)))
        if found.resolve() in names:
            raise ConfigError(f"{path}: base: expected a file that is not based on this one, got {base}")
        names.add(found.resolve())
        values, place = merged(_read_yaml(found), values, whole=("methods",)), found.parent
    return values


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(shipped(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: expected a YAML file of settings; {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected settings as key: value, got {type(values).__name__}")
    return values


def parse_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Settings as they are typed on a command line, `training.steps=500`, by dotted path; values are YAML."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"expected a setting as key=value, such as training.steps=500; got '{text}'")
        try:
            found[name] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise ConfigError(
                f"{name}: expected a value in YAML, such as 500, mean or [64, 64]; got '{value}'"
            ) from None
    return found


def change_values(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values, some of them changed in place, each named by its dotted path."""
    for path, value in changes.items():
        *groups, name = path.split(".")
        target = values
        for group in groups:
            if target.get(group) is None:
                target[group] = {}
            target = target[group]
            if not isinstance(target, dict):
                raise ConfigError(f"{path}: '{group}' is a setting, not a group of settings")
        target[name] = str(value) if isinstance(value, Path) else value
    return values


def describe_problem(root: type[BaseModel], where: str, detail: Any) -> str:
    """One line on something that is wrong with the values of a model, from pydantic's detail of it."""
    path = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        *groups, name = detail["loc"]
        return f"{where}: {path}: " + unknown("setting", str(name), _model_at(root, groups).model_fields)
    return f"{where}: {path}: {detail['msg'][0].lower()}{detail['msg'][1:]}; got {detail['input']!r}"


def _model_at(model: Any, groups: Sequence[Any]) -> Any:
    """The model that pydantic's location leads to: through fields, optional ones and lists of models."""
    for group in groups:
        if isinstance(group, str) and group in model.model_fields:
            candidates = [model.model_fields[group].annotation]
            while candidates:
                found = candidates.pop()
                if isinstance(found, type) and issubclass(found, BaseModel):
                    model = found
                    break
                candidates += get_args(found)
    return model
