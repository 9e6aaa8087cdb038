"""The report of a study: every table and figure as files, and one HTML page of all of them."""

import base64
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from crossfill.files import write_atomically
from crossfill.progress import duration
from crossfill.report.figures import curves, languages, scores, uncertainty
from crossfill.report.figures.style import Drawing
from crossfill.report.rendering import FORMS, Table, html, method_label
from crossfill.report.tables import make_tables
from crossfill.studies.run_folder import StudyResults, open_results

FIGURES: tuple[Callable[[StudyResults], list[Drawing]], ...] = (
    scores.draw_bars,
    scores.draw_heatmap,
    uncertainty.draw_entropies,
    uncertainty.draw_entropy_scores,
    uncertainty.draw_reliability,
    uncertainty.draw_risk_coverage,
    languages.draw_posteriors,
    languages.draw_language_similarity,
    curves.draw_learning_curves,
    curves.draw_training_curves,
)


class Report(NamedTuple):
    """The tables, figures and page of a report."""

    tables: list[Table]
    drawings: list[Drawing]
    page: Path
    missing: int
    """Jobs that have no result yet."""


def write_report(run: Path, out: Path | None = None) -> Report:
    """Make every table and figure that the run has results for, under `out` or the run folder itself."""
    results, out = open_results(run), out or run
    tables = make_tables(results)
    for table in tables:
        for ending, render in FORMS.items():
            write_atomically(out / "tables" / f"{table.name}.{ending}", render(table).encode())
    drawings = [drawing for draw in FIGURES for drawing in draw(results)]
    for drawing in drawings:
        drawing.save(out / "figures")
    pictures = {d.name: (out / "figures" / f"{d.name}.png").read_bytes() for d in drawings}
    write_atomically(out / "report.html", page(results, tables, drawings, pictures).encode())
    return Report(tables, drawings, out / "report.html", len(results.missing))


STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#555;--line:#d4d4d4;--page:#fff;--band:#f5f6f8;--accent:#0060a8}
@media (prefers-color-scheme:dark){
:root{--ink:#e8e8e8;--soft:#a8a8a8;--line:#3c3f44;--page:#16181b;--band:#1f2226;--accent:#7cc4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:1rem/1.55 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.2rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:.6rem 0}h2{font-size:1.15rem;margin:2.4rem 0 .6rem}
a{color:var(--accent)}
nav{font-size:.9rem;line-height:1.9}nav a{margin-right:.9rem;display:inline-block}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}dt{color:var(--soft)}dd{margin:0}
.scroll{overflow-x:auto;position:relative;max-height:36rem;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-size:.86rem;font-variant-numeric:tabular-nums}
th{position:sticky;top:0;background:var(--band);text-align:left}
th button{all:unset;cursor:pointer;padding:.45rem .7rem;font-weight:600;white-space:nowrap}
th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" ▲"}th[aria-sort=descending] button::after{content:" ▼"}
td{padding:.3rem .7rem;border-top:1px solid var(--line);white-space:nowrap}
.number{text-align:right}tbody tr:hover{background:var(--band)}
td sup{position:absolute;line-height:1.2}
figure{margin:0}
figure img{width:100%;height:auto;background:#fff;border-radius:6px;border:1px solid var(--line);padding:.5rem}
figcaption,.note{color:var(--soft);font-size:.86rem;margin:.4rem 0 0;max-width:62rem}
.warning{border-left:4px solid #d55e00;padding:.4rem .8rem;background:var(--band)}
@media print{.scroll{max-height:none;overflow:visible}nav{display:none}}
"""
SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => { const cell = row.cells[column]; return cell.dataset.value ?? cell.textContent; };
    const ranked = (x, y) => isNaN(x - y) ? String(x).localeCompare(y) : x - y;
    const compare = (a, b) => ranked(key(a), key(b));
    [...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)).forEach(row => body.append(row));
  }));
}
"""


def page(
    results: StudyResults, tables: Sequence[Table], drawings: Sequence[Drawing], pictures: dict[str, bytes]
) -> str:
    """Make the whole page; `pictures` are the PNG files of the drawings by name."""
    title = results.study.get("title") or "A study of empty cells"
    parts = [(table.name, table.title, html(table)) for table in tables]
    parts += [(f"figure-{d.name}", d.title, _figure(d, pictures[d.name])) for d in drawings]
    links = " ".join(f'<a href="#section-{name}">{escape(heading)}</a>' for name, heading, _ in parts)
    sections = "\n".join(
        f'<section id="section-{name}"><h2>{escape(heading)}</h2>\n{body}</section>' for name, heading, body in parts
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n<h1>{escape(title)}</h1>\n"
        f"{_summary(results)}\n<nav aria-label=Contents>{links}</nav>\n{sections}\n</main>\n"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _figure(drawing: Drawing, picture: bytes) -> str:
    data = base64.b64encode(picture).decode()
    alt = escape(drawing.alt, quote=True)
    return (
        f'<figure><img loading="lazy" src="data:image/png;base64,{data}" alt="{alt}">'
        f"<figcaption>{escape(drawing.alt)}</figcaption></figure>"
    )


def _summary(results: StudyResults) -> str:
    jobs = list(results.jobs.values())
    seconds = sum(job["measured"]["train_seconds"] + job["measured"]["evaluate_seconds"] for job in jobs)
    versions = jobs[0]["measured"]["versions"]
    encoders = sorted({results.encoder(entry) for entry in results.entries})
    facts = {
        "methods": ", ".join(method_label(method) for method in results.methods),
        "grid": f"{len(results.tasks)} tasks ({', '.join(results.tasks)}), {len(results.languages)} languages",
        "partitions": ", ".join(dict.fromkeys(entry.partition for entry in results.entries)),
        "seeds": ", ".join(map(str, results.seeds)),
        "encoder": ", ".join(encoders),
        "work": f"{len(jobs)} trainings, {duration(seconds)} in all",
        "made with": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    missing = (
        f"<p class=warning>{len(results.missing)} of {len(results.plan['jobs'])} jobs have no result yet; "
        "what follows is without them.</p>"
        if results.missing
        else ""
    )
    return f"<dl>{listed}</dl>{missing}"
