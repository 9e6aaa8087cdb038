"""Names of languages: ISO 639-3 (`srp`), with a script (`srp-Latn`), and names that a user gives.

Codes of UD, WikiANN and ISO 639-1 to -3 become ISO 639-3. A user's name has a hyphen (`my-dialect`), or is a
glottocode (`stan1295`).
"""

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import Any

import pycountry

from crossfill.data.labels import task_name
from crossfill.errors import DataError, unknown
from crossfill.grid.cells import Cell, without_script

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
_REGION_OR_SCRIPT = re.compile(r"([a-z]{2,3})-([a-z]{2}|[a-z]{4}|[0-9]{3})")
_OWN_NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+|[a-z0-9]{4}[1-9][0-9]{3}")  # or a glottocode: stan1295


@lru_cache(maxsize=10_000)
def find_language(code: str) -> str | None:
    """Find the code for `wo`, `wol`, `zh_yue`, `sr-Latn` (`srp-Latn`), `pt-BR` (`por`); none if it is no code.

    With an underscore (`srp_Latn`), as FLORES has it for every language, a script is left out.
    """
    folded = code.lower().replace("_", "-")
    if folded in _VARIETIES:
        return _VARIETIES[folded]
    if variant := _REGION_OR_SCRIPT.fullmatch(folded):
        language = find_language(variant[1])
        if len(variant[2]) != 4 or "_" in code:
            return language
        script = _script(variant[2])
        return f"{language}-{script.alpha_4}" if language and script else None
    if _PRIVATE.fullmatch(folded) or folded in _GROUPS:
        return folded
    kinds = {2: ("alpha_2",), 3: ("alpha_3", "bibliographic")}.get(len(folded), ())
    entries = (pycountry.languages.get(**{kind: folded}) for kind in kinds)
    return next((entry.alpha_3 for entry in entries if entry), None)


def language_code(code: str) -> str:
    """Return the code of a language, or a name of one's own as it is; an error where it is neither."""
    if (language := find_language(code)) is None and not is_own_name(code):
        expected = "a language code, such as wol, wo or srp-Latn, a glottocode, or a name of your own with a hyphen"
        raise DataError(f"expected {expected}, such as my-dialect; got '{code}'")
    return language or code


def is_own_name(name: str) -> bool:
    """Tell whether this is how a user may name a variety without a code: `my-dialect`, `stan1295`."""
    return _OWN_NAME.fullmatch(name) is not None and find_language(name) is None


def find_language_in(name: str, known: Collection[str]) -> str:
    """Find the language that a user's `name` means: `name` itself if it is known, else its ISO 639-3 code."""
    return name if name in known else find_language(name) or name


def find_cell(name: str | Cell, known: Collection[Cell]) -> Cell:
    """Find the known cell that a user's `name` refers to: `ner/wo` is `ner/wol`, `upos/wol` is `pos/wol`."""
    given = name if isinstance(name, Cell) else Cell.parse(name)
    mapped = Cell(task_name(given.task), find_language(given.language) or given.language)
    for cell in (given, mapped, Cell(mapped.task, without_script(mapped.language))):
        if cell in known:
            return cell
    languages, code = sorted({cell.language for cell in known}), find_language(given.language)
    if code is not None and code not in languages:
        remedy = f"crossfill add-language MODEL --language {code} --text FILE adds it"
        raise DataError(f"{unknown('cell', str(given), languages)}; {language_name(code)} is not among these; {remedy}")
    nearest = sorted(known, key=lambda cell: (cell.task != mapped.task, cell.language != mapped.language, cell))
    raise DataError(unknown("cell", str(given), map(str, nearest)))


def _script(code: str) -> Any:
    return pycountry.scripts.get(alpha_4=code.title())


@cache
def language_name(code: str) -> str:
    """Return the English name of a language, `Serbian (Latin)` with its script; the code itself where it has none."""
    if (base := without_script(code)) != code and (script := _script(code[-4:])):
        return f"{language_name(base)} ({script.name.partition(' (')[0]})"
    entry = pycountry.languages.get(alpha_3=code)
    return re.sub(r" \(.*\)", "", entry.name) if entry else _GROUPS.get(code, code)


def language_tag(code: str) -> str:
    """Return the BCP 47 tag of a language, for libraries and browsers: `wo`, `sr-Latn`; `und` where it has none."""
    base = without_script(code)
    entry = pycountry.languages.get(alpha_3=base)
    return (
        getattr(entry, "alpha_2", base) + code[len(base) :]
        if entry
        else code
        if code in _GROUPS or _PRIVATE.fullmatch(code)
        else "und"
    )
