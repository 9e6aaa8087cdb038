"""Schemathesis over the OpenAPI document: whatever is sent, no 5xx, and answers as the document says."""

import json
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from crossfill.tagger.tagger import Tagger, load
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.integrations.documents import NAMED_ENTITY, type_system, xmi
from tests.web.servers import running

# the server is in this process: what it draws while a case is made is not the case's doing
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
SETTINGS = hypothesis.settings(
    max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
THOROUGH = hypothesis.settings(SETTINGS, max_examples=500)


@pytest.fixture(scope="module")
def address(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tagger = load(model)
    teacher = Teacher(tagger, tmp_path_factory.mktemp("taught"))
    with running(build_app(tagger, ServeSettings(max_samples=20), "tiny", teacher=teacher)) as found:
        yield found


def try_all(operation, mode, checks, session: requests.Session, settings: hypothesis.settings) -> list[int]:
    """Send cases of one kind to one address; the statuses of the answers."""
    statuses = []

    @settings
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        response = case.call(session=session)
        case.validate_response(response, checks=checks)
        statuses.append(response.status_code)

    try:
        send()
    except hypothesis.errors.Unsatisfiable:
        assert mode.is_negative  # nothing can be wrong with a request that has no parameters
    return statuses


def guide(document, known_cells: list[str]) -> None:
    """Have addresses name tasks and languages of the model, and annotation tools' requests be of their forms."""
    tasks, languages = (sorted({cell.split("/")[i] for cell in known_cells}) for i in (0, 1))
    config = {"enum": ['<View><Labels name="l" toName="t"/><Text name="t" value="$text"/></View>', "<View/>"]}
    data = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    task = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    forms = {"label_config": config, "schema": config, "tasks": {"type": "array", "items": task}}
    types = {"enum": [type_system(), "<a/>"]}
    content = {"type": "object", "required": ["xmi"], "properties": {"xmi": {"enum": [xmi("Dakar", []), "<a/>"]}}}
    layer = {"type": "object", "required": ["layer", "feature"], "properties": {"layer": {"enum": [NAMED_ENTITY]}}}
    layer["properties"] |= {"feature": {"enum": ["value", "other"]}}
    forms |= {"typeSystem": types, "document": content, "documents": {"type": "array", "items": content}}
    forms |= {"project": {"type": "object", "required": ["label_config"], "properties": {"label_config": config}}}
    forms |= {"metadata": layer, "action": {"enum": ["ANNOTATION_CREATED", "ANNOTATIONS_DELETED", "START_TRAINING"]}}
    forms["cell"] = {"enum": known_cells}
    addressed = {"task": tasks, "language": languages, "cell": known_cells}
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in addressed:
                    parameter["schema"]["enum"] = addressed[parameter["name"]]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                fields = document["components"]["schemas"][name]["properties"]
                fields.update({name: form for name, form in forms.items() if name in fields})


def fuzz(address: str, known_cells: list[str] | None, settings: hypothesis.settings) -> int:
    """Send what the document allows and what it does not; the number of texts that were tagged."""
    document, tagged = requests.get(f"{address}/api/openapi.json", timeout=10).json(), 0
    if known_cells:  # most random cells are unknown: with these the requests get further
        body = document["components"]["schemas"]["TagRequest"]
        body["properties"]["cells"] |= {"items": {"enum": known_cells}, "maxItems": 3}
        body["properties"]["samples"] = {"type": "integer", "minimum": 0, "maximum": 20}
        guide(document, known_cells)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=address)
    with requests.Session() as session:
        for operation in schema.get_all_operations():
            for mode in schemathesis.GenerationMode:
                # what annotation tools may send is more than what they are made to send here
                strict = mode.is_negative and (not known_cells or operation.ok().path.startswith("/api/"))
                checks = [check for check in CHECKS if strict or check is not negative_data_rejection]
                statuses = try_all(operation.ok(), mode, checks, session, settings)
                tagged += statuses.count(200) if operation.ok().path == "/api/tag" else 0
    return tagged


def test_no_request_brings_it_down(address: str, tagger: Tagger):
    assert fuzz(address, [str(cell) for cell in tagger.cells], SETTINGS) > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_request_of_thousands_brings_it_down(address: str, tagger: Tagger):
    fuzz(address, None, THOROUGH)
    assert fuzz(address, [str(cell) for cell in tagger.cells], THOROUGH) > 0


def test_the_document_names_every_status_and_calls_no_other_site(address: str):
    document = requests.get(f"{address}/api/openapi.json", timeout=10).json()
    cell = "/{task}/{language}"
    tools = {f"/label-studio{cell}/{name}" for name in ("health", "setup", "predict", "webhook")}
    tools |= {f"/inception{cell}/{name}" for name in ("predict", "train")}
    taught = {"text", "next", "clear", "accept", "withdraw", "list", "learn", "back", "save", "progress", "sentences"}
    paths = {"/api/health", "/api/grid", "/api/tag"} | {f"/api/teach/{name}" for name in taught}
    assert set(document["paths"]) == paths | tools
    changes = document["paths"]["/api/teach/accept"]["post"]
    assert {"200", "400", "401", "403", "408", "413", "415", "421", "422", "429", "503"} <= set(changes["responses"])
    example = changes["requestBody"]["content"]["application/json"]["schema"]["examples"][0]
    assert requests.post(f"{address}/api/teach/accept", json=example, timeout=10).status_code == 200
    answers = document["paths"]["/api/tag"]["post"]["responses"]
    assert {"200", "400", "401", "408", "413", "415", "422", "429", "503"} <= set(answers)
    assert "http" not in json.dumps(document["paths"])
    assert "$defs" not in json.dumps(document["paths"])  # a reference to such a place points to nothing
    body = document["paths"]["/api/tag"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert requests.post(f"{address}/api/tag", json=body["examples"][0], timeout=10).status_code == 200
