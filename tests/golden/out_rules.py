"""The suite out_rules: which results and operands a function with ``out=`` refuses, and with which error.

One sample of every function that takes ``out=`` is called with operands or results that require grad, with results that
overlap themselves or an operand, and with results of other dtypes and sizes. The outcome of a case is "ok", "warns" or the
error, without the name of the function. For other dtypes it is the error's class only: PyTorch's kernels have some forty
different messages.
"""

from __future__ import annotations

import json
import os
import re
import warnings

from tests.golden import second_order, store
from tests.golden.extreme_integers import operator

DTYPES = ("float64", "float32", "float16", "int64", "bool", "complex128")
CLONE = " Please clone() the tensor before performing the operation."


def overlapping(torch, first, like):
    """An operand with the values of `first`, and a result like `like` that shares all but one element of its memory."""
    memory = torch.zeros(max(first.numel(), like.numel()) + 1, dtype=first.dtype)
    operand = memory[: first.numel()].view(first.shape)
    operand.copy_(first)
    return operand, memory[1 : 1 + like.numel()].view(like.shape)


class Sample:
    """The call of a sample: run() with results of the sample's sizes, or with others."""

    def __init__(self, torch, case: dict, arrays):
        self.torch, self.path = torch, case["path"]
        self.args = second_order.decoded(torch, case["args"], arrays)
        self.kwargs = {k: second_order.decoded(torch, v, arrays) for k, v in case["kwargs"].items()}
        with torch.no_grad():
            found = second_order.call(torch, self.path, self.args, self.kwargs)
        self.results = second_order.tensors(found)
        self.several = isinstance(found, (tuple, list))

    def fresh(self) -> list:
        return [self.torch.zeros(r.shape, dtype=r.dtype) for r in self.results]

    def operands(self) -> list:
        return second_order.tensors([self.args, list(self.kwargs.values())])

    def require(self, needed: bool) -> None:
        for t in self.operands():
            t.detach_().requires_grad_(needed and (t.is_floating_point() or t.is_complex()))

    def run(self, outs: list) -> str:
        out = tuple(outs) if self.several else outs[0]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                second_order.call(self.torch, self.path, self.args, {**self.kwargs, "out": out})
            except Exception as error:
                text = re.sub(r"^[\w:.]+\(\): ", "", str(error)).removesuffix(CLONE)
                return f"{type(error).__name__}: {text}"
        return "warns" if any("was resized" in str(w.message) for w in said) else "ok"

    def outcomes(self) -> dict[str, str]:
        torch, found = self.torch, {}
        self.require(True)
        found["operand requires grad"] = self.run(self.fresh())
        with torch.no_grad():
            found["operand requires grad, no_grad"] = self.run(self.fresh())
        self.require(False)
        if all(r.is_floating_point() or r.is_complex() for r in self.results):
            found["result requires grad"] = self.run([o.requires_grad_() for o in self.fresh()])
            with torch.no_grad():
                found["result requires grad, no_grad"] = self.run([o.requires_grad_() for o in self.fresh()])
        first = self.results[0]
        for dtype in DTYPES:
            others = self.fresh()[1:]
            found[f"result of {dtype}"] = self.run(
                [torch.zeros(first.shape, dtype=getattr(torch, dtype)), *others]
            ).split(":")[0]
        found["result of another size"] = self.run(
            [torch.zeros(first.numel() + 1, dtype=first.dtype), *self.fresh()[1:]]
        )
        if first.numel() > 1:
            expanded = torch.zeros((1,) * first.dim(), dtype=first.dtype).expand(first.shape)
            found["result expanded"] = self.run([expanded, *self.fresh()[1:]])
        self._with_shared_memory(found)
        return found

    def _with_shared_memory(self, found: dict[str, str]) -> None:
        given, like = self.args[0], self.results[0]
        if (
            not hasattr(given, "requires_grad")
            or given.dtype != like.dtype
            or given.numel() < 2
            or like.numel() < 2
        ):
            return
        self.args[0], out = overlapping(self.torch, given, like)
        found["result overlaps operand"] = self.run([out, *self.fresh()[1:]])
        if given.shape == like.shape:
            self.args[0] = given.clone()
            found["result is operand"] = self.run([self.args[0], *self.fresh()[1:]])


def answer(torch, name: str) -> dict[str, str] | None:
    """The outcomes of a sample, or None if its call does not succeed with out= and ordinary results."""
    known = store.load("samples")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sample = Sample(torch, known.cases[name], known.arrays)
        except Exception:  # not a call without out=
            return None
        sample.require(False)
        return sample.outcomes() if sample.results and sample.run(sample.fresh()) == "ok" else None


def in_child(function, *args):
    """The result of a function, computed in a child process; None if the child crashes, as PyTorch does for some cases."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.write(writing, json.dumps(function(*args)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(told) if told else None


def golden_answers(torch) -> dict[str, dict[str, str]]:
    """The outcomes of the first sample that succeeds, for each declared function with out=."""
    torch.set_num_threads(1)
    takes_out, found = store.load("out_forms").cases, {}
    for name, case in store.load("samples").cases.items():
        declared = takes_out.get(case["path"].removeprefix("torch."), False)
        if not declared or "-float64-" not in name or any(operator(name) == operator(k) for k in found):
            continue
        told = in_child(answer, torch, name)
        if told:
            found[name] = told
    return found
