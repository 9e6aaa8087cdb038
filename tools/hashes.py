"""Write hashes.txt: the SHA-256 of every file of every pinned version, for pip's --require-hashes.

    python tools/hashes.py

Asks the package index that pip is set up with. torch is left out: its CPU build comes from an index of its own, or from
a local file. Run it after a change of constraints.txt; a test holds the two together.
"""

import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pip._vendor.packaging.version import Version

ROOT = Path(__file__).parents[1]
SKIPPED = ("torch",)


def pins(text: str) -> dict[str, str]:
    """Name and version of every pin but those that are skipped."""
    found = dict(line.split("==") for line in text.split() if "==" in line)
    return {name: version for name, version in found.items() if name not in SKIPPED}


def main() -> None:
    """Write the file, or say which pins the index has no hashes of."""
    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "x"])
    session = command._build_session(options)
    finder = command._build_package_finder(options=options, session=session)
    lines, missing = [], []
    for name, version in pins((ROOT / "constraints.txt").read_text(encoding="utf-8")).items():
        hashes = sorted({digest for link in links(finder, name) if (digest := sha256(link, name, version))})
        if not hashes:
            missing.append(f"{name}=={version}")
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes)]))
    if missing:
        sys.exit(f"expected hashes of every pin, found none of {', '.join(missing)}")
    (ROOT / "hashes.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def links(finder: "object", name: str) -> list[Link]:
    """All files that the index has of a package."""
    collector = finder._link_collector  # pyright: ignore[reportAttributeAccessIssue]

    def read(page: Link) -> list[Link]:
        found = collector.fetch_response(page)
        return [] if found is None else list(parse_links(found))

    sources = collector.collect_sources(project_name=name, candidates_from_page=read)
    return [link for source in sources.index_urls if source for link in source.page_candidates()]


def sha256(link: Link, name: str, version: str) -> str | None:
    """The SHA-256 of a file of this version, as the index gives it."""
    try:
        parsed = parse_wheel_filename if link.filename.endswith(".whl") else parse_sdist_filename
        found = parsed(link.filename)
    except ValueError:
        return None
    if found[0] != canonicalize_name(name) or found[1] != Version(version) or link.hash_name != "sha256":
        return None
    return link.hash


if __name__ == "__main__":
    main()
