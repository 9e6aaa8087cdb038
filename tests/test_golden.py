"""The golden model tags as it did when it was made, under every major version of transformers that is supported."""

import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from tests.pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import golden


def test_it_tags_as_it_did():
    assert golden.differences() == []


def test_it_is_small_and_names_no_machine():
    files = [path for path in golden.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1e6
    assert {path.suffix for path in files} <= {".json", ".md", ".safetensors"}
    here = [str(place).encode() for place in (ROOT, Path.home(), gettempdir())]
    for path in files:
        content = path.read_bytes()
        assert not [place for place in here if place in content]


def test_a_changed_encoder_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """As a dependency would change it: positions that begin at another number."""
    from transformers.models.bert.modeling_bert import BertEmbeddings

    forward = BertEmbeddings.forward

    def shifted(self, input_ids=None, token_type_ids=None, position_ids=None, *args, **kwargs):
        given = input_ids.new_ones(input_ids.shape).cumsum(-1) - 1 if position_ids is None else position_ids
        return forward(self, input_ids, token_type_ids, given + 1, *args, **kwargs)

    monkeypatch.setattr(BertEmbeddings, "forward", shifted)
    assert golden.differences()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_tags_as_it_did_under_the_oldest_and_the_newest_transformers(tmp_path: Path):
    versions = golden.supported()
    assert versions
    for version in versions:
        assert golden.check_under(version, tmp_path / version) == f"transformers {version}: no differences\n"
