"""What do bulk tagging and encoding cost, and does the formula agree with runs of one worker and of two?

    python benchmarks/scale_bulk.py [--words 1e9] [--languages 1000]

    seconds of a core per word = 2 · 12 · layers · width² · pieces / (share · speed) + text

The share of a core's speed (a plain matrix product) that the network reaches, and the seconds for text (cutting,
aligning, deciding, writing), are fitted to the runs of one worker in benchmarks/bulk.json; the rest is computed. One
JSON line.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BYTES_READ, BYTES_WRITTEN, HALF = 6.5, 90, 2
"""Bytes of text per word, and of JSON lines with one cell; bytes of a number in the cache of features."""
SHARD = 512_000
DEVICE_SHARE = 0.4
"""The share of a device's peak that is reached; a guess, as in scale_costs.py."""
DEVICES = {"T4": 65e12, "L4": 121e12, "A100": 312e12, "H100": 989e12}
"""Makers' figures for half precision without sparsity, in operations per second."""
MBERT = (12, 768, 1.5)
"""Layers, width and pieces per word."""


@dataclass(frozen=True)
class Speed:
    """What is fitted."""

    share: float
    """Of the speed of a plain matrix product that the network reaches on a core."""
    text: float
    """Seconds of a core per word, besides the network."""
    operations: float
    """Operations per second of a core in a plain matrix product."""

    def word(self, layers: int, hidden: int, pieces: float) -> float:
        """Seconds of a core per word."""
        return operations(layers, hidden, pieces) / (self.share * self.operations) + self.text


def operations(layers: int, hidden: int, pieces: float) -> float:
    """Operations of the encoder's layers per word; attention over short sentences is left out."""
    return 2 * 12 * layers * hidden**2 * pieces


def fit(found: dict[str, Any]) -> Speed:
    """Least squares of relative errors over the runs with one worker."""
    points = [p for p in found["points"] if p["workers"] == 1]
    seconds = np.array([p["word_seconds"] for p in points])
    work = np.array([operations(p["layers"], p["hidden"], p["pieces_per_word"]) for p in points])
    design = np.stack([work, np.ones(len(points))], 1) / seconds[:, None]
    slope, text = np.linalg.lstsq(design, np.ones(len(points)), rcond=None)[0]
    return Speed(1 / (slope * found["operations_per_second"]), float(text), found["operations_per_second"])


def errors(found: dict[str, Any], speed: Speed) -> list[dict[str, Any]]:
    """Predicted and measured seconds of a core per word, for every run."""
    rows = []
    for point in found["points"]:
        predicted = speed.word(point["layers"], point["hidden"], point["pieces_per_word"])
        rows.append(point | {"predicted": predicted, "error": predicted / point["word_seconds"] - 1})
    return rows


def costs(words: float, languages: int, speed: Speed) -> dict[str, Any]:
    """What so many words of so many languages take with mBERT."""
    core = speed.word(*MBERT)
    work = operations(*MBERT)
    devices = {}
    for name, peak in DEVICES.items():
        each = work / (DEVICE_SHARE * peak)
        devices[name] = {
            "words_per_second": round(1 / each),
            "cores_for_text": math.ceil(speed.text / each),
            "hours": round(words * each / 3600, 2),
        }
    shards = languages * math.ceil(words / languages * BYTES_READ / SHARD)
    return {
        "words_per_second_and_core": round(1 / core),
        "core_hours": round(words * core / 3600),
        "core_hours_for_text": round(words * speed.text / 3600, 1),
        "devices": devices,
        "shards": shards,
        "gigabytes_read": round(2 * words * BYTES_READ / 1e9),
        "gigabytes_written": round(words * BYTES_WRITTEN / 1e9),
        "gigabytes_of_features": round(words * MBERT[1] * HALF / 1e9),
        "lost_worker_seconds": round(SHARD / BYTES_READ * core / 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=float, default=1e9)
    parser.add_argument("--languages", type=int, default=1000)
    arguments = parser.parse_args()
    found = json.loads(Path(__file__).with_name("bulk.json").read_text(encoding="utf-8"))
    speed = fit(found)
    rows = errors(found, speed)
    told = {"benchmark": "scale_bulk", "share": round(speed.share, 3), "text_microseconds": round(1e6 * speed.text, 1)}
    told["worst"] = round(max(abs(row["error"]) for row in rows), 3)
    print(json.dumps(told | {"costs": costs(arguments.words, arguments.languages, speed), "points": rows}))


if __name__ == "__main__":
    main()
