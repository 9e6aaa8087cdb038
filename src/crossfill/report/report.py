"""The report of a study: every table and figure as files, and one HTML page of all of them."""

import base64
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from crossfill.files import write_atomically
from crossfill.progress import duration
from crossfill.report import figures
from crossfill.report.figures import Drawing
from crossfill.report.rendering import Table, html, markdown, method_label
from crossfill.report.tables import make_tables
from crossfill.studies.run_folder import StudyResults, open_results

FIGURES: tuple[Callable[[StudyResults], list[Drawing]], ...] = (
    figures.draw_bars,
    figures.draw_heatmap,
    figures.draw_entropies,
    figures.draw_entropy_scores,
    figures.draw_reliability,
    figures.draw_risk_coverage,
    figures.draw_posteriors,
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
    tables, sections = make_tables(results), []
    for table in tables:
        write_atomically(out / "tables" / f"{table.name}.md", markdown(table).encode())
        sections.append((table.name, table.title, html(table)))
    drawings = [drawing for draw in FIGURES for drawing in draw(results)]
    for drawing in drawings:
        picture, alt = base64.b64encode(drawing.save(out / "figures")).decode(), escape(drawing.alt)
        image = f'<img loading="lazy" src="data:image/png;base64,{picture}" alt="{alt}">'
        figure = f"<figure>{image}<figcaption>{alt}</figcaption></figure>"
        sections.append((f"figure-{drawing.name}", drawing.title, figure))
    page = Template(files("crossfill.report").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(results.study.get("title") or "A study of empty cells"),
        summary=_summary(results),
        links=" ".join(f'<a href="#section-{name}">{escape(title)}</a>' for name, title, _ in sections),
        sections="\n".join(
            f'<section id="section-{name}"><h2>{escape(title)}</h2>\n{body}</section>' for name, title, body in sections
        ),
    )
    write_atomically(out / "report.html", page.encode())
    return Report(tables, drawings, out / "report.html", len(results.missing))


def _summary(results: StudyResults) -> str:
    jobs = [job["measured"] for job in results.jobs.values()]
    facts = {
        "methods": ", ".join(map(method_label, results.methods)),
        "grid": f"{len(results.tasks)} tasks ({', '.join(results.tasks)}), {len(results.languages)} languages",
        "partitions": ", ".join(dict.fromkeys(entry.partition for entry in results.entries)),
        "seeds": ", ".join(map(str, results.seeds)),
        "encoder": ", ".join(sorted({results.encoder(entry) for entry in results.entries})),
        "work": f"{len(jobs)} trainings, "
        f"{duration(sum(job['train_seconds'] + job['evaluate_seconds'] for job in jobs))} in all",
        "made with": ", ".join(f"{name} {version}" for name, version in jobs[0]["versions"].items()),
    }
    text = f"<dl>{''.join(f'<dt>{name}</dt><dd>{escape(value)}</dd>' for name, value in facts.items())}</dl>"
    if results.missing:
        text += f"<p class=warning>{len(results.missing)} of {len(results.plan['jobs'])} jobs have no result yet; "
        text += "what follows is without them.</p>"
    return text
