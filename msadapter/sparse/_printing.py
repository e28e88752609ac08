"""The text of sparse tensors."""

from __future__ import annotations

from ..tensor._printing import PRINT_OPTS, _tensor_str, names_dtype

_INDENT = len("tensor(")


def _part(name: str, tensor) -> str:
    """Return ``name=tensor(...)`` with aligned lines."""
    prefix = f"{name}=tensor("
    if not tensor.numel():
        return f"{prefix}[], size={tuple(tensor.shape)})"
    return f"{prefix}{_tensor_str(tensor, _INDENT + len(prefix))})"


def sparse_str(tensor) -> str:
    """Return the parts, each on a line of its own, then size, nnz and everything that differs from its default."""
    rest = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if tensor.device.type != "cpu":
        rest.insert(0, f"device='{tensor.device}'")
    if names_dtype(tensor):
        rest.append(f"dtype={tensor.dtype}")
    rest.append(f"layout={tensor.layout}")
    if tensor.grad_fn is not None:
        rest.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        rest.append("requires_grad=True")
    out = "tensor(" + (",\n" + " " * _INDENT).join(_part(name, part) for name, part in tensor._parts())
    # for coordinates, the size begins a new line
    used, fresh = len(out) - out.rfind("\n") + 1, tensor.is_sparse
    for piece in rest:
        if fresh or used + len(piece) + 2 > PRINT_OPTS.linewidth:
            out, used, fresh = f"{out},\n{' ' * _INDENT}{piece}", _INDENT + len(piece), False
        else:
            out, used = f"{out}, {piece}", used + len(piece) + 2
    return out + ")"
