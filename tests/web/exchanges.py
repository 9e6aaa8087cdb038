"""Requests and answers in the Markdown files next to this one, as tests send and compare them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.pages import blocks

_REQUEST = re.compile(r"(GET|POST) (/\S+)(?:\n\n(.*))?", re.DOTALL)
_ANSWER = re.compile(r"(\d{3}) [A-Z][A-Za-z ]+(?:\n\n(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Exchange:
    """A request, and the answer to it."""

    method: str
    path: str
    body: Any
    status: int
    answer: Any


def exchanges(name: str) -> list[Exchange]:
    """All exchanges in a file: a block with the request, then one with the answer."""
    found, asked = [], None
    for block in blocks(Path(__file__).with_name(name)):
        if block.kind != "text":
            continue
        if request := _REQUEST.fullmatch(block.text):
            asked = (request[1], request[2], json.loads(request[3]) if request[3] else None)
        elif asked and (answer := _ANSWER.fullmatch(block.text)):
            found.append(Exchange(*asked, int(answer[1]), json.loads(answer[2]) if answer[2] else None))
            asked = None
    return found


def alike(shown: Any, got: Any) -> bool:
    """Whether an answer is as shown; fractions may differ, and … within a string stands for anything."""
    if isinstance(shown, dict) and isinstance(got, dict):
        return shown.keys() == got.keys() and all(alike(shown[key], got[key]) for key in shown)
    if isinstance(shown, list) and isinstance(got, list):
        return len(shown) == len(got) and all(map(alike, shown, got))
    if isinstance(shown, float) and isinstance(got, float):
        return 0 <= got <= 1
    if isinstance(shown, str) and isinstance(got, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), got, re.DOTALL) is not None
    return shown == got
