"""`crossfill demo` end to end, on few steps."""

import json
import subprocess
import sys

from crossfill.baselines.methods import load_model


def test_the_demo_prints_its_story_and_leaves_models_results_and_a_figure(tmp_path):
    out = tmp_path / "demo"
    command = [sys.executable, "-m", "crossfill", "demo", "--out", str(out), "--steps", "4", "--families", "2"]
    command.append("--quiet")
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    for words in ("artificial languages", "Scores on unseen cells", "Does doubt foretell error?", "Tagged by PF-lr"):
        assert words in result.stdout
    results = json.loads((out / "results.json").read_text())
    assert [run["method"] for run in results["methods"]] == ["pf-lr", "pf-d", "jm"]
    n_cells = 4 * results["languages"]
    for run in results["methods"]:
        assert len(run["cells"]) == n_cells
        assert sum(cell["seen"] for cell in run["cells"]) == n_cells // 2
        assert all(0 <= score <= 1 for score in run["unseen"].values())
        assert load_model(out / run["method"])[1].method == run["method"]
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
