"""The suite facts: what PyTorch says about its operators, by their names in torch.ops.aten."""

from __future__ import annotations

import warnings

TAGS = ("nondeterministic_seeded", "pointwise", "reduction")


def _keeps_zeros(torch, packet) -> bool:
    """Whether PyTorch applies an operator to a sparse tensor, which it does if zero gives zero."""
    try:
        return packet(torch.tensor([0.0, 0.5, 0.0]).to_sparse()).layout is torch.sparse_coo
    except (RuntimeError, TypeError, NotImplementedError):
        return False


def golden_answers(torch) -> dict:
    warnings.simplefilter("ignore")
    packets = {name: getattr(torch.ops.aten, name) for name in sorted(dir(torch.ops.aten))}
    packets = {name: packet for name, packet in packets.items() if hasattr(packet, "overloads")}
    found: dict = {tag: [] for tag in TAGS} | {"keeps_zeros": []}
    for name, packet in packets.items():
        tags = {str(tag) for overload in packet.overloads() for tag in getattr(packet, overload).tags}
        for tag in TAGS:
            if f"Tag.{tag}" in tags:
                found[tag].append(name)
        if name in found["pointwise"] and not name.endswith("_") and _keeps_zeros(torch, packet):
            found["keeps_zeros"].append(name)
    foreach = [name.removeprefix("_foreach_") for name in dir(torch) if name.startswith("_foreach_")]
    return found | {"foreach": [name for name in foreach if not name.endswith("_")], "known": list(packets)}
