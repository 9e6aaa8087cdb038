"""XML from other programs, read without anything that XML could have it do: no document types, no entities."""

from xml.parsers import expat

from crossfill.errors import DataError

Element = tuple[int, str, dict[str, str]]
"""Depth, name and attributes of an element."""
MOST_CHARACTERS = 200_000


def elements(text: str, what: str, most_characters: int = MOST_CHARACTERS) -> list[Element]:
    """The elements of an XML text in their order; `what` names it in errors."""
    if len(text) > most_characters:
        raise DataError(f"{what}: expected at most {most_characters:,} characters of XML, got {len(text):,}")
    found: list[Element] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        found.append((depth, name, attributes))
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise DataError(f"{what}: expected XML without a document type, got one; remove <!DOCTYPE …>")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DataError(f"{what}: expected XML; {error}") from None
    return found
