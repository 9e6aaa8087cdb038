"""The backend as Label Studio calls it: requests of its shapes, and the exchanges in label_studio.md."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import requests
from starlette.testclient import TestClient

import crossfill
from crossfill.grid.sentence import Sentence
from crossfill.tagger.annotation import candidates, choose
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.integrations.taggings import TEXTS
from tests.web.adapters import asking, knowing_tagger
from tests.web.exchanges import alike, exchanges
from tests.web.servers import running

CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="Person" predicted_values="PER"/><Label value="LOC"/>'
    '</Labels><Text name="text" value="$text"/></View>'
)
TAGS = '<View><Labels name="tag" toName="text"/><Text name="text" value="$text"/></View>'


@pytest.fixture(scope="module")
def knowing(model: Path) -> Tagger:
    return knowing_tagger(model)


@pytest.fixture(scope="module")
def studio(knowing: Tagger) -> Iterator[TestClient]:
    with asking(knowing) as found:
        yield found


def ask(client: TestClient, *texts: str | None, cell: str = "ner/wol", config: str = CONFIG):
    tasks = [{"id": i, "data": {"text": text}, "project": 1} for i, text in enumerate(texts)]
    body = {"tasks": tasks, "project": "1.17634", "label_config": config, "params": {"login": None, "context": None}}
    return client.post(f"/label-studio/{cell}/predict", json=body)


@pytest.fixture
def teacher(model: Path, tmp_path: Path) -> Teacher:
    return Teacher(knowing_tagger(model), tmp_path / "corrected", 0)


@pytest.fixture
def taught(teacher: Teacher) -> Iterator[TestClient]:
    with asking(teacher.tagger, teacher) as found:
        yield found


def test_an_annotation_project_from_beginning_to_end(taught: TestClient, teacher: Teacher):
    for shown in exchanges("label_studio.md"):
        answer = taught.request(shown.method, shown.path, json=shown.body)
        assert answer.status_code == shown.status
        assert alike(shown.answer, answer.json()), answer.json()
        teacher.wait("ner/wol", 30)
    (entry,) = teacher.active("ner/wol")
    assert entry.who == "Label Studio user 1"
    assert (entry.sentence.words, entry.sentence.labels) == (
        ("🦁", "Awa", "dem", "na", "Ndar", "."),
        ("O", "B-PER", "O", "O", "O", "O"),
    )


def region(**value) -> dict:
    """A change of an event: its region has another value."""
    known = {"start": 0, "end": 3, "labels": ["LOC"]} | value
    result = [{"id": "r", "from_name": "label", "to_name": "text", "type": "labels", "value": known}]
    return {"annotation": {"id": 1, "task": 3, "result": result, "completed_by": 1}}


def event(action: str, text: str, *spans: tuple[str, str], task: int = 3, **annotation) -> dict:
    def units(place: int) -> int:
        return len(text[:place].encode("utf-16-le")) // 2

    result = [
        {
            "id": f"r{i}", "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual",
            "value": {"start": units(text.index(word)), "end": units(text.index(word) + len(word)), "labels": [label]},
        }
        for i, (word, label) in enumerate(spans)
    ]  # fmt: skip
    made = {"id": 1, "task": task, "result": result, "completed_by": 1, "was_cancelled": False} | annotation
    project = {"id": 1, "label_config": CONFIG}
    return {"action": action, "annotation": made, "task": {"id": task, "data": {"text": text}}, "project": project}


def test_annotations_are_kept_and_learned_from_at_once(taught: TestClient, teacher: Teacher):
    def send(*arguments, **more) -> tuple[int, str]:
        answer = taught.post("/label-studio/ner/wol/webhook", json=event(*arguments, **more))
        assert answer.status_code == 201, answer.text
        teacher.wait("ner/wol", 30)
        health = taught.get("/label-studio/ner/wol/health").json()
        return answer.json()["accepted"], health["model_version"]

    before = taught.get("/label-studio/ner/wol/health").json()["model_version"]
    kept, first = send("ANNOTATION_CREATED", "𞤀𞤣 Ndar 🦁. Awa la.", ("Ndar", "LOC"))
    assert (kept, first != before) == (2, True)
    kept, second = send("ANNOTATION_UPDATED", "𞤀𞤣 Ndar 🦁. Awa la.", ("Ndar", "LOC"), ("Awa", "Person"))
    assert (kept, second not in (before, first)) == (1, True)
    labels = {entry.sentence.text: entry.sentence.labels for entry in teacher.active("ner/wol")}
    assert labels == {"𞤀𞤣 Ndar 🦁.": ("O", "B-LOC", "O", "O"), "Awa la.": ("B-PER", "O", "O")}
    assert send("ANNOTATION_UPDATED", "𞤀𞤣 Ndar 🦁. Awa la.", ("Ndar", "LOC"), ("Awa", "Person")) == (0, second)
    assert send("ANNOTATION_CREATED", "Awa!", ("Awa", "Person"), was_cancelled=True) == (0, second)
    assert send("TASKS_CREATED", "Awa!") == (0, second)
    found = ask(taught, "𞤀𞤣 Ndar 🦁.").json()
    assert found["model_version"] == found["results"][0]["model_version"] == second
    assert [region["value"]["text"] for region in found["results"][0]["result"]] == ["Ndar"]
    many = event("ANNOTATIONS_CREATED", "Dara", task=4)
    many |= {"annotation": [many["annotation"]], "task": [many["task"]]}
    assert taught.post("/label-studio/ner/wol/webhook", json=many).json()["accepted"] == 1


def test_deleted_annotations_are_forgotten(taught: TestClient, teacher: Teacher):
    def send(body: dict) -> dict:
        answer = taught.post("/label-studio/ner/wol/webhook", json=body)
        assert answer.status_code == 201, answer.text
        teacher.wait("ner/wol", 30)
        return answer.json()

    def texts() -> set[str]:
        return {entry.sentence.text for entry in teacher.active("ner/wol")}

    def examples() -> int:
        return len(teacher.tagger.adapted[teacher.tagger.cell("ner/wol")].examples)

    n_before = examples()
    send(event("ANNOTATION_CREATED", "Awa la. Ndar nekk!", ("Awa", "Person"), ("Ndar", "LOC"), id=12))
    send(event("ANNOTATION_CREATED", "Dara dem na.", ("Dara", "Person"), task=4, id=13))
    assert texts() == {"Awa la.", "Ndar nekk!", "Dara dem na."}
    assert examples() == n_before + 3
    deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 12}]}
    deleted["project"] = {"id": 1, "label_config": CONFIG}
    assert send(deleted) == {"accepted": 0, "learning": True}
    assert texts() == {"Dara dem na."}
    assert examples() == n_before + 1  # fitted again, without the two
    version = teacher.version("ner/wol")
    assert send(deleted | {"annotations": [{"id": 12}, {"id": 99}]}) == {"accepted": 0, "learning": False}
    assert (texts(), teacher.version("ner/wol")) == ({"Dara dem na."}, version)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"project": None}, 422, "expected XML"),
        ({"action": "ANNOTATIONS_DELETED"}, 422, "expected the ids of the deleted annotations"),
        ({"action": "ANNOTATIONS_DELETED", "annotations": [{}]}, 422, "annotations.0.id: "),
        (region(labels=[{"name": "LOC"}]), 422, "and one label of LOC, Person; got"),
        (region(start=3, end=3), 422, "expected regions with text, got an empty one from 3 to 3; delete it"),
        (region(start=3, end=4), 422, "expected regions with text"),
        ({"task": None}, 422, "expected an annotation with its result"),
        ({"annotation": 3}, 422, "annotation.0: "),
        ({"annotation": {"id": 1, "task": 3}}, 422, "expected an annotation with its result"),
        ({"action": None}, 422, "action: "),
        ({"task": {"id": 3, "data": {"text": "a" * 401}}}, 413, "400 characters in a task"),
    ],
)
def test_events_that_cannot_be_learned_from_are_told(taught: TestClient, teacher: Teacher, change, status, message):
    body = event("ANNOTATION_CREATED", "Awa la.", ("Awa", "Person")) | change
    answer = taught.post("/label-studio/ner/wol/webhook", json=body)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.json()
    assert teacher.active("ner/wol") == []


def test_other_sites_teach_nothing_and_a_server_that_only_tags_says_so(studio: TestClient, taught: TestClient):
    body = event("ANNOTATION_CREATED", "Awa la.", ("Awa", "Person"))
    answer = studio.post("/label-studio/ner/wol/webhook", json=body)
    assert (answer.status_code, answer.json()["error"]) == (409, "not_teaching")
    assert studio.post("/label-studio/ner/wol/webhook", json=body | {"action": "START_TRAINING"}).status_code == 409
    assert studio.post("/label-studio/ner/wol/webhook", json=body | {"action": "TASKS_DELETED"}).status_code == 201
    for origin in ("https://evil.example", "null"):
        answer = taught.post("/label-studio/ner/wol/webhook", json=body, headers={"origin": origin})
        assert answer.status_code == 403


def test_predictions_are_the_taggers_in_javascripts_offsets(studio: TestClient, knowing: Tagger):
    for cell, config in (("ner/wol", CONFIG.replace("LOC", "LOC")), ("pos/wol", TAGS)):
        found = ask(studio, *TEXTS, None, cell=cell, config=config).json()
        assert len(found["results"]) == len(TEXTS) + 1
        assert found["results"][-1]["result"] == []
        for text, entry in zip(TEXTS, found["results"], strict=False):
            from crossfill.data.segmentation import Segmenter

            taggings = list(knowing.tag_many(Segmenter("wol").split_text(text), cell))
            if cell == "ner/wol":
                names = {"PER": "Person", "LOC": "LOC"}
                expected = [(s.text, names[s.type], s.confidence) for t in taggings for s in t.spans]
            else:
                expected = [(w.text, w.label, w.confidence) for t in taggings for w in t.words]
            regions = [(r["value"]["text"], r["value"]["labels"][0], r["score"]) for r in entry["result"]]
            assert [r[:2] for r in regions] == [e[:2] for e in expected]
            np.testing.assert_allclose([r[2] for r in regions], [e[2] for e in expected], atol=1e-5)
            for value in (region["value"] for region in entry["result"]):
                units = text.encode("utf-16-le")[2 * value["start"] : 2 * value["end"]]
                assert units.decode("utf-16-le") == value["text"]


def test_lowest_scores_first_is_the_order_of_annotate(studio: TestClient, knowing: Tagger):
    texts = [" ".join(f"w{i * j % 7}ka" for j in range(2 + i % 5)) for i in range(12)]
    scores = [entry["score"] for entry in ask(studio, *texts).json()["results"]]
    sentences = [Sentence(tuple(text.split())) for text in texts]
    order = choose(candidates(knowing, sentences, knowing.cell("ner/wol")), 99, "entropy")
    assert [i for i in np.argsort(scores, kind="stable").tolist() if i in order] == order


def test_many_tasks_are_tagged_in_parts_and_as_if_alone(studio: TestClient):
    texts = [f"Dakar mooy {i} péeyu" for i in range(40)]  # 160 words where a request may have 60
    together = ask(studio, *texts).json()["results"]
    alone = [ask(studio, text).json()["results"][0] for text in texts[:3]]
    for one, other in zip(alone, together, strict=False):
        assert [r["value"] for r in one["result"]] == [r["value"] for r in other["result"]]
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    long = ask(studio, "wolofdakar" * 41)
    assert (long.status_code, long.json()["error"]) == (413, "too_large")
    assert "characters in a sentence" in long.json()["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("predict", {"tasks": [], "label_config": "<View/>"}, 422, "0 <Labels> and 0 <Text>"),
        ("predict", {"tasks": [], "label_config": "<!DOCTYPE a><View/>"}, 422, "without a document type"),
        ("predict", {"tasks": [3], "label_config": CONFIG}, 422, "tasks.0: "),
        ("predict", {"label_config": CONFIG}, 422, "tasks: "),
        ("setup", {"schema": "<View/>"}, 422, "0 <Labels>"),
        ("setup", {"schema": CONFIG.replace("LOC", "DOG").replace("PER", "CAT")}, 422, "expected labels among"),
        ("setup", {"schema": 3}, 422, "schema: "),
    ],
)
def test_what_cannot_be_answered_is_told(studio: TestClient, path, body, status, message):
    answer = studio.post(f"/label-studio/ner/wol/{path}", json=body)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.json()


def test_addresses_are_of_cells(studio: TestClient):
    assert studio.get("/label-studio/ner/wo/health").json()["status"] == "UP"
    answer = studio.get("/label-studio/ner/wl/health")
    assert answer.status_code == 404
    assert "did you mean 'ner/wol'?" in answer.json()["message"]
    assert studio.post("/label-studio/ner/wol/predict", content="{}").status_code == 415
    assert ask(studio, config=CONFIG).json()["results"] == []


def test_versions_differ_where_cells_do(model: Path, knowing: Tagger, studio: TestClient):
    adapted = studio.get("/label-studio/ner/wol/health").json()["model_version"]
    other = studio.get("/label-studio/ner/fin/health").json()["model_version"]
    with TestClient(build_app(crossfill.load(model), name="model"), base_url="http://localhost") as client:
        assert client.get("/label-studio/ner/fin/health").json()["model_version"] == other
        assert client.get("/label-studio/ner/wol/health").json()["model_version"] == other != adapted


def test_a_token_is_asked_for_and_may_be_a_password(knowing: Tagger):
    app = build_app(knowing, ServeSettings(token="correct-horse"))
    with TestClient(app, base_url="http://localhost") as client:
        for path in ("health", "setup", "predict"):
            assert client.get(f"/label-studio/ner/wol/{path}").status_code == 401
        assert client.get("/label-studio/ner/wol/health", auth=("label-studio", "correct-horse")).status_code == 200


def test_bodies_may_be_as_large_as_documents_but_no_larger(knowing: Tagger):
    app = build_app(knowing, ServeSettings(max_characters=300, max_words=40, max_document_bytes=100_000))
    with TestClient(app, base_url="http://localhost") as client:
        body = {"tasks": [], "label_config": CONFIG, "params": "x" * 90_000}
        assert client.post("/label-studio/ner/wol/predict", json=body).status_code == 200
        assert client.post("/api/tag", json=body).status_code == 413
        body["params"] *= 2
        assert client.post("/label-studio/ner/wol/predict", json=body).status_code == 413


def test_health_answers_within_a_second_from_the_start_and_under_load(model: Path):
    tagger = crossfill.load(model)
    with running(build_app(tagger, ServeSettings(timeout=60))) as address, ThreadPoolExecutor(1) as pool:
        started = time.perf_counter()
        assert requests.get(f"{address}/label-studio/ner/wol/health", timeout=1).ok
        assert time.perf_counter() - started < 1
        tasks = [{"id": i, "data": {"text": "Dakar mooy péeyu Senegaal. " * 20}} for i in range(60)]
        body = {"tasks": tasks, "label_config": CONFIG}
        much = pool.submit(requests.post, f"{address}/label-studio/ner/wol/predict", json=body, timeout=60)
        slowest = 0.0
        while not much.done():
            before = time.perf_counter()
            assert requests.get(f"{address}/label-studio/ner/wol/health", timeout=1).ok
            slowest = max(slowest, time.perf_counter() - before)
        assert much.result().status_code == 200
        assert slowest < 1
