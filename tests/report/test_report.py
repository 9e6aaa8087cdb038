"""The report of a small study: every table and figure is there, and the page is whole in itself."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from crossfill.errors import StudyError
from crossfill.measures.significance import pca
from crossfill.report import figures
from crossfill.settings import merged, read_settings
from crossfill.studies.plan import check_study
from crossfill.studies.run import run_study
from crossfill.studies.run_folder import open_results
from tests.studies.studies import SMALL, InlineExecutor

STUDY = Path(__file__).parents[2] / "configs" / "small.yaml"
TASKS = ("chunk", "deprel", "ner", "pos")
FIGURES = {f"bars-{task}" for task in TASKS} | {
    "grid", "entropies", "entropy-score", "reliability", "risk-coverage", "posteriors",
}  # fmt: skip
TABLES = {
    "table1",
    "averaged",
    "table2",
    "calibration",
    "entropy",
    "differences",
    "size",
    "ablations",
    "languages",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """configs/small.yaml, smaller, and an ablation: all that a study can have."""
    folder = tmp_path_factory.mktemp("run")
    values = merged(read_settings(STUDY), {"data": SMALL["data"], "config": SMALL["config"]})
    values["config"]["training"]["steps"] = 4
    values["seeds"] = [0]
    values["partitions"] = [
        p | {"size": p["size"] // 3} if "size" in p else p | {"halves": [1]} for p in values["partitions"]
    ]
    values["ablations"] = [{"name": "rank", "methods": ["pf-lr"], "variants": {"k = 1": {"latents": {"rank": 1}}}}]
    checked = check_study(values)
    outcome = run_study(checked, folder, InlineExecutor())
    assert outcome == {}
    return folder


@pytest.fixture(scope="module")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Its report, made by the command, and what the command said; it must load no torch."""
    out = tmp_path_factory.mktemp("report")
    code = (
        "import sys; from crossfill.cli.app import app; "
        f"app(['report', {str(run)!r}, '--out', {str(out)!r}], standalone_mode=False); sys.exit('torch' in sys.modules)"
    )
    made = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return out, made.stdout


def test_every_table_and_figure_is_there_and_not_empty(report: tuple[Path, str]):
    out, _ = report
    assert {path.stem for path in (out / "figures").glob("*.png")} == FIGURES
    assert {path.stem for path in (out / "tables").glob("*.md")} == TABLES
    for name in FIGURES:
        picture = imread(out / "figures" / f"{name}.png")[..., :3]
        assert (picture < 0.9).any(axis=-1).mean() > 0.005, f"{name} is almost blank"
        assert (out / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    for name in TABLES:
        assert "| ---" in (out / "tables" / f"{name}.md").read_text()


class Page(HTMLParser):
    """Collects what a page asks for, and whether its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.alts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links += [values[name] or "" for name in ("src", "href", "srcset", "data", "action") if name in values]
        if tag == "img":
            self.alts.append(values.get("alt") or "")
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_in_itself(report: tuple[Path, str]):
    text = (report[0] / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp", text)
    assert len(page.alts) == len(FIGURES)
    assert all(len(alt) > 60 and "nan" not in alt for alt in page.alts)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(re.findall(r'id="([^"]+)"', text))
    assert 'name="viewport"' in text
    headings = re.findall("<h2>(.*?)</h2>", text)
    assert len(headings) == len(set(headings)) == len(TABLES) + len(FIGURES)
    assert sum("Table 1" in heading for heading in headings) == 1
    assert "±" not in text  # one seed has no deviation
    assert "prefers-color-scheme:dark" in text


def test_the_command_shows_tables_and_says_where_files_are(report: tuple[Path, str], tmp_path: Path):
    for expected in ("Table 1: scores on unseen cells", "Averaged prediction: scores", "Table 2", "report.html"):
        assert expected in report[1]
    with pytest.raises(StudyError, match="expected the folder of a study"):
        open_results(tmp_path)


def test_samples_of_a_posterior_have_its_moments():
    q = {"mean": [1.0, -2.0], "variance": [0.5, 0.1], "factor": [[0.3], [0.7]]}
    points = np.concatenate([figures.sample(q, seed) for seed in range(200)])
    factor = np.array(q["factor"])
    np.testing.assert_allclose(points.mean(0), q["mean"], atol=0.01)
    np.testing.assert_allclose(np.cov(points.T), np.diag(q["variance"]) + factor @ factor.T, atol=0.01)


def test_principal_components():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4000, 3)) * [3.0, 1.0, 0.1]
    projected, shares, _ = pca(points, 2)
    np.testing.assert_allclose(projected.std(0), [3.0, 1.0], rtol=0.05)
    assert shares[0] == pytest.approx(9 / 10.01, abs=0.02)
