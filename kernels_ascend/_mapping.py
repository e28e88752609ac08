"""The MindSpore operators that the fused operators call on Ascend, with the names of their operands in order.

`ascend(name, operand=value, ...)` calls one and checks the names of its operands. tests/kernels/test_mapping.py compares
these names with MindSpore's own headers, so this part of the mapping is checked without a device.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import msadapter
from msadapter.ops import raw

# MindSpore's operator -> its operands in order. A file of data, because the build of the native layer reads it too
# (msadapter/_host/native.py), which imports nothing of this package.
OPERATORS: dict[str, tuple[str, ...]] = {
    name: tuple(operands.split())
    for name, operands in json.loads(
        Path(__file__).with_name("operators.json").read_text(encoding="utf-8")
    ).items()
}

# Composites for which MindSpore has a single operator. It is not called yet, because its operands need a test on a device.
NOT_CALLED = {
    "all_gather_matmul": "AllGatherMatmul",
    "matmul_reduce_scatter": "MatmulReduceScatter",
    "npu_ffn": "FFNExt",
    "npu_mm_all_reduce_add_rms_norm": "MatmulAllReduceAddRmsNorm",
    "npu_moe_distribute_combine": "MoeDistributeCombine",
    "npu_moe_distribute_dispatch": "MoeDistributeDispatch",
}

# MindSpore expects a layout as a number of its enumeration FASInputLayoutMode.
LAYOUTS = {"BSH": 0, "BNSD": 1, "SBH": 2, "BSND": 3, "TND": 4}


UNDERIVABLE: set[str] = set()  # operators whose results cannot be differentiated


def no_derivative(name: str):
    """A gradient function that raises NotImplementedError, for operators without a derivative."""

    UNDERIVABLE.add(name)

    def refuse(g):
        raise NotImplementedError(f"derivative for {name} is not implemented (docs/coverage.md)")

    return refuse


def _tensors(values) -> list:
    """The tensors among the values, including those inside lists."""
    found = []
    for x in values:
        if isinstance(x, (list, tuple)):
            found += _tensors(x)
        elif isinstance(x, msadapter.Tensor):
            found.append(x)
    return found


def without_derivative(function):
    """Wraps `function` so that backward() through its results raises NotImplementedError."""
    name = function.__name__
    refuse = no_derivative(name)

    @functools.wraps(function)
    def run(*args, **kwargs):
        inputs = _tensors([*args, *kwargs.values()])
        if not msadapter.is_grad_enabled() or not any(x.requires_grad for x in inputs):
            return function(*args, **kwargs)
        from msadapter.autograd import Function

        class Underivable(Function):
            @staticmethod
            def forward(ctx, found, *inputs):
                return found.view_as(found)

            @staticmethod
            def backward(ctx, g):
                return refuse(g)

        def marked(x):
            return (
                Underivable.apply(x, *inputs)
                if isinstance(x, msadapter.Tensor) and x.is_floating_point()
                else x
            )

        with msadapter.no_grad():
            found = function(*args, **kwargs)
        return type(found)(map(marked, found)) if isinstance(found, (list, tuple)) else marked(found)

    return run


def ascend(name: str, **operands):
    """Calls MindSpore's operator `name`. All its operands must be given by name, in its order."""
    if tuple(operands) != OPERATORS[name]:
        raise TypeError(
            f"MindSpore's operator {name} takes the operands {', '.join(OPERATORS[name])}, but got {', '.join(operands)}"
        )
    return getattr(raw, name)(*operands.values())
