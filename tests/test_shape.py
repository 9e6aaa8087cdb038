"""The size of the house: measures are right on a small package, and the project keeps below its ceilings."""

from pathlib import Path

import pytest
from tools import shape


@pytest.fixture
def house(tmp_path: Path) -> dict[str, shape.Module]:
    files = {
        "__init__.py": "",
        "cli/__init__.py": "",
        "cli/predict.py": "from crossfill.data import readers\n\ndef load(): ...\n",
        "data/__init__.py": "",
        "data/readers.py": "def load(a, *, b): ...\ndef build(): ...\ndef late():\n    import crossfill.data.lines\n",
        "data/lines.py": "class Line: ...\n" + "x = 1\n" * 70,
        "methods/__init__.py": "",
        "methods/lines.py": "def load(a, b, c, d, e, f, g, h): ...\ndef build(): ...\nclass _Line: ...\n",
        "methods/heads.py": "class Heads:\n    def draw(self, a, b, c, d, e, f, g): ...\n",
    }
    for name, text in files.items():
        path = tmp_path / "crossfill" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return shape.modules(tmp_path)


def test_rooms_count_lines_and_files(house: dict[str, shape.Module]) -> None:
    assert shape.rooms(house) == {"cli": (3, 2), "crossfill": (0, 1), "data": (75, 3), "methods": (5, 3)}


def test_names_of_an_interface_and_of_commands_may_recur(house: dict[str, shape.Module]) -> None:
    assert shape.names_defined_twice(house) == {"load": ["crossfill.data.readers", "crossfill.methods.lines"]}
    assert list(shape.module_names_used_twice(house)) == ["lines"]


def test_self_is_no_parameter_and_seven_are_not_too_many(house: dict[str, shape.Module]) -> None:
    assert shape.long_parameter_lists(house) == {"crossfill.methods.lines.load": 8}


def test_imports_inside_functions_count(house: dict[str, shape.Module]) -> None:
    assert shape.behind(house, "crossfill.cli.predict") == {"crossfill.data.readers", "crossfill.data.lines"}
    assert shape.lonely_modules(house) == {"crossfill.data.readers": "crossfill.cli.predict"}


def test_the_house_keeps_below_its_ceilings() -> None:
    measured = shape.measure(shape.modules())
    assert measured.keys() == shape.CEILINGS.keys()
    assert {what: value for what, value in measured.items() if value > shape.CEILINGS[what]} == {}
