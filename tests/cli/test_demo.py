"""`crossfill demo` end to end, on few steps, and its model served."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import crossfill
from crossfill.evaluation.results import task_means
from crossfill.studies.run_folder import open_results


def test_the_demo_prints_its_story_and_leaves_models_and_results(tmp_path):
    out = tmp_path / "demo"
    command = [sys.executable, "-m", "crossfill", "--quiet", "demo", "--out", str(out), "--serve"]
    command += ["--set", "config.training.steps=4", "--set", "data.synthetic.families=2"]
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["COLUMNS"] = "80"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = next(line for line in process.stderr if line.startswith("http")).split()[0]
        with urllib.request.urlopen(f"{address}api/grid", timeout=60) as answer:
            grid = json.load(answer)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert len(grid["cells"]) == sum(cell["score"] is not None for cell in grid["cells"])
    assert all(len(language["examples"]) == 3 for language in grid["languages"])
    for words in (
        "artificial languages",
        "Scores on unseen cells",
        "Tagged by PF-lr",
    ):
        assert words in stdout
    assert max(map(len, stdout.partition("Tagged by")[0].splitlines())) <= 80
    results = open_results(out)
    for method in results.methods:  # no score is cut
        means = task_means(results.unseen(results.proper(method)))
        assert all(f"{100 * mean:.1f}" in stdout.split() for mean in means.values())
    assert results.methods == ["pf-lr", "pf-d", "jm"]
    n_cells = 4 * len(results.languages)
    for method in results.methods:
        found = results.cells(results.proper(method)[0])
        assert len(found) == n_cells
        assert sum(result.seen for result in found) == n_cells // 2
        tagger = crossfill.load(out / method)
        assert tagger.config.method == method
        assert len(tagger.results) == n_cells
