"""Build the documentation: written pages, pages made from the code and notebooks, as one site.

    python tools/build_site.py site

Everything is gathered in a scratch folder, in which Zensical builds strictly; the site takes the place of the old one.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import notebooks
import reference
import yaml

ROOT = Path(__file__).parents[1]
SETTINGS = "mkdocs.yml"


def gather(folder: Path) -> None:
    """Put all that the site is made from into a folder."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / SETTINGS, folder / SETTINGS)
    (folder / "src").symlink_to(ROOT / "src")
    for name, text in (reference.pages() | notebooks.pages()).items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")


def unlisted(folder: Path) -> list[str]:
    """Pages that the navigation lacks, and entries of it that are no pages."""
    listed = set(_entries(navigation(folder)))
    written = {str(path.relative_to(folder / "docs")) for path in (folder / "docs").rglob("*.md")}
    return [f"{SETTINGS}: nav lacks {name}" for name in sorted(written - listed)] + [
        f"{SETTINGS}: nav has {name}, which is no page" for name in sorted(listed - written)
    ]


def navigation(folder: Path) -> list[dict[str, object]]:
    """The sections of the site and their pages."""
    return yaml.safe_load((folder / SETTINGS).read_text(encoding="utf-8"))["nav"]


def llms(folder: Path) -> str:
    """List the pages with their first sentence, for programs that read for people (llmstxt.org)."""
    settings = yaml.safe_load((folder / SETTINGS).read_text(encoding="utf-8"))
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    for section in navigation(folder):
        for title, pages in section.items():
            lines += ["", f"## {title}", ""]
            for name in dict.fromkeys(_entries(pages)):
                text = (folder / "docs" / name).read_text(encoding="utf-8")
                heading = next((line[2:] for line in text.splitlines() if line.startswith("# ")), name)
                paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
                first = next((one for one in paragraphs if one[:1].isalpha()), "")
                sentence = re.split(r"(?<=[.:]) ", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first))[0]
                lines.append(f"- [{heading}]({name.removesuffix('.md')}.html)" + (f": {sentence}" if sentence else ""))
    return "\n".join(lines) + "\n"


def _entries(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ()
    return [name for part in parts for name in _entries(part)]


def main() -> None:
    """Build the site, or say what is wrong; the exit code is then 1."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        gather(folder)
        if problems := unlisted(folder):
            sys.exit("\n".join(problems))
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / SETTINGS)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit((done.stdout + done.stderr).partition("Traceback")[0])
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
        (site / "llms.txt").write_text(llms(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
