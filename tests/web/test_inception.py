"""The recommender as INCEpTION calls it: requests of its shapes, and the exchanges in inception.md."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from crossfill.data.segmentation import Segmenter
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from tests.integrations.documents import NAMED_ENTITY, POS, type_system, xmi
from tests.integrations.taggings import TEXTS
from tests.web.adapters import asking, knowing_tagger
from tests.web.exchanges import alike, exchanges

pytest.importorskip("cassis")
EXCHANGES = exchanges("inception.md")


@pytest.fixture(scope="module")
def knowing(model: Path) -> Tagger:
    return knowing_tagger(model)


@pytest.fixture(scope="module")
def client(knowing: Tagger) -> Iterator[TestClient]:
    with asking(knowing) as found:
        yield found


def written(value: Any) -> Any:
    """What a page shows, with the XML in place of its names."""
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, str) and value.startswith("XMI of: "):
        text, _, places = value.removeprefix("XMI of: ").partition(" with ")
        found = [(text.index(word), text.index(word) + len(word), "LOC") for word in places.split(" as LOC")[0].split()]
        return xmi(text, list(Segmenter("wol").split_text(text)), found)
    return type_system() if value == "TYPES" else value


def ask(client: TestClient, text: str, cell: str = "ner/wol", layer: str = NAMED_ENTITY, feature: str = "value"):
    metadata = {"layer": layer, "feature": feature, "projectId": 1, "anchoringMode": "tokens", "crossSentence": False}
    content = xmi(text, list(Segmenter("wol").split_text(text)), layer=layer, feature=feature)
    body = {
        "metadata": metadata | {"range": {"begin": 0, "end": len(text)}},
        "document": {"xmi": content, "documentId": 42, "userId": "awa"},
        "typeSystem": type_system(layer, feature),
    }
    return client.post(f"/inception/{cell}/predict", json=body)


@pytest.fixture
def teacher(model: Path, tmp_path: Path) -> Teacher:
    return Teacher(knowing_tagger(model), tmp_path / "corrected", 0)


@pytest.fixture
def taught(teacher: Teacher) -> Iterator[TestClient]:
    with TestClient(build_app(teacher.tagger, None, "model", {}, teacher), base_url="http://localhost") as found:
        yield found


def test_suggestions_from_beginning_to_end(taught: TestClient, teacher: Teacher):
    assert [shown.path.rpartition("/")[2] for shown in EXCHANGES] == ["predict", "train"]
    for shown in EXCHANGES:
        answer = taught.request(shown.method, shown.path, json=written(shown.body))
        assert answer.status_code == shown.status, answer.text
        assert shown.answer is None or alike(shown.answer, answer.json()), answer.json()
    (entry,) = teacher.active("ner/wol")
    assert (entry.who, entry.sentence.words, entry.sentence.labels) == (
        "INCEpTION user awa",
        ("Ndar", "la", "dëkk", "."),
        ("B-LOC", "O", "O", "O"),
    )


def test_training_keeps_what_is_new_and_waits_its_turn(taught: TestClient, client: TestClient, teacher, monkeypatch):
    body = written(EXCHANGES[1].body)
    assert taught.post("/inception/ner/wol/train", json=body).status_code == 204
    teacher.wait("ner/wol", 30)
    assert teacher.version("ner/wol") == "1"
    assert taught.post("/inception/ner/wol/train", json=body).status_code == 204
    assert len(teacher.active("ner/wol")) == 1
    assert not teacher.busy("ner/wol")
    assert teacher.version("ner/wol") == "1"  # nothing was new
    text = "🦁 Awa la. Ndar la dëkk."
    places = [(2, 5, "PER"), (10, 14, "PER")]
    body["documents"].append({"xmi": xmi(text, list(Segmenter("wol").split_text(text)), places), "userId": "a\tb"})
    assert taught.post("/inception/ner/wol/train", json=body).status_code == 204
    found = {entry.sentence.text: (entry.who, entry.sentence.labels) for entry in teacher.active("ner/wol")}
    assert found == {
        "🦁 Awa la.": ("INCEpTION user ab", ("O", "B-PER", "O", "O")),
        "Ndar la dëkk.": ("INCEpTION user ab", ("B-PER", "O", "O", "O")),
    }
    teacher.wait("ner/wol", 30)
    monkeypatch.setattr(teacher, "busy", lambda _: True)
    answer = taught.post("/inception/ner/wol/train", json=body)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert client.post("/inception/ner/wol/train", json=body).status_code == 409
    other = taught.post("/inception/ner/wol/train", json=body, headers={"origin": "https://evil.example"})
    assert other.status_code == 403


def test_an_address_says_that_annotations_are_partial(taught: TestClient, teacher: Teacher):
    for shown in EXCHANGES:
        answer = taught.post(shown.path.replace("/wol/", "/wol/partial/"), json=written(shown.body))
        assert answer.status_code == shown.status, answer.text
    (entry,) = teacher.active("ner/wol")
    assert (entry.sentence.words, entry.sentence.labels) == (("Ndar", "la", "dëkk", "."), ("B-LOC", "", "", ""))


@pytest.mark.parametrize(
    ("cell", "layer", "feature"), [("ner/wol", NAMED_ENTITY, "value"), ("pos/wol", POS, "PosValue")]
)
def test_suggestions_are_the_taggers_in_javas_offsets(client: TestClient, knowing: Tagger, cell, layer, feature):
    text = " ".join(TEXTS)
    answer = ask(client, text, cell, layer, feature)
    package, _, name = layer.rpartition(".")
    found = [
        element.attrib
        for element in ET.fromstring(answer.json()["document"]).iter(
            f"{{http:///{package.replace('.', '/')}.ecore}}{name}"
        )
    ]
    taggings = knowing.tag_many(Segmenter("wol").split_text(text), cell)
    expected = [
        (s.text, s.type, s.confidence) if cell == "ner/wol" else (s.text, s.label, s.confidence)
        for t in taggings
        for s in (t.spans if cell == "ner/wol" else t.words)
    ]
    units = text.encode("utf-16-le")
    got = [
        (
            units[2 * int(values["begin"]) : 2 * int(values["end"])].decode("utf-16-le"),
            values[feature],
            pytest.approx(float(values[f"{feature}_score"]), abs=1e-5),
        )
        for values in found
    ]
    assert expected == got
    assert len(got) > 1


def test_documents_longer_than_a_request_are_tagged_in_parts(client: TestClient):
    answer = ask(client, "Dakar mooy péeyu Senegaal. " * 30)  # 150 words where a request may have 60
    assert answer.status_code == 200
    assert answer.json()["document"].count("NamedEntity ") >= 30


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"typeSystem": "<a/>"}, 422, "TypeNotFoundError"),
        ({"typeSystem": type_system().replace(">value<", ">a=1<")}, 422, "names of letters and digits"),
        ({"metadata": {"layer": "no.Layer", "feature": "value"}}, 422, "expected the layer no.Layer"),
        (
            {"metadata": {"layer": NAMED_ENTITY, "feature": "value", "anchoringMode": "sentences"}},
            422,
            "metadata.anchoringMode: ",
        ),
        ({"metadata": {"layer": NAMED_ENTITY, "feature": "begin"}}, 422, "expected a feature with text as labels"),
        ({"document": {"xmi": "<a/>"}}, 422, "expected one text"),
        ({"document": {"xmi": 3}}, 422, "document.xmi: "),
        ({"document": None}, 422, "document: "),
    ],
)
def test_what_cannot_be_answered_is_told(client: TestClient, change, status, message):
    body = written(EXCHANGES[0].body) | change
    answer = client.post("/inception/ner/wol/predict", json=body)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.json()
    assert client.post("/inception/ner/wl/predict", json=body).status_code == 404


def test_a_missing_extra_is_named(client: TestClient, monkeypatch):
    monkeypatch.setitem(sys.modules, "cassis", None)
    answer = client.post("/inception/ner/wol/predict", json=written(EXCHANGES[0].body))
    assert (answer.status_code, "pip install 'crossfill[inception]'" in answer.json()["message"]) == (422, True)


@pytest.mark.parametrize("feature", ["begin", "end", "sofa", "__class__", "no such"])
def test_a_feature_that_holds_no_label_is_refused(client: TestClient, feature: str):
    body = {
        "metadata": {"layer": NAMED_ENTITY, "feature": feature, "anchoringMode": "tokens"},
        "document": {"xmi": xmi("Awa dem", list(Segmenter("wol").split_text("Awa dem"))), "userId": "awa"},
        "typeSystem": type_system(),
    }
    answer = client.post("/inception/ner/wol/predict", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid")
