"""Check a built site: every link and anchor leads somewhere, and no page loads anything from another host.

python tools/check_site.py site
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
"""Elements that make a browser fetch something, and the attribute that says what."""
STYLE_URL = re.compile(r"url\(\s*['\"]?(https?:)?//|@import\s+['\"](https?:)?//")


class Page(HTMLParser):
    """The anchors, links and loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element's anchors, links and loaded resources."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(values[LOADED[tag]])


def problems(site: Path) -> list[str]:
    """All problems of a site."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: expected pages, found none; build the site first"]
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    found.append(f"{where}: loads {link} from another host")
                continue
            target = (
                site / parts.path.lstrip("/") if parts.path.startswith("/") else path.parent / parts.path
            ).resolve()
            target = path if not parts.path else target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{where}: {link} leads to no file")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: {link} leads to no anchor")
    styles = [path for path in sorted(site.rglob("*.css")) if STYLE_URL.search(path.read_text(encoding="utf-8"))]
    return found + [f"{path.relative_to(site)}: loads something from another host" for path in styles]


def main() -> None:
    """Print all problems; exit code 1 if there are any."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    found = problems(site)
    n_pages = len(list(site.rglob("*.html")))
    print(*found, f"{site}: {n_pages} pages, {len(found)} problems", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
