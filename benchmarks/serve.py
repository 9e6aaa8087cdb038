"""A served model under load: many clients on loopback, compared with one client and with unbatched requests.

    python benchmarks/serve.py MODEL [--clients 64] [--seconds 60] [--distributions]

Every client sends a sentence, waits for the answer, and sends the next: the model's example sentences, each in a random
cell of its language. `one by one` is the same server with `--limit batch_requests=1` under the same clients. Memory is
the server's resident set, at the end of the first quarter of the time and at its end.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Load:
    """What the clients saw, and the server's memory."""

    statuses: Counter = field(default_factory=Counter)
    errors: Counter = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    def quantile(self, q: float) -> float:
        return float(np.quantile(self.latencies, q)) * 1000


@contextmanager
def served(model: Path, *options: str):
    """Start a server; yields its port and process id."""
    command = [sys.executable, "-m", "crossfill", "--quiet", "serve", str(model), "--port", "0", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            address = process.stderr.readline().split()[0]
            if not address.startswith("http://"):
                raise SystemExit(f"{address} {process.stderr.read()}")
            urllib.request.urlopen(f"{address}api/health", timeout=60).close()
            yield int(address.rstrip("/").rpartition(":")[2]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def bodies(port: int, distributions: bool) -> list[bytes]:
    """The requests: all examples in all cells of their languages, as whole HTTP messages."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/grid") as answer:
        grid = json.load(answer)
    found = []
    for language in grid["languages"]:
        for text in language["examples"]:
            for task in grid["tasks"]:
                cell = f"{task['name']}/{language['code']}"
                body = json.dumps({"cells": [cell], "text": text, "distributions": distributions}).encode()
                head = "POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                head += f"Content-Length: {len(body)}\r\n\r\n"
                found.append(head.encode() + body)
    if not found:
        raise SystemExit("the model has no example sentences; put an examples.json into its folder")
    return found


async def client(port: int, messages: list[bytes], until: float, seed: int, load: Load) -> None:
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (started := time.perf_counter()) < until:
        writer.write(rng.choice(messages))
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
        content = await reader.readexactly(length)
        status = int(lines[0].split()[1])
        load.latencies.append(time.perf_counter() - started)
        load.statuses[status] += 1
        if status == 429:
            await asyncio.sleep(0.05)
        elif status != 200:
            load.errors[content.decode()[:200]] += 1
    writer.close()
    await writer.wait_closed()


async def watch(pid: int, until: float, load: Load) -> None:
    while time.perf_counter() < until:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        load.megabytes.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        await asyncio.sleep(0.5)


async def drive(port: int, pid: int, messages: list[bytes], n_clients: int, seconds: float) -> Load:
    load, started = Load(), time.perf_counter()
    until = started + seconds
    clients = (client(port, messages, until, seed, load) for seed in range(n_clients))
    found = await asyncio.gather(watch(pid, until, load), *clients, return_exceptions=True)
    load.errors.update(repr(error) for error in found if error is not None)
    load.seconds = time.perf_counter() - started
    return load


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--distributions", action="store_true")
    arguments = parser.parse_args()
    short = arguments.seconds / 4
    with served(arguments.model) as (port, pid):
        messages = bodies(port, arguments.distributions)
        asyncio.run(drive(port, pid, messages, 4, min(5, short)))  # warm up: samples the heads
        alone = asyncio.run(drive(port, pid, messages, 1, short))
        many = asyncio.run(drive(port, pid, messages, arguments.clients, arguments.seconds))
    with served(arguments.model, "--limit", "batch_requests=1") as (port, pid):
        asyncio.run(drive(port, pid, messages, 4, min(5, short)))
        one_by_one = asyncio.run(drive(port, pid, messages, arguments.clients, short))
    report = {
        "benchmark": "serve",
        "clients": arguments.clients,
        "seconds": round(many.seconds, 1),
        "statuses": dict(many.statuses),
        "errors": dict(many.errors),
        "requests_per_second": round(many.rate, 1),
        "p50_ms": round(many.quantile(0.5), 1),
        "p95_ms": round(many.quantile(0.95), 1),
        "single_client_p50_ms": round(alone.quantile(0.5), 2),
        "single_client_p95_ms": round(alone.quantile(0.95), 2),
        "p95_ratio": round(many.quantile(0.95) / alone.quantile(0.95), 1),
        "one_by_one_requests_per_second": round(one_by_one.rate, 1),
        "one_by_one_p95_ms": round(one_by_one.quantile(0.95), 1),
        "throughput_ratio": round(many.rate / one_by_one.rate, 2),
        "single_client_requests_per_second": round(alone.rate, 1),
        "megabytes_at_a_quarter": round(many.megabytes[len(many.megabytes) // 4], 1),
        "megabytes_at_the_end": round(many.megabytes[-1], 1),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
