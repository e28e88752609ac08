"""The files of docker/ name what exists: copied files, extras, the proven Python, a CANN that MindSpore accepts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from megatron_ms.convert import versions
from megatron_ms.convert.environment import PYTHONS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_dockerfile_installs_what_there_is(file) -> None:
    text = file.read_text(encoding="utf-8")
    (extras,) = re.findall(r"/opt/msadapter\[([\w,-]+)\]", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for path in re.findall(r"--requirement /opt/msadapter/(\S+)", text):
        assert (ROOT / path).is_file()
    assert any(f"python:{a}.{b}-" in text or f"-py{a}.{b}\n" in text for a, b in PYTHONS)
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "nothing runs as root"


def test_the_image_for_ascend_has_an_accepted_cann() -> None:
    (number,) = re.findall(
        r"^ARG CANN=(\d+\.\d+)", (ROOT / "docker/ascend.Dockerfile").read_text(), re.MULTILINE
    )
    assert number in versions.cann()


def test_two_nodes_are_one_job() -> None:
    yaml = pytest.importorskip("yaml", reason="needs the extra megatron-newer")
    found = yaml.safe_load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8"))
    nodes = found["services"]
    assert (ROOT / nodes["node0"]["build"]["dockerfile"]).is_file()
    words = nodes["node0"]["command"]
    assert words == nodes["node1"]["command"] and f"--nnodes={len(nodes)}" in words
    (address,) = [word.partition("=")[2] for word in words if word.startswith("--rdzv-endpoint")]
    assert address.partition(":")[0] == nodes["node0"]["hostname"]


def test_forms_for_issues_are_whole() -> None:
    yaml = pytest.importorskip("yaml", reason="needs the extra megatron-newer")
    for file in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")):
        form = yaml.safe_load(file.read_text(encoding="utf-8"))
        ids = [part["id"] for part in form["body"]]
        assert form["name"] and form["description"] and len(ids) == len(set(ids)), file
        assert all(part["attributes"]["label"] for part in form["body"]), file
