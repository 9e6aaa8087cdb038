"""Parquet folders as Hugging Face's own `datasets` reads them; it is installed by hand, for this test alone."""

from pathlib import Path

import pytest

from crossfill.data.folder import load_grid
from crossfill.data.writers import convert_folder
from crossfill.grid.cells import Cell
from tests.data.folders import bio, write

FILES = {
    "ner/wol/train.bio": bio([("Awa", "B-PER"), ("Ndiaye", "I-PER"), ("dem", "O")], [("Ndar", "B-LOC")]),
    "ner/wol/dev.bio": bio([("Dakar", "B-LOC"), ("la", "O")]),
    "ner/wol/test.bio": bio([("Fatou", "B-PER"), ("la", "O")]),
    "pos/wol/train.bio": bio([("Awa", "PROPN"), ("dem", "VERB")]),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore")
def test_datasets_reads_what_is_written_and_its_own_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    data, out = write(tmp_path / "data", FILES), tmp_path / "out"
    convert_folder(data, out, ".parquet")
    found = datasets.load_dataset(str(out / "ner" / "wol"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in found.items()} == {"train": 2, "validation": 1, "test": 1}
    names = found["train"].features["ner_tags"].feature.names
    assert isinstance(found["train"].features["ner_tags"].feature, datasets.ClassLabel)
    assert [names[i] for i in found["train"][0]["ner_tags"]] == ["B-PER", "I-PER", "O"]
    assert found["train"][0]["tokens"] == ["Awa", "Ndiaye", "dem"]
    assert [names[i] for i in found["test"][0]["ner_tags"]] == ["B-PER", "O"]
    again = tmp_path / "again"
    found.save_to_disk(str(again / "ner" / "wol"))
    for split, dataset in found.items():
        (again / "pos" / "wol").mkdir(parents=True, exist_ok=True)
        features = dataset.rename_column("ner_tags", "pos_tags")
        features.to_parquet(str(again / "pos" / "wol" / f"{split}.parquet"))
    grid, first = load_grid(again, cache=False), load_grid(data, cache=False)
    cell = Cell("ner", "wol")
    for name in ("train", "dev", "test"):
        own, given = (getattr(g[cell][0], name) for g in (grid, first))
        assert [(s.words, s.labels) for s in own] == [(s.words, s.labels) for s in given]
        assert len(getattr(grid[Cell("pos", "wol")][0], name)) == len(own)
