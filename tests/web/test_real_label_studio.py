"""The real Label Studio against the backend, on loopback: predictions are read back through its API, and it teaches.

Label Studio is large: install it in an environment of its own, and name its command in $LABEL_STUDIO.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.web.adapters import knowing_tagger
from tests.web.servers import running
from tests.web.test_label_studio import CONFIG

COMMAND = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(COMMAND is None, reason="Label Studio is not installed"),
]
USER, PASSWORD, TOKEN = "awa@example.org", "correct-horse-7", "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["🦁 Dakar mooy péeyu Senegaal.", "Dakar mooy péeyu Senegaal.", "🦁 mooy gaynde."]


@pytest.fixture
def label_studio(tmp_path: Path) -> Iterator[str]:
    """The address of a Label Studio with one user, and nothing else."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "label-studio"),
        "ML_BLOCK_LOCAL_IP": "false",
        "SSRF_PROTECTION_ENABLED": "false",
        "COLLECT_ANALYTICS": "false",
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "WEBHOOK_TIMEOUT": "20",
        "ML_TIMEOUT_HEALTH": "20",
        "ML_TIMEOUT_SETUP": "20",
        "ML_CONNECTION_TIMEOUT": "20",
    }
    arguments = ["start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
    arguments += ["--username", USER, "--password", PASSWORD, "--user-token", TOKEN]
    with (tmp_path / "label-studio.log").open("w") as log:
        process = subprocess.Popen([str(COMMAND), *arguments], env=os.environ | settings, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, (tmp_path / "label-studio.log").read_text()[-2000:]
            try:
                if requests.get(f"{address}/health", timeout=5).ok:
                    break
            except requests.ConnectionError:
                time.sleep(1)
        yield address
    finally:
        process.terminate()
        process.wait(30)


class Api:
    """Label Studio's API."""

    def __init__(self, address: str) -> None:
        self._address, self._session = address, requests.Session()
        self._session.headers["Authorization"] = f"Token {TOKEN}"

    def __call__(self, method: str, path: str, **values):
        answer = self._session.request(method, f"{self._address}/api/{path}", timeout=120, **values)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text[:1000]}"
        return answer.json()

    def predictions(self, project: int) -> dict[str, dict]:
        """The last prediction for each text, asked for as the button of the data manager does."""
        body = {"selectedItems": {"all": True, "excluded": []}, "project": str(project)}
        self("POST", "dm/actions", params={"id": "retrieve_tasks_predictions", "project": project}, json=body)
        found = {}
        for task in self("GET", "tasks", params={"project": project, "fields": "all"})["tasks"]:
            known = sorted(task["predictions"], key=lambda prediction: prediction["id"])
            found[task["data"]["text"]] = (known[-1] | {"task": task["id"]}) if known else None
        return found


def test_label_studio_shows_the_backends_predictions_and_teaches_it(label_studio: str, model: Path, tmp_path: Path):
    tagger = knowing_tagger(model)
    teacher = Teacher(tagger, tmp_path / "corrected", 0)
    with running(build_app(tagger, ServeSettings(timeout=100), "model", {}, teacher)) as backend:
        api = Api(label_studio)
        project = api("POST", "projects", json={"title": "Wolof", "label_config": CONFIG})["id"]
        api("POST", f"projects/{project}/import", json=[{"text": text} for text in TEXTS])
        connected = api("POST", "ml", json={"url": f"{backend}/label-studio/ner/wol", "project": project})
        version = requests.get(f"{backend}/label-studio/ner/wol/health", timeout=20).json()["model_version"]
        assert connected["state"] == "CO"
        found = api.predictions(project)
        tasks = [{"data": {"text": text}} for text in TEXTS]
        body = {"tasks": tasks, "label_config": CONFIG}
        own = requests.post(f"{backend}/label-studio/ner/wol/predict", json=body, timeout=20).json()["results"]
        for text, expected in zip(TEXTS, own, strict=True):
            assert found[text]["result"] == expected["result"]
            assert found[text]["score"] == pytest.approx(expected["score"])
            assert found[text]["model_version"] == version
        assert [region["value"]["text"] for region in found[TEXTS[0]]["result"]] == ["Dakar", "Senegaal"]
        region = {"from_name": "label", "to_name": "text", "type": "labels", "id": "a"}
        region["value"] = {"start": 0, "end": 2, "text": "🦁", "labels": ["Person"]}
        api("POST", f"tasks/{found[TEXTS[2]]['task']}/annotations", json={"result": [region]})
        for _ in range(100):  # Label Studio sends webhooks in its own time
            if teacher.version("ner/wol") != "0":
                break
            time.sleep(0.2)
        (entry,) = teacher.active("ner/wol")
        assert (entry.sentence.words[0], entry.sentence.labels[0]) == ("🦁", "B-PER")
        again = api.predictions(project)[TEXTS[0]]
        assert (
            again["model_version"]
            == requests.get(f"{backend}/label-studio/ner/wol/health", timeout=20).json()["model_version"]
            != version
        )
