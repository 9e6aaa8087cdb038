"""The golden model tags as it did when it was made, under every major version of transformers that is supported."""

import sys
from pathlib import Path

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
    for path in files:
        assert b"/work/" not in (content := path.read_bytes())
        assert b"/tmp/" not in content
        assert b"/home/" not in content


def test_a_changed_encoder_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """As a dependency would change it: positions that begin at another number."""
    from transformers.models.bert.modeling_bert import BertEmbeddings

    forward = BertEmbeddings.forward

    def shifted(self, input_ids=None, token_type_ids=None, position_ids=None, *args, **kwargs):
        moved = None if input_ids is None else (input_ids.new_ones(input_ids.shape).cumsum(-1))
        return forward(self, input_ids, token_type_ids, moved, *args, **kwargs)

    monkeypatch.setattr(BertEmbeddings, "forward", shifted)
    assert golden.differences()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_tags_as_it_did_under_the_oldest_and_the_newest_transformers(tmp_path: Path):
    versions = golden.supported()
    assert versions
    for version in versions:
        assert golden.check_under(version, tmp_path / version) == f"transformers {version}: no differences\n"
