"""Language codes of UD, WikiANN and ISO 639-1 to -3 as ISO 639-3, and names of cells that use them."""

import re
from collections.abc import Collection
from functools import cache, lru_cache

import pycountry

from crossfill.data.labels import task_name
from crossfill.errors import DataError, unknown
from crossfill.grid.cells import Cell

# codes that ISO 639 maps to a macrolanguage, or to another variety than the corpora that use them; codes of Wikipedia
# editions, which WikiANN uses, and withdrawn codes that ISO 639-3 does not list
_VARIETIES = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "ku=kmr gn=gun kv=kpv arc=aii bat-smg=sgs be-tarask=bel be-x-old=bel bh=bho cbk-zam=cbk fiu-vro=vro in=ind "
        "iw=heb ji=yid map-bms=jav mo=ron nds-nl=nds roa-rup=rup roa-tara=nap sh=hbs simple=eng zh-classical=lzh "
        "zh-min-nan=nan zh-yue=yue",
    )
)
# codes of ISO 639-2 for groups of close languages, in which corpora are published (AmericasNLI)
_GROUPS = {"nah": "Nahuatl", "oto": "Otomi"}
_PRIVATE = re.compile(r"q[a-t][a-z]")  # qaa to qtz: UD uses them for code-switching and unlisted languages
_REGION_OR_SCRIPT = re.compile(r"([a-z]{2,3})-(?:[a-z]{2}|[a-z]{4}|[0-9]{3})")


@lru_cache(maxsize=10_000)
def find_language(code: str) -> str | None:
    """Find the ISO 639-3 code for `wo`, `wol`, `zh_yue`, `sr-Latn` and the like; none if it is not a language code."""
    folded = code.lower().replace("_", "-")
    if folded in _VARIETIES:
        return _VARIETIES[folded]
    if variant := _REGION_OR_SCRIPT.fullmatch(folded):
        return find_language(variant[1])
    if is_private(folded) or folded in _GROUPS:
        return folded
    kinds = {2: ("alpha_2",), 3: ("alpha_3", "bibliographic")}.get(len(folded), ())
    entries = (pycountry.languages.get(**{kind: folded}) for kind in kinds)
    return next((entry.alpha_3 for entry in entries if entry), None)


def language_code(code: str) -> str:
    """Return the ISO 639-3 code of a language; an error where there is none."""
    if (language := find_language(code)) is None:
        raise DataError(f"expected a language code of ISO 639, UD or WikiANN, such as wol or wo; got '{code}'")
    return language


def find_language_in(name: str, known: Collection[str]) -> str:
    """Find the language that a user's `name` means: `name` itself if it is known, else its ISO 639-3 code."""
    return name if name in known else find_language(name) or name


def find_cell(name: str | Cell, known: Collection[Cell]) -> Cell:
    """Find the known cell that a user's `name` refers to: `ner/wo` is `ner/wol`, `upos/wol` is `pos/wol`."""
    given = name if isinstance(name, Cell) else Cell.parse(name)
    mapped = Cell(task_name(given.task), find_language(given.language) or given.language)
    for cell in (given, mapped):
        if cell in known:
            return cell
    languages, code = sorted({cell.language for cell in known}), find_language(given.language)
    if code is not None and code not in languages:
        remedy = f"crossfill add-language MODEL --language {code} --text FILE adds it"
        raise DataError(f"{unknown('cell', str(given), languages)}; {language_name(code)} is not among these; {remedy}")
    nearest = sorted(known, key=lambda cell: (cell.task != mapped.task, cell.language != mapped.language, cell))
    raise DataError(unknown("cell", str(given), map(str, nearest)))


def is_private(code: str) -> bool:
    """Tell whether ISO 639-3 reserves a code for private use."""
    return _PRIVATE.fullmatch(code) is not None


@cache
def language_name(code: str) -> str:
    """Return the English name of an ISO 639-3 code, or the code itself where it has none."""
    entry = pycountry.languages.get(alpha_3=code)
    return re.sub(r" \(.*\)", "", entry.name) if entry else _GROUPS.get(code, code)


def language_tag(code: str) -> str:
    """Return the BCP 47 tag of an ISO 639-3 code, for libraries and browsers: the two-letter code if there is one."""
    entry = pycountry.languages.get(alpha_3=code)
    return getattr(entry, "alpha_2", code) if entry else code
