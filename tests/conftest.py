"""Shapes and types are checked in every test: the hook instruments crossfill before it is first imported."""

from pathlib import Path

import pytest
from jaxtyping import install_import_hook

install_import_hook("crossfill", "beartype.beartype")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("CROSSFILL_CACHE", str(tmp_path / "cache"))
