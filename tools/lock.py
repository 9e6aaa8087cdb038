"""Write lock.txt: every package of this environment with the SHA-256 of its files, for pip's --require-hashes.

    .venv/bin/python tools/lock.py

Asks the package index that pip is set up with. torch has a line of its own without hashes: its CPU build comes from an
index of its own, or from a local file. uv.lock and pylock.toml would have the index's address in them, and so be of use
to nobody who has another one.
"""

import re
import subprocess
import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pip._vendor.packaging.version import Version

LOCK = Path(__file__).parents[1] / "lock.txt"
HEAD = "# written by tools/lock.py; installed first, as its CPU build is in an index of its own: torch=={torch}\n"
MARKERS = {"uvloop": ' ; sys_platform != "win32"'}
PLATFORMS = re.compile(r"any|(many)?linux.*_(x86_64|aarch64)|macosx_.*_(arm64|universal2)|win_amd64")
INTERPRETERS = re.compile(r"py3\d*|cp31[1-4]")


def main() -> None:
    """Write the file, or say which packages the index has no hashes of."""
    freeze = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    listed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    pins = dict(re.findall(r"^(\S+)==([^+\s]+)", listed, re.MULTILINE))
    torch = pins.pop("torch")
    command = create_command("download")
    options, _ = command.parse_args(["--quiet", "x"])
    session = command._build_session(options)
    finder = command._build_package_finder(options=options, session=session)
    lines, missing = [HEAD.format(torch=torch)], []
    for name, version in pins.items():
        files = [file for link in links(finder, name) if (file := file_of(link, name, version))]
        hashes = {digest for digest, is_wheel in files if is_wheel} or {digest for digest, _ in files}
        if not hashes:
            missing.append(f"{name}=={version}")
        entry = [f"{name}=={version}{MARKERS.get(name, '')}", *(f"--hash=sha256:{one}" for one in sorted(hashes))]
        lines.append(" \\\n    ".join(entry) + "\n")
    if missing:
        sys.exit(f"expected hashes of every package, found none of {', '.join(missing)}")
    LOCK.write_text("".join(lines), encoding="utf-8")


def links(finder: "object", name: str) -> list[Link]:
    """All files that the index has of a package."""
    collector = finder._link_collector  # pyright: ignore[reportAttributeAccessIssue]

    def read(page: Link) -> list[Link]:
        found = collector.fetch_response(page)
        return [] if found is None else list(parse_links(found))

    sources = collector.collect_sources(project_name=name, candidates_from_page=read)
    return [link for source in sources.index_urls if source for link in source.page_candidates()]


def file_of(link: Link, name: str, version: str) -> tuple[str, bool] | None:
    """The SHA-256 of a file of this version, and whether it is a wheel; none for a system that nobody tests on."""
    is_wheel = link.filename.endswith(".whl")
    try:
        parsed = (parse_wheel_filename if is_wheel else parse_sdist_filename)(link.filename)
    except ValueError:
        return None
    if parsed[0] != canonicalize_name(name) or parsed[1] != Version(version) or link.hash_name != "sha256":
        return None
    if is_wheel and not any(_is_tested(tag) for tag in parsed[3]):
        return None
    return link.hash or "", is_wheel


def _is_tested(tag: "object") -> bool:
    interpreter, abi, platform = str(tag).split("-", 2)
    known = INTERPRETERS.fullmatch(interpreter) and not abi.endswith("t")
    return bool((known or abi == "abi3") and PLATFORMS.fullmatch(platform))


if __name__ == "__main__":
    main()
