"""The service as clients of UDPipe 2 call it, and the exchanges that the documentation shows."""

import email.mime.multipart
import email.mime.nonmultipart
import email.policy
from collections.abc import Iterator
from pathlib import Path

import conllu
import pytest
from starlette.testclient import TestClient

from crossfill.grid.sentence import Sentence
from crossfill.tagger.tagger import Tagger
from tests.integrations.taggings import TEXTS
from tests.web.adapters import asking, knowing_tagger
from tests.web.exchanges import alike, exchanges

WORDS, TAGS = ("Dakar", "mooy", "péey", "."), ("PROPN", "VERB", "NOUN", "PUNCT")


@pytest.fixture(scope="module")
def knowing(model: Path) -> Tagger:
    return knowing_tagger(model, [Sentence(WORDS, TAGS), Sentence(WORDS, TAGS, (True, True, False, False))], "pos/wol")


@pytest.fixture(scope="module")
def client(knowing: Tagger) -> Iterator[TestClient]:
    with asking(knowing) as found:
        yield found


def as_parts(values: dict[str, str]) -> tuple[bytes, str]:
    """A body of multipart/form-data as UDPipe's own client makes it: with Python's email package."""
    message = email.mime.multipart.MIMEMultipart("form-data", policy=email.policy.HTTP)
    for name, value in values.items():
        part = email.mime.nonmultipart.MIMENonMultipart("text", "plain")
        part.add_header("Content-Disposition", f'form-data; name="{name}"')
        part.add_header("Content-Transfer-Encoding", "8bit")
        part.set_payload(value, charset="utf-8")
        message.attach(part)
    return message.as_bytes().split(b"\r\n\r\n", maxsplit=1)[1], message["Content-Type"]


@pytest.mark.parametrize("shown", exchanges("udpipe.md"), ids=lambda shown: shown.path[8:15])
def test_the_documentation_shows_what_happens(client: TestClient, shown):
    answer = client.request(shown.method, shown.path)
    assert answer.status_code == shown.status
    assert alike(shown.answer, answer.json()), answer.json()


def test_every_way_to_send_parameters_gives_the_same(client: TestClient, knowing: Tagger):
    text = " ".join(TEXTS)
    values = {"model": "wol", "tokenizer": "", "tagger": "", "data": text, "input": "conllu", "output": "conllu"}
    body, kind = as_parts(values)
    answers = [
        client.post("/udpipe/process", content=body, headers={"content-type": kind}),
        client.post("/udpipe/process", data=values),
        client.post("/udpipe/process", files={name: (None, value) for name, value in values.items()}),
        client.get("/udpipe/process", params=values),
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    from crossfill.data.segmentation import split_text

    expected = [tagging.labels for tagging in knowing.tag_many(split_text(text, "wol"), "pos/wol")]
    found = conllu.parse(answers[0].json()["result"])
    assert [tuple(token["upos"] for token in sentence) for sentence in found] == expected
    assert {token["feats"] for sentence in found for token in sentence} == {None}


def test_without_a_tagger_text_is_only_cut_and_long_text_is_tagged_in_parts(client: TestClient):
    plain = client.get("/udpipe/process", params={"data": "Dakar la.", "tokenizer": "", "model": "wol"}).json()
    assert [token["upos"] for token in conllu.parse(plain["result"])[0]] == ["_"] * 3
    values = {"data": "Dakar la. " * 50, "model": "wol", "tokenizer": "", "tagger": "", "parser": ""}
    much = client.post("/udpipe/process", data=values)
    assert len(conllu.parse(much.json()["result"])) == 50
    empty = client.post("/udpipe/process", data={"data": "", "tokenizer": "", "tagger": ""})
    assert empty.json()["result"] == ""


@pytest.mark.parametrize(
    ("values", "status", "message"),
    [
        ({}, 422, "data: expected text"),
        ({"data": "a", "model": "klingon"}, 422, "unknown model 'klingon'"),
        ({"data": "a b"}, 422, "data:1: expected"),
        ({"data": "a", "tokenizer": "", "output": "pdf"}, 422, "unknown output format 'pdf'"),
        ({"data": "a" * 401, "tokenizer": "", "tagger": ""}, 413, "characters in a sentence"),
    ],
)
def test_what_cannot_be_answered_is_told(client: TestClient, values, status, message):
    answer = client.get("/udpipe/process", params=values)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.json()


def test_other_bodies_are_refused(client: TestClient):
    bad = b'--x\r\nContent-Disposition: form-data; name="data"\r\n\r\n\xff\r\n--x--'
    for content, kind, status in (
        (b"{}", "application/json", 415),
        (b"\xff", "application/x-www-form-urlencoded", 400),
        (b"nothing", "multipart/form-data", 400),
        (b"nothing", "multipart/form-data; boundary=x", 400),
        (bad.replace(b'"data"', b'"text"').replace(b"\xff", b"a"), "multipart/form-data; boundary=x", 422),
        (
            b'--x\r\nContent-Disposition: form-data; name="data"\r\n\r\n\xff\r\n--x--',
            "multipart/form-data; boundary=x",
            400,
        ),
    ):
        answer = client.post("/udpipe/process", content=content, headers={"content-type": kind})
        assert answer.status_code == status, (content, answer.text)
