"""Writes the tables of docs/versions.md, which say what belongs together: python -m megatron_ms.convert.versions"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from msadapter.alias import TORCH_VERSION

from .environment import PYTHONS, pinned
from .sources import SCENARIOS, Release, folder_of
from .steps import ROOT, write_atomically

PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- versions: begin (python -m megatron_ms.convert.versions) -->", "<!-- versions: end -->"
_UPSTREAMS = ("Megatron-LM", "MindSpeed", "MindSpeed-LLM", "MindSpeed-MM", "MindSpeed-RL")


def text() -> str:
    """The tables: what every scenario has in common, and the upstreams of each."""
    common = {
        "Python": ", ".join(f"{major}.{minor}" for major, minor in PYTHONS),
        "MindSpore": _pin("mindspore"),
        "NumPy": _pin("numpy"),
        "CANN, for an NPU (what MindSpore's own check accepts)": ", ".join(cann()),
        "names of PyTorch (`torch.__version__`)": TORCH_VERSION,
        "transformers": _pin("transformers"),
    }
    rows = [f"| {name} | {version} |" for name, version in common.items()]
    head = f"| conversion | {' | '.join(_UPSTREAMS)} | Python |\n|---|{'---|' * len(_UPSTREAMS)}---|"
    found = [
        _row(name, release, default=not number)
        for name, releases in SCENARIOS.items()
        for number, release in enumerate(releases)
    ]
    return "\n".join(["| what | version |\n|---|---|", *rows, "", head, *found]) + "\n"


def _pin(name: str) -> str:
    """The pinned version of a package; where older Pythons have another one, that too."""
    versions = {python: pinned(("hf",), python)[name] for python in PYTHONS}
    newest = versions[PYTHONS[-1]]
    others = [f"{own} with Python {a}.{b}" for (a, b), own in versions.items() if own != newest]
    return "; ".join([newest, *others])


def _row(scenario: str, release: Release, default: bool) -> str:
    refs = {source.name: source.ref for source in release.sources}
    command = f"auto_convert.sh {scenario}" + ("" if default else f" --release {release.number}")
    least = tuple(int(part) for part in release.python.removeprefix(">=").split("."))
    ours = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS if (major, minor) >= least)
    cells = [f"`{command}` in `build/{folder_of(scenario, release.number)}`"]
    cells += [refs.get(name, "") for name in _UPSTREAMS] + [ours]
    return f"| {' | '.join(cells)} |"


def cann() -> list[str]:
    """The versions of CANN that the installed MindSpore accepts, read from its source without importing it."""
    spec = importlib.util.find_spec("mindspore")
    if spec is None or spec.origin is None:
        raise RuntimeError("mindspore is not installed: pip install msadapter")
    file = Path(spec.origin).parent / "run_check" / "_check_version.py"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == "AscendEnvChecker":
            for step in ast.walk(node):
                if isinstance(step, ast.Assign) and ast.unparse(step.targets[0]) == "self.version":
                    return [str(version) for version in ast.literal_eval(step.value)]
    raise RuntimeError(f"{file} does not say which versions of CANN it accepts: look how this MindSpore does")


def page(old: str) -> str:
    """The page with the present tables between its marks."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text()}\n{END}{after}"


def main() -> None:
    """Writes the page."""
    write_atomically(PAGE, page(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
