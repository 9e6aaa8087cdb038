"""`crossfill cache clear` asks before it removes what took time to compute."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crossfill.cli.app import main
from crossfill.encoders.cache import FeatureCache, Key


@pytest.fixture
def cache() -> FeatureCache:
    """A cache of two entries, of two encoders."""
    made = FeatureCache()
    for name in ("bert", "xlm"):
        about = {"encoder": name, "layer": None, "pooling": "first", "precision": "float32", "max_pieces": 60}
        made.fetch(Key(about, 3, 2, "<f2"), lambda: [np.ones((3, 2))], label=name)
    return made


def at_a_terminal(answer: bytes) -> subprocess.CompletedProcess[str]:
    """`crossfill cache clear` with an answer typed at it."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "crossfill", "cache", "clear"]
    try:
        return subprocess.run(command, stdin=theirs, capture_output=True, text=True)
    finally:
        os.close(ours)
        os.close(theirs)


def test_it_lists_by_encoder_within_80_columns(cache: FeatureCache, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["crossfill", "cache"])
    with pytest.raises(SystemExit):
        main()
    _, *lines = capsys.readouterr().out.splitlines()
    settings = "    layer last, first piece, float32, windows of 60: 1 corpora, 3 rows, 0.0 MB"
    assert lines == ["  bert (bert)", settings, "  xlm (xlm)", settings]
    assert len(settings) <= 80


def test_yes_clears_and_no_does_not(cache: FeatureCache):
    refused = at_a_terminal(b"n\n")
    assert refused.returncode == 1
    assert "remove 2 entries, 0.0 MB? [y/N]" in refused.stdout
    assert len(cache.entries()) == 2
    agreed = at_a_terminal(b"y\n")
    assert agreed.returncode == 0
    assert "2 entries removed" in agreed.stdout
    assert cache.entries() == []


def test_without_a_terminal_it_needs_to_be_told(cache: FeatureCache, monkeypatch, capsys):
    for options, code, left in (([], 2, 2), (["--encoder", "ber", "--yes"], 0, 1), (["--yes"], 0, 0), ([], 0, 0)):
        monkeypatch.setattr(sys, "argv", ["crossfill", "cache", "clear", *options])
        with Path(os.devnull).open(encoding="utf-8") as nobody, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", nobody)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == code
        assert len(cache.entries()) == left
        if code:
            assert "found no terminal to ask on; add --yes" in capsys.readouterr().err
