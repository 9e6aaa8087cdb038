"""The page's files, read once at start; no other file can be requested."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    content: bytes
    media_type: str
    etag: str


def load_assets(teach: bool = False) -> dict[str, Asset]:
    """All files of the page by name; the empty name is the page itself. The view to `teach` in has its own."""
    found = {}
    for file in files("crossfill.web").joinpath("static").iterdir():
        if (kind := file.name.rpartition(".")[2]) in _TYPES and (teach or not file.name.startswith("teach")):
            content = file.read_bytes()
            found[file.name] = Asset(content, _TYPES[kind], f'"{hashlib.sha256(content).hexdigest()[:20]}"')
    pages = {"": "index.html", "docs": "docs.html"} | ({"teach": "teach.html"} if teach else {})
    return found | {path: found[name] for path, name in pages.items()}
