"""python -m megatron_ms convert: models between Hugging Face, Megatron and peft's adapters, each proven."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..commands import add_config_arguments

if TYPE_CHECKING:
    from ..config import Document
    from .section import Convert

HELP = "convert models between Hugging Face and Megatron, and merge adapters; each result is proven"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Converts, proves, and only then gives the folder its name. A proof that fails is exit code 1."""
    from .. import config
    from .section import Convert
    from .work import MANIFEST, ProofError, folder_for, size, write_manifest

    document = config.load(arguments.config, arguments.overrides)
    keys = document.section("convert", Convert)
    source, output = Path(keys.source).absolute(), Path(keys.output).absolute()
    kind = _kind(document, source)
    try:
        with folder_for(document, output, 3 * size(source)) as work:
            facts = _convert(document, keys, kind, source, work)
            write_manifest(work / "result", {"source": str(source), "kind": kind, "proofs": facts})
    except ProofError as error:
        print(f"convert: not proven, and nothing is written: {error}", file=sys.stderr)
        return 1
    for name, value in facts.items():
        print(f"  {name}: {value:.3g}" if isinstance(value, float) else f"  {name}: {value}")
    print(f"{keys.output}: proven; hashes are in {Path(keys.output) / MANIFEST}")
    return 0


def _kind(document: Document, source: Path) -> str:
    """What a folder has.

    Raises:
        UserError: none of the three.
    """
    marks = {
        "adapter": "adapter_config.json",
        "huggingface": "config.json",
        "megatron": "latest_checkpointed_iteration.txt",
    }
    found = next((kind for kind, mark in marks.items() if (source / mark).is_file()), None)
    if found is None:
        what = "there is no folder" if not source.is_dir() else f"none of {', '.join(marks.values())} is in"
        raise document.error("convert.source", f"{what} {source}")
    return found


def _convert(document: Document, keys: Convert, kind: str, source: Path, work: Path) -> dict[str, Any]:
    """Writes the folder `result` into the folder of work. Returns what was proven."""
    if kind == "adapter":
        from . import adapter, adopt

        if keys.to == "megatron":
            return adopt.to_megatron(document, keys, source, work)
        if keys.to == "adapter":
            raise document.error("convert.to", "the source is an adapter already")
        base = adapter.base_of(source, keys.like)
        return adapter.merge(source, base, work / "result", keys.forward)
    if kind == keys.to == "huggingface":
        raise document.error("convert.to", f"{source} is a model of this format already")
    if kind == keys.to:
        from . import resharding

        return resharding.reshard(document, source, work)
    from . import export, upstream

    if keys.to == "adapter":
        if kind != "megatron":
            raise document.error("convert.to", "an adapter can be made only from a checkpoint of Megatron")
        return export.to_adapter(document, keys, source, work)
    make = upstream.to_megatron if keys.to == "megatron" else upstream.to_huggingface
    return make(document, keys, source, work)
