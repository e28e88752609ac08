"""Merges an adapter of peft into the model that it belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..inference.engine import provide_torch
from . import forward, weights
from .work import ProofError, copy_beside

CONFIG = "adapter_config.json"
_TYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def base_of(adapter: Path, like: str | None) -> Path:
    """The folder of the model that an adapter belongs to: the one that is named, or that the adapter names.

    Raises:
        UserError: there is no such folder.
    """
    try:
        named = like or json.loads((adapter / CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{adapter / CONFIG}: the file does not name the adapter's model ({error!r}): set convert.like to the folder of "
            "the model"
        ) from None
    place = Path(str(named))
    if not (place / "config.json").is_file():
        raise UserError(
            f"{adapter}: the adapter belongs to the model {named}, and there is no such folder on this machine: set "
            "convert.like to the folder of the model"
        )
    return place


def merge(adapter: Path, base: Path, result: Path, with_forward: bool) -> dict[str, Any]:
    """Writes the merged model and returns the proofs.

    Raises:
        ProofError: another weight than those that the adapter belongs to has changed, or the outputs differ.
    """
    before = weights.tensors(base)
    kinds = {one.dtype for one in before.values()}
    if len(kinds) != 1 or not kinds <= set(_TYPES):
        raise UserError(
            f"{base}: has weights of the types {', '.join(sorted(kinds))}; one of {list(_TYPES)} can be merged"
        )
    (dtype,) = kinds
    model = forward.load(base)
    named = {name for name, _ in model.named_parameters()}
    model = _adapted(model, adapter, base)
    expected = forward.logits(model) if with_forward else None
    touched = {
        name.partition(".lora_A")[0].removesuffix(".base_layer")
        for name, _ in model.base_model.model.named_parameters()
        if ".lora_A" in name
    }
    fixed = {name for name in named if not name.startswith(tuple(f"{one}." for one in touched))}
    import torch

    whole = model.merge_and_unload().to(getattr(torch, _TYPES[dtype]))
    whole.save_pretrained(result)
    copy_beside(base, result)
    return _proofs(before, weights.tensors(result), fixed, expected, result, dtype)


def peft() -> Any:
    """The package.

    Raises:
        UserError: it is not installed.
    """
    provide_torch()
    try:
        import peft as package
    except ModuleNotFoundError:
        from ..training.hf import REQUIREMENTS

        raise UserError(
            f"an adapter needs the package peft: pip install --no-deps -r {REQUIREMENTS}"
        ) from None
    return package


def load(adapter: Path, base: Path) -> Any:
    """A model of Hugging Face in float32 with its adapter."""
    return _adapted(forward.load(base), adapter, base)


def _adapted(model: Any, adapter: Path, base: Path) -> Any:
    package = peft()
    try:
        return package.PeftModel.from_pretrained(model, str(adapter)).eval()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise UserError(f"{adapter}: does not fit {base}: {str(error).splitlines()[0]}") from None


def _proofs(
    before: dict[str, weights.Tensor],
    after: dict[str, weights.Tensor],
    fixed: set[str],
    expected: Any,
    result: Path,
    dtype: str,
) -> dict[str, Any]:
    changed = {name for name in before if name in after and before[name].sha256 != after[name].sha256}
    rest = {name for name in before if name not in changed}
    if wrong := weights.difference(
        {n: before[n] for n in rest}, {n: after[n] for n in after if n not in changed}
    ):
        raise ProofError(f"{result}: {wrong}")
    # Experts have other names on disk than in the model; what happens to them shows in the logits alone.
    if strange := changed & fixed:
        raise ProofError(f"{result}: {min(strange)} has changed, but the adapter has nothing for it")
    found: dict[str, Any] = {"tensors": len(after), "changed": len(changed), "unchanged": len(rest)}
    if expected is not None:
        again = forward.logits(forward.load(result))
        found["logits"] = forward.compare(expected, again, dtype, "adapter and merged model")
    return found
