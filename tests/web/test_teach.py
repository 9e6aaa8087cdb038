"""The operations of teaching: order, tags, what is kept, and who may change anything."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from crossfill.data.readers import read_corpus
from crossfill.data.reading import NO_HINTS
from crossfill.data.segmentation import Segmenter
from crossfill.errors import ConfigError
from crossfill.grid.sentence import UNLABELLED, Sentence
from crossfill.tagger.annotation import candidates, choose
from crossfill.tagger.tagger import Tagger, as_sentence, load
from crossfill.teaching.agreement import agreements
from crossfill.teaching.sentence_queue import let_wait
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings

CELL = "pos/wol"
LINES = ["Dakar mooy péeyu Senegaal", "Ndar nekk na ci Senegaal", "Dafa rafet", "Maa ngi dem Ndar", "Lii lan la"]
SETTINGS = ServeSettings(max_characters=300, max_words=40, max_samples=50, timeout=20)


@pytest.fixture
def teacher(model: Path, tmp_path: Path) -> Teacher:
    return Teacher(load(model), tmp_path / "taught", 0, model)


@pytest.fixture
def taught(teacher: Teacher) -> Iterator[TestClient]:
    with TestClient(build_app(teacher.tagger, SETTINGS, "tiny", {}, teacher), base_url="http://localhost") as client:
        yield client


def post(client: TestClient, path: str, status: int = 200, cell: str = CELL, headers=None, **values) -> dict:
    answer = client.post(f"/api/teach/{path}", json={"cell": cell, **values}, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def progress(client: TestClient) -> dict:
    return client.get("/api/teach/progress", params={"cell": CELL}).json()


def accept(client: TestClient, line: str, label: str = "NOUN", **values) -> dict:
    words = line.split()
    return post(client, "accept", words=words, labels=[label] * len(words), **values)


@pytest.mark.parametrize(
    ("strategy", "cost"),
    [("coverage", "words"), ("entropy", "words"), ("bald", "sentences")],
)
def test_sentences_come_in_the_order_of_annotate_and_tagged_as_elsewhere(
    taught: TestClient, tagger: Tagger, strategy, cost
):
    assert post(taught, "text", text="\n".join(LINES))["added"] == len(LINES)
    pool = candidates(tagger, [as_sentence(line, Segmenter("wol")) for line in LINES], tagger.cell(CELL))
    expected = [LINES[i] for i in choose(pool, len(LINES), strategy, cost)]
    found = []
    for n in range(len(LINES)):
        answer = post(taught, "next", strategy=strategy, cost=cost)
        assert answer["waiting"] == len(LINES) - n
        shown = answer["sentence"]
        tagging = tagger.tag(shown["words"], CELL)
        assert shown["labels"] == list(tagging.labels)
        assert shown["confidence"] == pytest.approx(tagging.confidence, abs=1e-4)
        assert len(shown["probabilities"][0]) == len(tagging.task.labels)
        found.append(" ".join(shown["words"]))
        accept(taught, found[-1])
    assert found == expected
    assert post(taught, "next")["sentence"] is None


def test_what_is_skipped_comes_last_and_two_tabs_get_different_sentences(taught: TestClient):
    post(taught, "text", text="\n".join(LINES[:3]))
    first = post(taught, "next", tab="a")["sentence"]
    assert post(taught, "next", tab="a")["sentence"]["key"] == first["key"]  # the same tab again: after a reload
    other = post(taught, "next", tab="b")["sentence"]
    assert other["key"] != first["key"]
    third = post(taught, "next", tab="a", skip=first["key"])["sentence"]
    assert third["key"] not in (first["key"], other["key"])
    accept(taught, " ".join(third["words"]))
    assert post(taught, "next", tab="a")["sentence"]["key"] == first["key"]
    accept(taught, " ".join(first["words"]))
    assert post(taught, "next", tab="a")["sentence"]["key"] == other["key"]  # nothing else is left
    assert post(taught, "text", text="\n".join(LINES))["added"] == 2
    assert post(taught, "clear")["waiting"] == 0
    assert progress(taught)["waiting"] == 0
    assert progress(taught)["sentences"] == 2


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("bio", "Dakar\tO\nmooy\tO\n\nNdar\tO\n"),
        ("conllu", "1\tDakar\t_\t_\t_\t_\t_\t_\t_\t_\n2\tmooy\t_\t_\t_\t_\t_\t_\t_\t_\n\n1\tNdar" + "\t_" * 8 + "\n"),
        ("jsonl", '{"words": ["Dakar", "mooy"]}\n{"text": "Ndar"}\n'),
        ("text", "Dakar mooy\nNdar\n"),
    ],
)
def test_every_format_is_read(taught: TestClient, form: str, text: str):
    assert post(taught, "text", format=form, text=text) == post(taught, "text", text="") | {"added": 2, "waiting": 2}
    words = [post(taught, "next", tab=str(i))["sentence"]["words"] for i in range(2)]
    assert sorted(words) == [["Dakar", "mooy"], ["Ndar"]]


def test_what_was_accepted_is_on_disk_and_can_be_taken_back_and_downloaded(taught: TestClient, teacher: Teacher):
    first = accept(taught, LINES[0], who="Anna")
    assert first["replaced"] is None
    assert f'"id": "{first["id"]}", "who": "Anna"' in (teacher.folder / "pos-wol.bio").read_text()
    again = accept(taught, LINES[0], "VERB", who="Ben")
    assert (again["replaced"]["id"], again["replaced"]["who"], again["sentences"]) == (first["id"], "Anna", 1)
    second = accept(taught, LINES[1])
    assert [entry["id"] for entry in progress(taught)["recent"]] == [second["id"], again["id"]]
    post(taught, "withdraw", id=second["id"])
    post(taught, "withdraw", id=second["id"])  # as it was before
    assert "expected the id of an accepted sentence" in post(taught, "withdraw", 422, id="0" * 12)["message"]
    for form in ("bio", "conllu", "jsonl"):
        answer = taught.get("/api/teach/sentences", params={"cell": CELL, "format": form})
        assert f'filename="pos-wol.{form}"' in answer.headers["content-disposition"]
        corpus = read_corpus(answer.content, "x", "pos", NO_HINTS, f".{form}", False).corpus
        assert [(s.words, s.labels) for s in corpus] == [(tuple(LINES[0].split()), ("VERB",) * 4)]


def test_learning_changes_tags_at_once_and_states_can_be_returned_to(taught: TestClient, teacher: Teacher, model: Path):
    def tag() -> dict:
        asked = {"cells": [CELL], "sentences": [LINES[2].split()], "samples": 5}
        return taught.post("/api/tag", json=asked).json()["taggings"][0]["sentences"][0]

    def waits_first() -> str:
        tagger = teacher.tagger
        pool = candidates(tagger, [as_sentence(line, Segmenter("wol")) for line in LINES[2:]], tagger.cell(CELL))
        shown = " ".join(post(taught, "next")["sentence"]["words"])
        assert shown == LINES[2:][choose(pool, 1)[0]]
        return shown

    before = tag()
    assert post(taught, "text", text="\n".join(LINES[2:]))["added"] == 3
    assert waits_first() in LINES
    assert not post(taught, "learn")["begun"]
    lessons = [*LINES[:2], "Lan la", "Ndar dafa rafet"]
    for line in lessons:
        accept(taught, line, "PUNCT")
    assert progress(taught)["unlearned"] == 4
    assert post(taught, "learn")["begun"]
    teacher.wait(CELL, 60)
    after, found = tag(), progress(taught)
    assert before["labels"] != ["PUNCT"] * 2
    assert after["labels"] == ["PUNCT"] * 2
    assert waits_first() in LINES
    assert (found["state"], found["unlearned"], found["busy"], found["metric"]) == ("1", 0, False, "accuracy")
    assert found["estimate"]["score"]["low"] <= found["estimate"]["score"]["value"]
    assert found["estimate"]["curve"][0]["sentences"] == 0
    assert [state["sentences"] for state in found["states"]] == [0, 4]
    post(taught, "back", number=0)
    teacher.wait(CELL, 60)
    assert tag() == before
    assert waits_first() in LINES
    post(taught, "back", number=1)
    teacher.wait(CELL, 60)
    assert tag() == after
    assert not (model / "adapted").exists()
    try:
        assert post(taught, "save")["file"] == "adapted/pos-wol.safetensors"
        assert len(load(model).adapted) == 1
    finally:
        for file in (model / "adapted").iterdir():
            file.unlink()
        (model / "adapted").rmdir()


@pytest.mark.parametrize(
    ("path", "values", "status"),
    [
        ("text", {"text": "a" * 301}, 413),
        ("text", {"text": "x\ty\tz", "format": "conllu"}, 422),
        ("text", {"text": "a", "format": "xml"}, 422),
        ("accept", {"words": ["a"] * 41, "labels": ["NOUN"] * 41}, 413),
        ("accept", {"words": ["a"], "labels": ["NOUN", "NOUN"]}, 422),
        ("accept", {"words": ["a"], "labels": ["NONSENSE"]}, 422),
        ("accept", {"words": ["a\nb"], "labels": ["NOUN"]}, 422),
        ("accept", {"words": ["a"], "labels": ["NOUN"], "who": "a\nb"}, 422),
        ("accept", {"words": ["a"], "labels": ["NOUN"], "replaces": "0123456789ab"}, 422),
        ("accept", {"words": ["a"], "labels": ["NOUN"], "extra": 1}, 422),
        ("back", {"number": 1}, 422),
        ("save", {}, 422),
        ("learn", {"cell": "pos/xxx"}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(taught: TestClient, teacher, path, values, status):
    problem = post(taught, path, status, **values)
    assert set(problem) == {"error", "message"}
    assert list(teacher.folder.iterdir()) == []


def test_only_its_own_page_and_programs_may_change_anything(taught: TestClient, teacher: Teacher):
    values = {"words": ["a"], "labels": ["NOUN"]}
    for origin in ("https://evil.example", "http://localhost:8001", "null", "http://localhost.evil.example"):
        assert post(taught, "accept", 403, headers={"origin": origin}, **values)["error"] == "other_site"
    assert list(teacher.folder.iterdir()) == []
    for headers in ({}, {"origin": "http://localhost"}, {"origin": "https://localhost"}):
        post(taught, "accept", headers=headers, **values)
    body = json.dumps({"cell": CELL, **values})
    assert taught.post("/api/teach/accept", content=body, headers={"content-type": "text/plain"}).status_code == 415


def test_a_token_is_asked_for_where_one_is_set(teacher: Teacher):
    settings = ServeSettings(token="correct-horse")
    with TestClient(build_app(teacher.tagger, settings, teacher=teacher), base_url="http://localhost") as client:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            assert post(client, "learn", 401, headers=headers)["error"] == "unauthorized"
        assert post(client, "learn", headers={"authorization": "Bearer correct-horse"}) is not None
        basic = {"authorization": "Basic OmNvcnJlY3QtaG9yc2U=", "origin": "https://evil.example"}
        assert post(client, "learn", 403, headers=basic)["error"] == "other_site"
    with pytest.raises(ConfigError, match="expected a token to be taught from other machines"):
        ServeSettings(host="0.0.0.0", no_token=True, teach=Path("taught"))


def test_without_a_teacher_nothing_can_be_changed(client: TestClient):
    assert client.get("/api/grid").json()["teach"] is False
    for path in ("/teach", "/teach.html", "/teach.js", "/api/teach/progress"):
        assert client.get(path).status_code == 404
    assert client.post("/api/teach/accept", json={}).status_code == 404
    assert not [path for path in client.get("/api/openapi.json").json()["paths"] if "teach" in path]


@pytest.mark.skipif(os.name != "posix", reason="a limit of the size of files stands for the full disk")
def test_a_full_disk_is_said_and_nothing_is_acknowledged_that_is_not_whole(teacher: Teacher, taught: TestClient):
    import resource

    accept(taught, LINES[0])
    journal, before = teacher.folder / "pos-wol.bio", (teacher.folder / "pos-wol.bio").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limits[1]))
    try:
        values = {"words": LINES[1].split(), "labels": ["NOUN"] * len(LINES[1].split())}
        assert post(taught, "accept", 507, **values)["error"] == "not_saved"
        assert post(taught, "text", 507, text=" ".join(["Ndar"] * 40))["error"] == "not_saved"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert journal.read_bytes() == before
    assert (progress(taught)["sentences"], progress(taught)["waiting"]) == (1, 0)
    accept(taught, LINES[1])
    assert len(Teacher(teacher.tagger, teacher.folder).active(CELL)) == 2


def test_damaged_files_do_not_keep_a_server_from_starting_and_are_named(teacher: Teacher, taught: TestClient):
    for line in LINES[:3]:
        accept(taught, line)
    post(taught, "text", text=LINES[4])
    journal, waiting = (teacher.folder / f"pos-wol{ending}" for ending in (".bio", ".waiting.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b"Dafa", b"Daf\xff"))
    waiting.write_bytes(b'{"words": ["\xff"], "spaces": [true]}\n' + b"[" * 100_000 + b"\n" + waiting.read_bytes())
    again = Teacher(teacher.tagger, teacher.folder)
    assert [entry.sentence.words for entry in again.active(CELL)] == [tuple(line.split()) for line in LINES[:2]]
    assert again.queue(CELL).waiting(()) == 1
    assert [problem.partition(": ")[0] for problem in again.damage] == [f"{journal}:14"]
    assert again.progress(CELL)["problem"] == again.damage[0]
    again.close()


def test_a_word_list_is_kept_and_learned_from(taught: TestClient, teacher: Teacher):
    assert post(taught, "list", text="Dakar\tNUON\nmooy\tVERB,AUX\n", who="anna", status=422)["message"].startswith(
        "the word list:1: unknown label 'NUON'"
    )
    label = teacher.tagger.model.inventory.task("pos").labels[0]
    assert post(taught, "list", text=f"Dakar\t{label}\nmooy\t{label}\n", who="anna")["forms"] == 2
    assert progress(taught)["changed"]
    assert post(taught, "learn")["begun"]
    teacher.wait(CELL, 60)
    assert (progress(taught)["listed"], progress(taught)["state"]) == (2, "1")
    assert '"forms": {"Dakar"' in (teacher.folder / "pos-wol.bio").read_text()
    assert post(taught, "list", text=" ")["forms"] == 0
    assert progress(taught)["listed"] == 0
    large = "".join(f"word{i}\t{label}\n" for i in range(3000))  # longer than a text may be
    assert post(taught, "list", text=large)["forms"] == 3000


def test_a_second_person_is_offered_what_others_did_without_their_labels(taught: TestClient, teacher: Teacher):
    post(taught, "text", text="\n".join(LINES[:2]))
    for line in LINES[:3]:  # the last one never waited
        accept(taught, line, who="anna")
    assert post(taught, "next", who="ben")["sentence"] is None
    assert post(taught, "next", who="anna", each=True)["sentence"] is None
    found = set()
    for n in range(3):
        answer = post(taught, "next", who="ben", each=True)
        tagging = teacher.tagger.tag(answer["sentence"]["words"], CELL)
        assert answer["sentence"]["labels"] == list(tagging.labels)
        found.add(" ".join(answer["sentence"]["words"]))
        accept(taught, " ".join(answer["sentence"]["words"]), "VERB" if n else "NOUN", who="ben")
    assert found == set(LINES[:3])
    assert post(taught, "next", who="ben", each=True)["sentence"] is None
    assert taught.get("/api/teach/progress", params={"cell": CELL, "who": "cem"}).json()["waiting"] == 3
    (compared,) = agreements([teacher.folder])
    assert (compared.names, compared.sentences) == (("anna", "ben"), 3)


def test_words_without_a_label_are_shown_open(model, tmp_path):
    tagger, folder = load(model), tmp_path / "taught"
    label = tagger.model.inventory.task("pos").labels[0]
    let_wait(folder, tagger.cell(CELL), [Sentence(("Ndar", "la"), (label, UNLABELLED))])
    teacher = Teacher(tagger, folder, 0, model)
    with TestClient(build_app(tagger, SETTINGS, "tiny", {}, teacher), base_url="http://localhost") as client:
        shown = post(client, "next")["sentence"]
    assert (shown["labels"], shown["confidence"][1]) == ([label, UNLABELLED], None)


def test_sentences_that_wait_with_labels_come_first_and_show_them(model, tmp_path):
    tagger, folder = load(model), tmp_path / "taught"
    labels = tagger.model.inventory.task("pos").labels
    given = [Sentence(("Dafa", "rafet"), (labels[0],) * 2), Sentence(("Ndar", "la"), (labels[1], labels[0]))]
    let_wait(folder, tagger.cell(CELL), [*given, Sentence(("Lii",), ("no label of the model",))])
    teacher = Teacher(tagger, folder, 0, model)
    with TestClient(build_app(tagger, SETTINGS, "tiny", {}, teacher), base_url="http://localhost") as client:
        post(client, "text", text="\n".join(LINES[:2]))
        for sentence in given:
            shown = post(client, "next")["sentence"]
            assert tuple(shown["words"]) == sentence.words
            assert tuple(shown["labels"]) == sentence.labels
            columns = [labels.index(label) for label in sentence.labels]
            assert shown["confidence"] == [row[i] for row, i in zip(shown["probabilities"], columns, strict=True)]
            post(client, "accept", words=shown["words"], labels=shown["labels"])
        unknown = post(client, "next")["sentence"]
        assert unknown["words"] == ["Lii"]
        assert unknown["labels"][0] in labels
