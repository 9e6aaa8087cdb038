"""Foreign text for a terminal: control characters are shown, so that none moves the cursor or changes a setting."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_VISIBLE = _PICTURES | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
for _kept in "\t\n":
    del _VISIBLE[ord(_kept)]


def visible(text: str) -> str:
    r"""The text with control characters, save tab and newline, as the pictures that Unicode has for them.

    >>> visible("a\x1b[2Jb")
    'a␛[2Jb'
    """
    return text.translate(_VISIBLE)
