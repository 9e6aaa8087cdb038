"""The API against the tagger, and against requests that are too long, broken, unknown or not allowed."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import requests
from starlette.testclient import TestClient

import crossfill
from crossfill.data.segmentation import Segmenter
from crossfill.grid.cells import Cell
from crossfill.methods.factorized.factorized_heads import FactorizedHeads
from crossfill.methods.registry import build_model
from crossfill.prediction.tagging import TaggingOptions
from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app, describe_grid
from crossfill.web.engine import SampledHeads
from crossfill.web.serve_settings import ServeSettings
from tests.scenarios import INVENTORY, SEEN, SMALL
from tests.web.servers import running

SECRET = "zebra-crossing"
TEXT = f"Dakar mooy péeyu {SECRET}. Dakar!"


def tag(client: TestClient, **request):
    return client.post("/api/tag", json=request)


def test_answers_are_the_taggers(client: TestClient, tagger: Tagger):
    answer = tag(client, cells=["pos/wol", "ner/fin"], text=TEXT, samples=9, distributions=True)
    assert answer.status_code == 200
    found = answer.json()
    assert found["samples"] == 9
    sentences = list(Segmenter("wol").split_text(TEXT))
    assert [sentence["words"] for sentence in found["sentences"]] == [list(s.words) for s in sentences]
    for part, cell in zip(found["taggings"], ("pos/wol", "ner/fin"), strict=True):
        assert (part["cell"], part["seen"]) == (cell, Cell.parse(cell) in tagger.seen)
        for given, expected in zip(
            part["sentences"], tagger.tag_many(sentences, cell, 9, TaggingOptions(interval=0.9)), strict=True
        ):
            assert tuple(given["labels"]) == expected.labels
            assert tuple(part["label_names"]) == expected.task.labels
            for name in ("confidence", "entropy", "mutual_information", "probabilities"):
                np.testing.assert_allclose(given[name], getattr(expected, name), atol=2e-6)
            assert expected.bounds is not None
            np.testing.assert_allclose([given["low"], given["high"]], expected.bounds, atol=2e-6)
            assert [s["type"] for s in given["spans"]] == [s.type for s in expected.spans]


def test_words_come_as_they_are_cut_and_numbers_only_where_asked(client: TestClient, tagger: Tagger):
    found = tag(client, cells=["pos/wo"], sentences=[["a b", "c"], ["d"]], samples=0).json()
    assert [s["words"] for s in found["sentences"]] == [["a b", "c"], ["d"]]
    assert found["taggings"][0]["cell"] == "pos/wol"
    first = found["taggings"][0]["sentences"][0]
    assert first["mutual_information"] == [0, 0]
    assert "probabilities" not in first
    assert tag(client, cells=["pos/wol"], text="a").json()["samples"] == tagger.config.prediction.samples


def test_the_grid_tells_cells_scores_and_where_languages_lie(client: TestClient, tagger: Tagger):
    found = client.get("/api/grid").json()
    cells = {cell["cell"]: cell for cell in found["cells"]}
    assert set(cells) == {str(cell) for cell in tagger.cells}
    scores = {str(result.cell): result for result in tagger.results}
    for name, cell in cells.items():
        assert cell["status"] == ("seen" if Cell.parse(name) in tagger.seen else "unseen")
        assert cell["score"] == (scores[name].score if name in scores else None)
    assert cells["ner/wol"]["score"] is None  # no test data
    languages = {language["code"]: language for language in found["languages"]}
    assert languages["wol"]["name"] == "Wolof"
    assert languages["wol"]["examples"] == ["Dakar mooy péeyu Senegaal ."]
    assert languages["fin"]["examples"][0].startswith("Dakar on")
    assert languages["fin"]["examples"][2] == "Hana Sato lensi Tokiosta Pariisiin."
    heads = tagger.model.heads
    assert isinstance(heads, FactorizedHeads)
    means = heads.language_means().detach().numpy()
    places = np.array([languages[code]["place"] for code in tagger.model.inventory.languages])
    both = [np.linalg.norm(rows[:, None] - rows[None], axis=-1) for rows in (means - means.mean(0), places)]
    assert (both[1] <= both[0] + 1e-3).all()  # a projection
    centred = means - means.mean(0)
    values = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(places, axis=0), values[:2], atol=1e-3)
    np.testing.assert_allclose(found["map_shares"], (values**2 / (values**2).sum())[:2], atol=1e-3)
    assert found["limits"] == {"characters": 300, "words": 40, "samples": 50, "cells": 8}


def test_spreads_are_deviations_of_samples(tagger: Tagger):
    import torch

    from crossfill.measures.significance import pca
    from crossfill.web.app import language_map

    heads = tagger.model.heads
    assert isinstance(heads, FactorizedHeads)
    torch.manual_seed(0)
    draws = heads.languages.sample(torch.arange(4), 20_000).detach().numpy()
    directions = pca(heads.language_means().detach().double().numpy(), 2).directions
    expected = (draws @ directions.T).std(0)
    _, spreads, _ = language_map(tagger)
    np.testing.assert_allclose(list(spreads.values()), expected, rtol=0.03)


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        ({"cells": ["pos/wol"], "text": "a" * 301}, 413, "expected at most 300 characters, got 301"),
        ({"cells": ["pos/wol"], "text": "a " * 41}, 413, "expected at most 40 words, got 41"),
        ({"cells": ["pos/wol"], "sentences": [["a"] * 41]}, 413, "expected at most 40 words, got 41"),
        ({"cells": ["pos/wol"], "sentences": [["a" * 301]]}, 413, "expected at most 300 characters"),
        ({"cells": ["pos/wol"], "text": "a", "samples": 51}, 422, "expected at most 50, got 51"),
        ({"cells": ["pos/wol"], "text": "a", "samples": -1}, 422, "samples: "),
        ({"cells": ["pos/wol"], "text": "a", "samples": 1.5}, 422, "samples: "),
        ({"cells": ["pos/wol"] * 9, "text": "a"}, 422, "cells: expected at most 8, got 9"),
        ({"cells": [], "text": "a"}, 422, "cells: "),
        ({"cells": ["pos/wl"], "text": "a"}, 422, "unknown cell 'pos/wl'; did you mean 'pos/wol'?"),
        ({"cells": ["../../etc"], "text": "a"}, 422, "expected a cell as task/language"),
        ({"cells": ["pos/wol"]}, 422, "expected text or sentences"),
        ({"cells": ["pos/wol"], "text": "a", "sentences": [["a"]]}, 422, "expected text or sentences"),
        ({"cells": ["pos/wol"], "text": " \n "}, 422, "expected at least one word"),
        ({"cells": ["pos/wol"], "sentences": [[]]}, 422, "expected at least one word"),
        ({"cells": ["pos/wol"], "sentences": [["a", ""]]}, 422, "got an empty one"),
        ({"cells": ["pos/wol"], "text": "a", "more": 1}, 422, "more: "),
        ({"cells": "pos/wol", "text": "a"}, 422, "cells: "),
        ([], 422, ""),
    ],
)
def test_what_cannot_be_answered_is_told(client: TestClient, request_, status, message):
    answer = client.post("/api/tag", json=request_)
    assert answer.status_code == status
    assert message in answer.json()["message"]
    assert answer.headers["x-crossfill-version"] == crossfill.__version__


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b'{"cells": ["pos/wol"], "text": "\xff\xfe"}', 400),
        ('{"cells": ["pos/wol"], "text": "a"}'.encode("utf-16"), 400),
        (b'{"cells": ["pos/wol"], "text": "\\ud800"}', 400),
        (b"[" * 100_000, 413),
        (b"[" * 5_000, 400),
        (b'{"cells": ["pos/wol"], "samples": 1e400, "text": "a"}', 422),
        (b'{"cells": ["pos/wol"], "samples": 123456789012345678901234567890, "text": "a"}', 422),
        (b'{"cells": ["pos/wol"], "text": "a\\u0000b\\u202e"}', 200),
    ],
)
def test_broken_bodies(client: TestClient, body: bytes, status: int):
    answer = client.post("/api/tag", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert (status == 200) == ("taggings" in answer.json())


def test_long_bodies_are_refused_before_and_while_they_arrive(client: TestClient):
    most = ServeSettings(max_characters=300, max_words=40).max_bytes
    headers = {"content-type": "application/json"}
    assert client.post("/api/tag", content=b"x" * (most + 1), headers=headers).status_code == 413

    def chunks():
        for _ in range(most // 1000 + 2):
            yield b"x" * 1000

    assert client.post("/api/tag", content=chunks(), headers=headers).status_code == 413


def test_only_json_is_read(client: TestClient):
    body = json.dumps({"cells": ["pos/wol"], "text": "a"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client.post("/api/tag", content=body, headers={"content-type": kind})
        assert (answer.status_code, answer.json()["error"]) == (415, "unsupported")


def test_requests_that_take_too_long_are_given_up(tagger: Tagger, monkeypatch):
    app = build_app(tagger, ServeSettings(timeout=0.2))
    real = Tagger.tag_queries
    with TestClient(app, base_url="http://localhost") as client:
        monkeypatch.setattr(Tagger, "tag_queries", lambda *given: time.sleep(0.6) or real(*given))
        answer = tag(client, cells=["pos/wol"], text="a")
        assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
        assert answer.headers["retry-after"]


def test_who_finds_the_line_full_is_told_to_come_again(tagger: Tagger, monkeypatch):
    real, body = Tagger.tag_queries, {"cells": ["pos/wol"], "text": "a"}
    monkeypatch.setattr(Tagger, "tag_queries", lambda *given: time.sleep(0.3) or real(*given))
    with running(build_app(tagger, ServeSettings(queue=2))) as address, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: requests.post(f"{address}/api/tag", json=body, timeout=20), range(8)))
    refused = [answer for answer in found if answer.status_code == 429]
    assert {answer.status_code for answer in found} == {200, 429}
    assert 4 <= len(refused) <= 6  # one at work or two, and two in line
    assert all(answer.headers["retry-after"] == "1" and answer.json()["error"] == "busy" for answer in refused)


def test_heads_are_kept_within_bounds(tagger: Tagger):
    cells = tagger.cells[:3]
    heads = SampledHeads(tagger, most_bytes=2 * tagger.head(cells[0], 5).parameters.nbytes + 10_000)
    first = heads.of(cells[0], 5)
    assert heads.of(cells[0], 5) is first
    for cell in (*cells, *cells):
        heads.of(cell, 300)
        assert heads.n_bytes <= heads._most_bytes
    assert heads.of(cells[0], 5) is not first


@pytest.mark.parametrize(
    ("method", "bayesian"),
    [("pf-lr", True), ("pf-d", True), ("jm", False)],
)
def test_a_model_is_bayesian_if_its_samples_differ(method: str, bayesian: bool):
    config = SMALL.change({"method": method})
    tagger = Tagger(build_model(config, INVENTORY, SEEN), config)
    answer = describe_grid(tagger, "x", {}, ServeSettings())
    assert answer["model"]["bayesian"] is bayesian
    low, high = tagger.tag(["a", "b"], "pos/aaa", options=TaggingOptions(interval=0.9)).bounds
    assert bool((low < high).any()) is bayesian
    assert (answer["languages"][0]["place"] is not None) is method.startswith("pf")
