"""The files of docker/ name what exists: copied files, extras, the proven Python, a CANN that MindSpore accepts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from megatron_ms.convert import versions
from megatron_ms.convert.environment import PYTHONS
from patches import toml
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_dockerfile_installs_what_there_is(file) -> None:
    text = file.read_text(encoding="utf-8")
    (extras,) = re.findall(r"/opt/msadapter\[([\w,-]+)\]", text)
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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


PROGRAM = """
import torch
import torch.distributed as dist

dist.init_process_group()
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"{dist.get_rank()} of {dist.get_world_size()}: {total.item()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


def _filled_in(text: str, variables: dict[str, str]) -> str:
    """The text as Compose reads it: ${NAME:-default}, and ${NAME:?message} for a variable that must be set."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if not variables.get(name) and kind == "?":
            raise KeyError(f"{name} {rest}")
        return variables.get(name) or rest

    return re.sub(r"\$\{(\w+):([-?])([^}]*)\}", value, text)


def _start(node: dict, there: str, here: str, folder: Path) -> subprocess.Popen:
    """A node's command in a process of this machine, which meets the others at `here` instead of `there`."""
    words = [word.replace(there, here) for word in node["command"]]
    return subprocess.Popen(
        [sys.executable, "-m", "msadapter", *words],
        cwd=folder,
        env=os.environ | node["environment"] | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_nodes_are_one_job(tmp_path) -> None:
    """The commands of the two nodes train together, with the secret that README.md's command makes; without one, nothing starts."""
    yaml = pytest.importorskip("yaml", reason="needs the extra megatron-newer")
    (line,) = re.findall(
        r"^    (export MSADAPTER_JOB_SECRET=.*)$", (ROOT / "docker/README.md").read_text(), re.M
    )
    text = (ROOT / "docker/compose.yaml").read_text(encoding="utf-8")
    assert f"#     {line}\n" in text
    made = f'{line}; printf %s "$MSADAPTER_JOB_SECRET"'
    secret = subprocess.run(["bash", "-c", made], capture_output=True, text=True, check=True).stdout
    (tmp_path / "train.py").write_text(PROGRAM)
    with pytest.raises(KeyError, match="MSADAPTER_JOB_SECRET is not set"):
        _filled_in(text, {})
    filled = _filled_in(text, {"MSADAPTER_JOB_SECRET": secret, "PROGRAM": "train.py"})
    nodes = yaml.safe_load(filled)["services"]
    assert (ROOT / nodes["node0"]["build"]["dockerfile"]).is_file()
    entry = re.search(r"^ENTRYPOINT (.*)$", (ROOT / "docker/cpu.Dockerfile").read_text(), re.M)
    assert entry and json.loads(entry.group(1)) == ["python", "-m", "msadapter"]
    endpoint = f"{nodes['node0']['hostname']}:29500"
    assert sum(word.count(endpoint) for word in nodes["node0"]["command"]) == 1
    here = f"localhost:{free_port()}"
    jobs = [_start(node, endpoint, here, tmp_path) for node in nodes.values()]
    try:
        outputs = [job.communicate(timeout=240)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0, 0], outputs
    said = sorted(line for output in outputs for line in output.splitlines() if " of 4: " in line)
    assert said == [f"{rank} of 4: 10.0" for rank in range(4)], outputs
    assert "every process that reaches the port" not in "".join(outputs)


def test_forms_for_issues_are_whole() -> None:
    yaml = pytest.importorskip("yaml", reason="needs the extra megatron-newer")
    for file in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")):
        form = yaml.safe_load(file.read_text(encoding="utf-8"))
        ids = [part["id"] for part in form["body"]]
        assert form["name"] and form["description"] and len(ids) == len(set(ids)), file
        assert all(part["attributes"]["label"] for part in form["body"]), file
