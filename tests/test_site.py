"""The pages that are made from the code, and the check of the built site."""

import re
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from crossfill.cli.app import app
from crossfill.config import Config, PretrainedConfig
from crossfill.executors.worker_jobs import ExecutionSettings
from crossfill.studies.study import DataSettings, PartitionSettings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import build_site  # noqa: E402
import check_site  # noqa: E402
import reference  # noqa: E402


def test_every_command_and_option_is_in_the_reference():
    page = reference.cli_page()
    assert "<" not in page  # a browser would take <task> for HTML
    commands = [command.callback.__name__ for command in app.registered_commands if command.callback]
    assert {"train", "predict", "cache"} <= set(commands)
    for name in (*(name.replace("_", "-") for name in commands), "data fetch", "data make"):
        assert f"## crossfill {name}\n" in page
    assert (
        "| `--hold-out TEXT` | A cell to leave unseen, as ner/wol, or half: a random half of all; repeatable. | none |"
        in page
    )
    assert "| `--cost sentences or words` | " in page
    assert "crossfill predict MODEL [FILE] [OPTIONS]" in page
    assert "| `--out PATH` | Run folder; an existing run is resumed. | *required* |" in page


@pytest.mark.parametrize("model", [Config, PretrainedConfig, DataSettings, PartitionSettings, ExecutionSettings])
def test_every_setting_is_in_the_reference(model: type[BaseModel]):
    page = reference.config_page()
    for name, field in model.model_fields.items():
        group = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        assert f"| `{name}` |" in page or (group and f" `{name}` {{" in page), name
        if field.description:
            assert " ".join(field.description.split()) in page
    assert "| `mode` | `finetune or partial or frozen` | `finetune` |" in page


def test_every_page_is_in_the_navigation(tmp_path: Path):
    build_site.gather(tmp_path)
    assert build_site.unlisted(tmp_path) == []
    (tmp_path / "docs" / "new.md").write_text("# New")
    (tmp_path / "docs" / "notebooks" / "first-model.md").unlink()
    assert build_site.unlisted(tmp_path) == [
        "mkdocs.yml: nav lacks new.md",
        "mkdocs.yml: nav has notebooks/first-model.md, which is no page",
    ]


def test_broken_links_and_foreign_hosts_are_found(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "style.css").write_text("a { background: url('https://example.org/x.png') }")
    (tmp_path / "index.html").write_text(
        "<h1 id='top'>x</h1><a href='#top'>a</a><a href='#gone'>b</a><a href='sub/page.html#here'>c</a>"
        "<a href='sub/page.html#nowhere'>d</a><a href='lost.html'>e</a><a href='https://example.org'>f</a>"
        "<script src='https://example.org/x.js'></script><img src='missing.png'>"
    )
    (tmp_path / "sub" / "page.html").write_text("<p id='here'><a href='../index.html#top'>x</a><a href='../'>y</a></p>")
    assert check_site.problems(tmp_path) == [
        "index.html: #gone leads to no anchor",
        "index.html: sub/page.html#nowhere leads to no anchor",
        "index.html: lost.html leads to no file",
        "index.html: loads https://example.org/x.js from another host",
        "index.html: missing.png leads to no file",
        "style.css: loads something from another host",
    ]
    assert check_site.problems(tmp_path / "sub" / "none") != []


def test_configs_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from crossfill.files import shipped

    monkeypatch.chdir(tmp_path)
    ours = sorted((ROOT / "configs").glob("*.yaml"))
    assert ours
    for path in ours:
        assert shipped(Path("configs") / path.name).read_bytes() == path.read_bytes()
        assert shipped(Path(path.name)).read_bytes() == path.read_bytes()
    (tmp_path / "demo.yaml").write_text("mine")
    assert shipped(Path("demo.yaml")) == Path("demo.yaml")  # what is there goes before what is shipped
    assert shipped(Path("elsewhere/demo.yaml")) == Path("elsewhere/demo.yaml")
    assert shipped(Path("configs/none.yaml")) == Path("configs/none.yaml")


def test_llms_txt_lists_every_page_of_the_navigation_once_a_section(tmp_path: Path):
    build_site.gather(tmp_path)
    text = build_site.llms(tmp_path)
    assert text.startswith("# crossfill\n\n> Fill the empty cells of a task × language grid\n\n## Start\n")
    linked = set(re.findall(r"\]\(([^)]+)\.html\)", text))
    assert linked == {name.removesuffix(".md") for name in build_site._entries(build_site.navigation(tmp_path))}
    assert re.search(r"^- \[.*\]\(adapt\.html\): \w.*$", text, re.MULTILINE)
