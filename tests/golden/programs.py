"""Random short programs of views, in-place operations and arithmetic on a few tensors, as lists of instructions.

A program is made from any source of integers, so that a seed (for the recorded answers) and hypothesis (for fresh ones)
use the same builder. Each step appends a value or changes one; errors are part of the answer.
"""

from __future__ import annotations

import random
import warnings

from contracts import first_sentence, number

VIEWS = {
    "transpose": lambda x, i: x.transpose(0, -1),
    "permute": lambda x, i: x.permute(*reversed(range(x.dim()))),
    "select": lambda x, i: x.select(i % x.dim(), -1) if x.dim() else x.view(1),
    "narrow": lambda x, i: x.narrow(i % x.dim(), 0, max(1, x.shape[i % x.dim()] - 1)),
    "slice": lambda x, i: x[i % 2 :: 2],
    "index": lambda x, i: x[..., i % x.shape[-1]],
    "newaxis": lambda x, i: x[None],
    "unsqueeze": lambda x, i: x.unsqueeze(-1),
    "squeeze": lambda x, i: x.squeeze(),
    "flatten": lambda x, i: x.view(-1),
    "reshape": lambda x, i: x.reshape(-1, 2),
    "expand": lambda x, i: x.unsqueeze(0).expand(2, *x.shape),
    "diagonal": lambda x, i: x.diagonal(),
    "chunk": lambda x, i: x.chunk(2, -1)[i % 2 - 1],
    "unbind": lambda x, i: x.unbind(0)[-1],
    "unfold": lambda x, i: x.unfold(0, 2, 1),
    "as_strided": lambda x, i: x.as_strided((2, 2), (1, 2), i % 2),
    "movedim": lambda x, i: x.movedim(0, -1),
    "detach": lambda x, i: x.detach(),
    "view_as": lambda x, i: x.view_as(x),
}
CHANGES = {
    "add_": lambda x, y, i: x.add_(y, alpha=0.5),
    "add_number": lambda x, y, i: x.add_(0.25 * i),
    "mul_": lambda x, y, i: x.mul_(y),
    "mul_number": lambda x, y, i: x.mul_(1.5),
    "div_number": lambda x, y, i: x.div_(2.0),
    "copy_": lambda x, y, i: x.copy_(y),
    "zero_": lambda x, y, i: x.zero_(),
    "fill_": lambda x, y, i: x.fill_(0.5),
    "tanh_": lambda x, y, i: x.tanh_(),
    "sigmoid_": lambda x, y, i: x.sigmoid_(),
    "clamp_": lambda x, y, i: x.clamp_(-1.0, 1.0),
    "neg_": lambda x, y, i: x.neg_(),
    "addcmul_": lambda x, y, i: x.addcmul_(y, y, value=0.1),
    "set_row": lambda x, y, i: x.__setitem__(0, 0.75),
    "set_slice": lambda x, y, i: x.__setitem__((Ellipsis, slice(0, 1)), y.sum() * 0.1),
    "set_self": lambda x, y, i: x.__setitem__(slice(None), x * 0.5),
    "t_": lambda x, y, i: x.t_(),
    "squeeze_": lambda x, y, i: x.squeeze_(),
    "detach_": lambda x, y, i: x.detach_(),
    "masked_fill_": lambda x, y, i: x.masked_fill_(x > 0.5, 0.1),
}
ARITHMETIC = {
    "add": lambda x, y, i: x + y,
    "mul": lambda x, y, i: x * y,
    "sub": lambda x, y, i: x - y,
    "tanh": lambda x, y, i: x.tanh(),
    "exp": lambda x, y, i: (x * 0.1).exp(),
    "sum": lambda x, y, i: x.sum(0),
    "mean": lambda x, y, i: x.mean(-1, keepdim=True),
    "clone": lambda x, y, i: x.clone(),
    "contiguous": lambda x, y, i: x.contiguous(),
    "square": lambda x, y, i: x**2,
    "relu": lambda x, y, i: x.relu(),
    "matmul": lambda x, y, i: x @ y,
}
KINDS = [
    *(("view", n) for n in VIEWS),
    *(("change", n) for n in CHANGES),
    *(("compute", n) for n in ARITHMETIC),
]


def build(draw, length: int) -> list[tuple[str, str, int, int, int]]:
    """``draw(n)`` gives an integer below n. A step: kind, name, operand, other operand, parameter."""
    return [(*KINDS[draw(len(KINDS))], draw(100), draw(100), draw(4)) for _ in range(length)]


def from_seed(seed: int) -> list:
    source = random.Random(seed)
    return build(source.randrange, source.randrange(3, 10))


def _describe(x) -> list:
    plain = [
        list(x.shape),
        list(x.stride()),
        x.storage_offset(),
        x.requires_grad,
        x._is_view(),
        x._version,
        [number(round(v, 9)) for v in x.detach().flatten().tolist()],
    ]
    try:
        return [*plain, x.is_leaf]
    except RuntimeError as error:  # the graph of a view that may no longer be used
        return [*plain, first_sentence(error)]


def run(torch, program) -> dict:
    """Everything that is compared of a program: errors by step, the final values, and the gradients of the leaves."""
    leaves = [
        (torch.arange(12, dtype=torch.float64).view(3, 4) * 0.1 - 0.5).requires_grad_(),
        (torch.arange(4, dtype=torch.float64) * 0.3).requires_grad_(),
    ]
    values = [
        *leaves,
        leaves[0] * 1.0,
        leaves[1] * 1.0,
        torch.linspace(-1, 1, 8, dtype=torch.float64).view(2, 4),
    ]
    errors = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step, (kind, name, first, second, parameter) in enumerate(program):
            x, y = values[first % len(values)], values[second % len(values)]
            try:
                if kind == "change":
                    CHANGES[name](x, y, parameter)
                else:
                    values.append(
                        VIEWS[name](x, parameter) if kind == "view" else ARITHMETIC[name](x, y, parameter)
                    )
            except Exception as error:
                errors[str(step)] = [type(error).__name__, first_sentence(error)]
        found = []
        try:
            loss = sum(((i + 1) * v).sum() for i, v in enumerate(values[2:]) if v.requires_grad)
            if not isinstance(loss, (int, float)):
                loss.backward()
            found = [
                None if leaf.grad is None else [number(round(v, 9)) for v in leaf.grad.flatten().tolist()]
                for leaf in leaves
            ]
        except Exception as error:
            errors["backward"] = [type(error).__name__, first_sentence(error)]
    return {"errors": errors, "values": [_describe(v) for v in values], "gradients": found}
