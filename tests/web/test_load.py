"""Many clients at once against the real server: nothing but 200 and 429, and batches pay."""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve.py"


@pytest.mark.slow
def test_many_clients_are_served_together(model: Path):
    spec = importlib.util.spec_from_file_location("serve_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    bench = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look it up there
    spec.loader.exec_module(bench)
    (model / "examples.json").write_text(json.dumps({code: ["Dakar mooy péeyu Senegaal ."] for code in ("wol", "fin")}))
    found = []
    for options in ((), ("--limit", "batch_requests=1")):
        with bench.served(model, *options) as (port, pid):
            messages = bench.bodies(port, distributions=False)
            asyncio.run(bench.drive(port, pid, messages, 4, 2))
            found.append(asyncio.run(bench.drive(port, pid, messages, 1, 4)))
            found.append(asyncio.run(bench.drive(port, pid, messages, 64, 10)))
    alone, many, _, one_by_one = found
    for load in found:
        assert set(load.statuses) <= {200, 429}
        assert not load.errors
    assert many.quantile(0.95) <= 20 * alone.quantile(0.95)
    assert many.rate >= 3 * one_by_one.rate
    assert many.megabytes[-1] <= 1.1 * many.megabytes[len(many.megabytes) // 4]
