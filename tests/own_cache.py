"""No test reads or writes the user's cache: `conftest.py` of a folder takes this fixture in."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("CROSSFILL_CACHE", str(tmp_path / "cache"))
