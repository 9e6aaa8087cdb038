"""A cell that is taught over HTTP: how soon what was learned shows, and what that costs those who tag meanwhile.

    python benchmarks/teach.py MODEL [--corrections 500] [--seconds 40]

Sentences are made of the words of the model's examples; their labels are those the model gives them, some changed at
random. `save` is the time of an acknowledged correction, as a client sees it. `learn` is the time from asking the cell
to learn until the next sentence has come, tagged by what was learned, at several numbers of sentences. `tagging` is the
latency of one client that tags the model's examples in other cells, in turns of a few seconds in which the cell learns
all the time and turns in which nobody teaches.
"""

import argparse
import json
import random
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from serve import served

AT = (20, 50, 100, 200)
TURN = 4.0


class Client:
    """A client of the server."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/api/"

    def post(self, path: str, **values: Any) -> Any:
        body = json.dumps(values).encode()
        request = urllib.request.Request(self.address + path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path, timeout=60) as answer:
            return json.load(answer)


def sentences(examples: list[str], n: int) -> list[list[str]]:
    """Different sentences of ten words, all of them words of the examples."""
    vocabulary, rng = sorted({word for text in examples for word in text.split()}), random.Random(0)
    return [[rng.choice(vocabulary) for _ in range(9)] + [f"{vocabulary[0]}{i}"] for i in range(n)]


def memory(pid: int) -> float:
    """The most memory that a process has had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def learn(client: Client, cell: str) -> float:
    """Seconds from asking to learn until the next sentence has come."""
    before, started = client.get(f"teach/progress?cell={cell}")["state"], time.perf_counter()
    client.post("teach/learn", cell=cell)
    while client.get(f"teach/progress?cell={cell}")["state"] == before:
        time.sleep(0.02)
    assert client.post("teach/next", cell=cell)["sentence"] is not None
    return time.perf_counter() - started


def latencies(client: Client, bodies: list[dict], seconds: float) -> list[float]:
    """Latencies of one request after the other."""
    found, end = [], time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        client.post("tag", **bodies[len(found) % len(bodies)])
        found.append(time.perf_counter() - started)
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    """Milliseconds."""
    named = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {name: round(1000 * float(np.quantile(values, q)), 1) for name, q in named.items()}
    return found | {"max": round(1000 * max(values), 1), "n": len(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--corrections", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as taught, served(given.model, "--teach", taught) as (port, pid):
        client = Client(port)
        grid = client.get("grid")
        cell = next(c["cell"] for c in grid["cells"] if c["status"] == "unseen" and c["cell"].startswith("pos/"))
        code = cell.partition("/")[2]
        language = next(entry for entry in grid["languages"] if entry["code"] == code)
        texts = sentences(language["examples"], given.corrections + 40)
        labels = next(task["labels"] for task in grid["tasks"] if cell.startswith(f"{task['name']}/"))
        rng, waiting = random.Random(1), texts[given.corrections :]
        client.post("teach/text", cell=cell, text="\n".join(" ".join(words) for words in waiting))
        saves, learned = [], {}
        for n, words in enumerate(texts[: given.corrections], start=1):
            found = client.post("tag", cells=[cell], sentences=[words])["taggings"][0]["sentences"][0]["labels"]
            right = [rng.choice(labels) if rng.random() < 0.2 else label for label in found]
            started = time.perf_counter()
            client.post("teach/accept", cell=cell, words=words, labels=right)
            saves.append(time.perf_counter() - started)
            if n + 1 in AT:
                while client.get(f"teach/progress?cell={cell}")["busy"]:
                    time.sleep(0.05)
            if n in AT:
                client.post("teach/accept", cell=cell, words=[*words, "x"], labels=[*right, labels[0]])
                while client.get(f"teach/progress?cell={cell}")["busy"]:
                    time.sleep(0.05)
                client.post("teach/accept", cell=cell, words=[*words, "y"], labels=[*right, labels[0]])
                learned[n] = round(learn(client, cell), 3)
        others = [c["cell"] for c in grid["cells"] if not c["cell"].endswith(code)]
        examples = {entry["code"]: entry["examples"] for entry in grid["languages"]}
        bodies = [
            {"cells": [other], "text": rng.choice(examples[other.partition("/")[2]])}
            for other in rng.sample(others, min(len(others), 20))
            if examples[other.partition("/")[2]]
        ]
        latencies(client, bodies, 2)  # heads are drawn
        stopped, busy = threading.Event(), threading.Event()

        def keep_learning() -> None:
            n = 0
            while not stopped.is_set():
                if not busy.wait(0.1):
                    continue
                n += 1
                client.post("teach/accept", cell=cell, words=[f"z{n}"], labels=[labels[0]])
                client.post("teach/learn", cell=cell)
                while busy.is_set() and client.get(f"teach/progress?cell={cell}")["busy"]:
                    time.sleep(0.05)

        teacher = threading.Thread(target=keep_learning)
        teacher.start()
        alone: list[float] = []
        while_learning: list[float] = []
        for _ in range(int(given.seconds / TURN / 2)):
            busy.clear()
            while client.get(f"teach/progress?cell={cell}")["busy"]:
                time.sleep(0.05)
            alone += latencies(client, bodies, TURN)
            busy.set()
            time.sleep(0.2)
            while_learning += latencies(client, bodies, TURN)
        stopped.set()
        teacher.join()
        ratio = np.quantile(while_learning, 0.95) / np.quantile(alone, 0.95)
        print(
            json.dumps(
                {
                    "model": given.model.name,
                    "corrections": client.get(f"teach/progress?cell={cell}")["sentences"],
                    "save_ms": quantiles(saves),
                    "learn_seconds": learned,
                    "tagging_ms": {"alone": quantiles(alone), "while_learning": quantiles(while_learning)},
                    "p95_ratio": round(float(ratio), 2),
                    "most_megabytes": round(memory(pid)),
                }
            )
        )


if __name__ == "__main__":
    main()
