"""From an adapter of peft to a Megatron checkpoint with matrices of LoRA, with which a training goes on.

Megatron has one pair of matrices for queries, keys and values together, and one for both halves of a gated layer. Where the modules
of an adapter have different matrices A, these stand below each other in Megatron's A, and each B is in its own columns. The rank of
Megatron's matrices is then a multiple of the adapter's, and alpha the same multiple, so that both compute the same.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..inference.engine import provide_torch
from ..training import megatron
from ..training.folder import LATEST
from . import adapter, adapting_program, checkpoints, coding, forward, weights
from .upstream import Job, dtype_of

if TYPE_CHECKING:
    from ..config import Document
    from .section import Convert

# Modules of transformers -> the layer of Megatron that has them, with the modules of each layer in their order.
_MEMBERS = {
    "linear_qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "linear_proj": ("self_attn.o_proj",),
    "linear_fc1": ("mlp.gate_proj", "mlp.up_proj"),
    "linear_fc2": ("mlp.down_proj",),
}
_NAME = re.compile(r"base_model\.model\.(.*\.layers\.\d+)\.(\w+\.\w+)\.lora_(A|B)\.weight")
# Options of peft that change what an adapter computes -> the only value that Megatron's matrices can have.
_PLAIN = {
    "peft_type": "LORA", "bias": "none", "use_dora": False, "use_rslora": False, "fan_in_fan_out": False,
    "rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None, "lora_bias": False, "layer_replication": None,
}  # fmt: skip


@dataclass
class _Adapter:
    """rank, alpha, and layer (`model.layers.0`) -> module -> (A, B)."""

    rank: int
    alpha: float
    layers: dict[str, dict[str, tuple[Any, Any]]]


def to_megatron(document: Document, keys: Convert, source: Path, work: Path) -> dict[str, Any]:
    """Writes `result`, a checkpoint with weights and matrices, and returns the proofs.

    Raises:
        UserError: the adapter has what Megatron's LoRA cannot compute, or the section `tune` does not fit it.
        ProofError: the outputs differ.
    """
    base = adapter.base_of(source, keys.like)
    if keys.forward:
        adapter.peft()
    job = Job(document, keys, base, work)
    job.refuse_adapters()
    if not megatron.adapts(job.settings):
        raise document.error("run.task", "must be lora, because the adapter is trained further")
    found = _read(source)
    blocks = _blocks(found)
    _check(document, job, found, blocks)
    rank = blocks * found.rank
    before = weights.tensors(base)
    dtype = dtype_of(base, before)
    coded, matrices = work / "coded-of-transformers", work / "matrices.safetensors"
    _encode(base, found, blocks, coded, matrices)
    for folder, name in ((base, "plain"), (coded, "coded")):
        job.to_megatron(folder, dtype, work / name)
    plain = checkpoints.latest(work / "plain")
    result = work / "result"
    words = [plain, checkpoints.latest(work / "coded"), result / plain.name, matrices, rank]
    job.run([sys.executable, adapting_program.__file__, *words], 1, "putting the matrices in")
    (result / LATEST).write_bytes((work / "plain" / LATEST).read_bytes())
    count = sum(len(modules) for modules in found.layers.values())
    proofs: dict[str, Any] = {"layout": job.layout, "modules": count, "rank": rank}
    if keys.forward:
        expected = forward.logits(adapter.load(source, base))
        proofs["logits"] = forward.compare(expected, job.logits(result), dtype, "the adapter and Megatron")
    return proofs


def _read(source: Path) -> _Adapter:
    """The matrices of an adapter.

    Raises:
        UserError: it is damaged, or has what Megatron's LoRA cannot compute.
    """
    provide_torch()
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    place = source / adapter.CONFIG
    try:
        facts = json.loads(place.read_text(encoding="utf-8"))
        rank, alpha = int(facts["r"]), float(facts["lora_alpha"])
        file = source / "adapter_model.safetensors"
        tensors = load_file(file)
    except (ValueError, KeyError, TypeError, OSError, SafetensorError) as error:
        raise UserError(f"{source}: is not a complete adapter: {error}") from None
    for name, value in _PLAIN.items():
        given = facts.get(name, value)
        if given != value and (given or value):
            raise UserError(
                f"{place}: {name} is {given}, which Megatron's LoRA does not have: merge it instead"
            )
    halves: dict[str, dict[str, dict[str, Any]]] = {}
    known = {module for members in _MEMBERS.values() for module in members}
    for name, tensor in tensors.items():
        match = _NAME.fullmatch(name)
        if match is None or match[2] not in known:
            raise UserError(f"{file}: {name} has no place in Megatron's LoRA: merge the adapter instead")
        halves.setdefault(match[1], {}).setdefault(match[2], {})[match[3]] = tensor
    layers: dict[str, dict[str, tuple[Any, Any]]] = {}
    for layer, modules in halves.items():
        for module, pair in modules.items():
            if set(pair) != {"A", "B"} or pair["A"].shape[0] != rank or pair["B"].shape[1] != rank:
                raise UserError(f"{file}: {layer}.{module} has no matrices A and B of rank {rank}")
            layers.setdefault(layer, {})[module] = pair["A"], pair["B"]
    return _Adapter(rank, alpha, layers)


def _different(pairs: list[tuple[Any, Any]]) -> list[Any]:
    """The different matrices A."""
    import torch

    found: list[Any] = []
    for a, _ in pairs:
        if not any(torch.equal(a, other) for other in found):
            found.append(a)
    return found


def _blocks(found: _Adapter) -> int:
    """How many matrices A stand below each other in one of Megatron's, at most."""
    groups = (
        [modules[member] for member in members if member in modules]
        for modules in found.layers.values()
        for members in _MEMBERS.values()
    )
    return max((len(_different(pairs)) for pairs in groups), default=1)


def _check(document: Document, job: Job, found: _Adapter, blocks: int) -> None:
    """Raises UserError unless the section `tune` has the rank, alpha and layers of the result."""
    tune = job.settings.tune
    present = {module for modules in found.layers.values() for module in modules}
    targets = sorted(kind for kind, members in _MEMBERS.items() if present & set(members))
    wanted: Mapping[str, tuple[object, object]] = {
        "rank": (tune.rank, blocks * found.rank),
        "alpha": (tune.alpha, blocks * found.alpha),
        "targets": (sorted(tune.targets), targets),
    }
    for name, (given, value) in wanted.items():
        if given != value:
            text = f"[{', '.join(targets)}]" if name == "targets" else f"{value:g}"
            raise document.error(f"tune.{name}", f"must be {text}, to fit the matrices of this adapter")


def _encode(base: Path, found: _Adapter, blocks: int, coded: Path, matrices: Path) -> None:
    """Writes a model whose weights carry the matrices that Megatron divides among ranks, and a file with the others."""
    import torch
    from safetensors.torch import load_file, save_file

    rank, number = blocks * found.rank, 0
    codes: dict[str, tuple[Any, int, bool]] = {}
    others: dict[str, Any] = {}
    for layer, modules in sorted(found.layers.items()):
        for kind, members in _MEMBERS.items():
            pairs = [modules[member] for member in members if member in modules]
            if not pairs:
                continue
            stacked = _different(pairs)
            by_rows = coding.DIVIDED_BY_ROWS[kind]
            whole = torch.zeros(rank, stacked[0].shape[1], dtype=stacked[0].dtype)
            for place, a in enumerate(stacked):
                whole[place * found.rank : (place + 1) * found.rank] = a
            for member in members:
                b = _columns(modules.get(member), stacked, rank)
                codes[f"{layer}.{member}.weight"] = (b if by_rows else whole), number, by_rows
            others[f"{number}.{'A' if by_rows else 'B'}"] = whole if by_rows else b
            number += 1
    coded.mkdir()
    dtype = None
    for file in weights.files(base):
        held = load_file(file)
        for name in sorted(set(held) & set(codes)):
            matrix, layer_number, by_rows = codes.pop(name)
            dtype = held[name].dtype
            if matrix is None:
                matrix = torch.zeros(held[name].shape[0], rank)
            held[name] = coding.encode(held[name], matrix.to(dtype), layer_number, by_rows)
        save_file(held, coded / file.name, {"format": "pt"})
    if codes:
        raise UserError(f"{base}: has no {min(codes)}, which the adapter belongs to")
    if (base / weights.INDEX).is_file():
        (coded / weights.INDEX).write_bytes((base / weights.INDEX).read_bytes())
    save_file({name: value.to(dtype).contiguous() for name, value in others.items()}, matrices)


def _columns(pair: tuple[Any, Any] | None, stacked: list[Any], rank: int) -> Any:
    """B in the columns that belong to its A; None if the adapter has nothing for the module."""
    import torch

    if pair is None:
        return None
    a, b = pair
    found = torch.zeros(b.shape[0], rank, dtype=b.dtype)
    place = next(number for number, other in enumerate(stacked) if torch.equal(a, other))
    found[:, place * a.shape[0] : (place + 1) * a.shape[0]] = b
    return found
