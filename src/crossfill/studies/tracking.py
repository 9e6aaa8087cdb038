"""TensorBoard event files: training curves and scores, written locally; nothing is sent anywhere."""

import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crossfill.errors import ConfigError
from crossfill.evaluation.results import CellResult


def require_tensorboard() -> None:
    """Raise ConfigError if TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise ConfigError("event files need TensorBoard; install it with: pip install 'crossfill[tensorboard]'")


def write_events(
    folder: Path, history: Sequence[Mapping[str, Any]], results: Mapping[str, Sequence[CellResult]]
) -> None:
    """Write an event file: the training curves by step, and at the last step the score of every cell and method."""
    require_tensorboard()
    events: Any = import_module("tensorboard.compat.proto.event_pb2")
    summaries: Any = import_module("tensorboard.compat.proto.summary_pb2")
    writers: Any = import_module("tensorboard.summary.writer.event_file_writer")
    for old in folder.glob("events.out.tfevents.*"):  # from an attempt that was killed
        old.unlink()
    writer = writers.EventFileWriter(str(folder))

    def add(step: int, values: Mapping[str, float]) -> None:
        tagged = [summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        summary = summaries.Summary(value=tagged)
        writer.add_event(events.Event(wall_time=time.time(), step=step, summary=summary))

    for entry in history:
        curves = {f"training/{name}": entry[name] for name in ("nll", "kl", "loss")}
        add(entry["step"], curves | {f"dev/{name}": value for name, value in entry["scores"].items()})
    last = history[-1]["step"] if history else 0
    for method, found in results.items():
        for result in found:
            name = f"{'seen' if result.seen else 'unseen'}/{method}/{result.cell}/{result.corpus}"
            add(last, {name: result.score})
    writer.close()
