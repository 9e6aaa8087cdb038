"""Options and arguments that several commands share, each with one help text."""

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Literal

import typer

QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether the command runs as `crossfill --quiet COMMAND`: without progress and messages on what it chose."""

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""
MOST_SEED = 2**32 - 1

DataFolder = Annotated[Path, typer.Argument(help="Folder of corpora: <task>/<language>/train.*, UD, WikiANN.")]
ModelFolder = Annotated[Path, typer.Argument(help="Folder of a trained model, or its name on the hub, as me/tagger.")]

OneCell = Annotated[str, typer.Option("--cell", help="The cell, as ner/wol.")]
Cells = Annotated[list[str] | None, typer.Option("--cell", help="Cell to tag in, as ner/wol; repeatable.")]
Tasks = Annotated[list[str] | None, typer.Option("--task", help="Only this task; repeatable. deprel, feats:Case, …")]
Seed = Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of random splits and subsets of the data.")]
MaxTrain = Annotated[int | None, typer.Option(min=1, help="Most training sentences per corpus.")]
Config = Annotated[Path | None, typer.Option(help="YAML file of settings or of a study: configs/frozen.yaml.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="A setting, as training.steps=500; repeatable.")]
Executor = Annotated[Literal["local", "ray"], typer.Option(help="Run on local processes, or on Ray ($RAY_ADDRESS).")]
Jobs = Annotated[int, typer.Option(min=0, help="Jobs at a time; 0 for as many as there are cores.")]
Gpus = Annotated[float, typer.Option(min=0, help="Accelerators per job; a half lets two jobs share one.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is already there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

TextForm = Literal["text", "lines", "words", "conllu", "bio", "jsonl"]
ReadAs = Annotated[
    TextForm | None,
    typer.Option(
        "--from",
        help="Format of the input: text, lines (one sentence per line), words (the same, with words separated by "
        "spaces), conllu, bio or jsonl. [default: by the file's ending]",
    ),
]
WriteAs = Annotated[
    Literal["text", "conllu", "bio", "jsonl"] | None,
    typer.Option("--format", help="Format of the output. [default: that of the input]"),
]
Samples = Annotated[
    int | None, typer.Option(min=0, help="Posterior samples; 0 uses posterior means. [default: the model's]")
]
Distribution = Annotated[bool, typer.Option("--distribution", help="Write the probability of every label.")]
Alpha = Annotated[
    float | None,
    typer.Option(help="Also write label sets that miss the right label for at most this share of words: 0.1."),
]
Abstain = Annotated[
    float | None, typer.Option(help="Mark the least confident share of words as doubtful: 0.2. Needs calibration.")
]
Prefer = Annotated[
    Literal["f1", "precision", "recall"],
    typer.Option(help="Trade precision against recall of spans and values, where the model has rules for it."),
]
