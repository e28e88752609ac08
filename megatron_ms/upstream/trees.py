"""The source trees of the upstreams: finds them in a folder of auto_convert.sh, or takes those that the configuration names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patches import MANIFEST

from ..convert import packages, sources
from ..convert.shell import SHIM, TORCH_OF_MINDSPEED, older_torch
from ..convert.steps import ROOT, ConvertError, digest
from ..convert.upstream import is_newer
from ..errors import UserError

MEGATRON, LLM = "Megatron-LM", "MindSpeed-LLM"
UNKNOWN = "unknown"  # the version of a tree that does not say it
_CONVERT = (
    "make one with `bash auto_convert.sh llm`, or with `bash auto_convert.sh core --source MEGATRON_LM`"
)


@dataclass(frozen=True)
class Trees:
    """The trees with which upstream's programs run.

    upstream: Megatron-LM or MindSpeed-LLM, whose programs are in `programs`. paths: folders for PYTHONPATH, in this order.
    state: what the programs depend on beside the trees, such as the version of a package.
    """

    upstream: str
    programs: Path
    paths: tuple[Path, ...]
    state: str = ""

    def program(self, name: str) -> Path:
        """The path of one of upstream's scripts.

        Raises:
            UserError: this upstream has no such script.
        """
        script = self.programs / name
        if not script.is_file():
            raise UserError(f"{self.programs} has no {name}: {_CONVERT}")
        return script

    def only_torch(self) -> bool:
        """True if the programs overwrite --ckpt-format by torch without a word, as MindSpeed-LLM 2.3.0 does."""
        source = self.programs / "mindspeed_llm" / "training" / "arguments.py"
        return source.is_file() and "args.ckpt_format = 'torch'" in source.read_text(encoding="utf-8")

    def environment(self, device: str, processes: int) -> dict[str, str]:
        """The variables that upstream's programs need, without those of the caller."""
        outside = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
        older = [older_torch(TORCH_OF_MINDSPEED)] if self.upstream == LLM else []
        ours = [str(place) for place in (*older, SHIM, ROOT, *self.paths)]
        python = str(Path(sys.executable).parent)
        places = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place != python]
        found = {
            # A converted tree is also on PYTHONPATH in a shell that has sourced its env.sh.
            "PYTHONPATH": os.pathsep.join([*ours, *(place for place in outside if place not in ours)]),
            "PATH": os.pathsep.join([python, *places]),  # Megatron's Makefile asks `python3` for headers
            "MSADAPTER_DEVICE": device,
            "CUDA_DEVICE_MAX_CONNECTIONS": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "1"),
        }
        if older:
            found["MSADAPTER_TORCH_VERSION"] = TORCH_OF_MINDSPEED
        if processes > 1:
            found["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        if self.upstream == MEGATRON and not (self.programs / MANIFEST).is_file():
            # Without the rules of `patches`, Megatron needs TransformerEngine's API on several processes.
            found["MSADAPTER_TRANSFORMER_ENGINE"] = "1"
        if (release := version(self)) != UNKNOWN and is_newer(release):
            found["MSADAPTER_TRITON"] = os.environ.get("MSADAPTER_TRITON", "1")  # as env.sh of a conversion
        return found

    def digest(self) -> str:
        """A hash of the names, sizes and times of change of all Python files of the trees. Reading them all takes seconds."""
        trees = [tree for tree in self.paths if not tree.name.startswith("packages-")]
        files = sorted(file for tree in trees for file in _sources(tree))
        states = [(str(file), state.st_size, state.st_mtime_ns) for file in files for state in [file.stat()]]
        return digest(sys.version, self.state, repr(states))


def _sources(tree: Path) -> list[Path]:
    """Python files of a tree that may contribute flags."""
    left_out = {"tests", "docs", "examples", "__pycache__", ".git"}
    return [file for file in tree.rglob("*.py") if not left_out & set(file.relative_to(tree).parts)]


def find(named: str | Sequence[str]) -> Trees:
    """The trees in a folder that auto_convert.sh wrote, or in the folders of a list (checkouts, in any order).

    Raises:
        UserError: a folder is absent, or contains none of the upstreams.
    """
    if isinstance(named, str):
        return _in_folder(Path(named).resolve())
    return _of_checkouts([Path(place).resolve() for place in named])


def _in_folder(folder: Path) -> Trees:
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: {_CONVERT}")
    for home in (folder, folder / "llm"):
        if (home / LLM).is_dir():
            trees = [home / name for name in (LLM, "MindSpeed", MEGATRON)]
            return Trees(LLM, trees[0], (*trees, *_packages_of(home)))
    for tree in (folder, folder / "megatron"):
        if _kind(tree) == MEGATRON:
            return Trees(MEGATRON, tree, (tree,))
    if (folder / "megatron" / "megatron" / "core").is_dir():
        raise UserError(f"{folder} contains only megatron.core, which has no training programs: {_CONVERT}")
    raise UserError(f"{folder} contains no tree of Megatron-LM or MindSpeed-LLM: {_CONVERT}")


def _packages_of(home: Path) -> list[Path]:
    """The folder of the Python packages of a conversion, such as build/llm-2.3.0."""
    scenario, _, number = home.name.partition("-")
    try:
        found = packages.folder_of(home.parent, sources.release_of(scenario, number or None))
    except (ConvertError, KeyError):
        return []  # a folder under another name, without packages of its own
    return [found] if found.is_dir() else []


def _of_checkouts(folders: Sequence[Path]) -> Trees:
    kinds = {}
    for folder in folders:
        kind = _kind(folder)
        if not folder.is_dir() or not kind:
            what = (
                "contains no Megatron-LM, MindSpeed or MindSpeed-LLM" if folder.is_dir() else "does not exist"
            )
            raise UserError(f"the folder {folder} {what}")
        kinds[kind] = folder
    if LLM in kinds:
        missing = [name for name in ("MindSpeed", MEGATRON) if name not in kinds]
        if missing:
            raise UserError(
                f"MindSpeed-LLM also needs a tree of {' and of '.join(missing)}: name it in the list"
            )
        return Trees(LLM, kinds[LLM], (kinds[LLM], kinds["MindSpeed"], kinds[MEGATRON]))
    if MEGATRON not in kinds:
        raise UserError("the list of trees has no Megatron-LM: add a checkout of it")
    return Trees(MEGATRON, kinds[MEGATRON], (kinds[MEGATRON],))


def _kind(tree: Path) -> str:
    """Which upstream a folder is; "" if none."""
    if (tree / "mindspeed_llm").is_dir():
        return LLM
    if (tree / "megatron" / "training").is_dir() and (tree / "pretrain_gpt.py").is_file():
        return MEGATRON
    return "MindSpeed" if (tree / "mindspeed").is_dir() else ""


def version(trees: Trees) -> str:
    """The version of Megatron Core in the trees, such as 0.12.1; UNKNOWN if they have none, as those of run.backend hf."""
    if not trees.paths:
        return UNKNOWN
    info = trees.paths[-1 if trees.upstream == MEGATRON else 2] / "megatron" / "core" / "package_info.py"
    text = info.read_text(encoding="utf-8") if info.is_file() else ""
    found = [re.search(rf"^{part} = (\d+)", text, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(match[1] for match in found if match) or UNKNOWN
