"""Random short programs of views, in-place operations and arithmetic on a few tensors, as lists of instructions.

A program is made from any source of integers, so that a seed (for the recorded answers) and hypothesis (for fresh ones)
use the same builder. Each step appends a value or changes one; errors are part of the answer.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import warnings

from tests.golden.answers import first_sentence, number

PROGRAMS = 300  # as many are recorded whole

VIEWS = {
    "transpose": lambda x, i: x.transpose(0, -1),
    "permute": lambda x, i: x.permute(tuple(reversed(range(x.dim())))),
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
    "split": lambda x, i: x.split(2, -1)[i % 2 - 1],
    "tensor_split": lambda x, i: x.tensor_split(2)[i % 2],
    "unbind_last": lambda x, i: x.unbind(-1)[i % x.shape[-1]],
    "unflatten": lambda x, i: x.unflatten(-1, (2, -1)),
    "swapaxes": lambda x, i: x.swapaxes(0, 1),
    "real_pairs": lambda x, i: x.real,
    "select_negative": lambda x, i: x.select(-1, i % 2),
    "expand_as": lambda x, i: x[..., :1].expand_as(x),
    "as_strided_apart": lambda x, i: x.as_strided((2, 2), (2, 1), i % 2),
    "rows_backwards": lambda x, i: x[i % 2 : 2 : 2, None],
}
CHANGES = {
    "add_": lambda x, y, i: x.add_(y, alpha=0.5),
    "add_number": lambda x, y, i: x.add_(0.25 * i),
    "mul_": lambda x, y, i: x.mul_(y),
    "mul_number": lambda x, y, i: x.mul_(1.5),
    "div_number": lambda x, y, i: x.div_(2.0),
    "copy_": lambda x, y, i: x.copy_(y),
    "zero_": lambda x, y, i: _single(x).zero_(),
    "fill_": lambda x, y, i: _single(x).fill_(0.5),
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
    "masked_fill_": lambda x, y, i: _single(x).masked_fill_(x > 0.5, 0.1),
    "masked_fill_tensor_": lambda x, y, i: _single(x).masked_fill_(x < 0.0, y.sum()),
    "index_put_": lambda x, y, i: _single(x).index_put_((_places(x, i),), y.mean()),
    "index_fill_": lambda x, y, i: _single(x).index_fill_(0, _places(x, i), 0.3),
    "index_copy_": lambda x, y, i: x.index_copy_(0, _places(x, 0), x[:1] * 0.5),
    "scatter_": lambda x, y, i: x.scatter_(0, (x > 0).long() * 0, 0.25),
    "set_places": lambda x, y, i: _single(x).__setitem__(_places(x, i), y[0]),
    "copy_transposed": lambda x, y, i: x.copy_(x.clone().transpose(0, 1)),
    "cumsum_": lambda x, y, i: x.cumsum_(0),
    "lerp_": lambda x, y, i: x.lerp_(y, 0.25),
    "sqrt_of_square_": lambda x, y, i: x.square_().sqrt_(),
    "where_out": lambda x, y, i: x.copy_(x.where(x > y, y)),
    "transpose_": lambda x, y, i: x.transpose_(0, -1),
    "unsqueeze_": lambda x, y, i: x.unsqueeze_(i % 2),
    "data": lambda x, y, i: setattr(x, "data", x.detach() * 0.5),
    "through_data": lambda x, y, i: x.data.mul_(0.5),
    "through_detach": lambda x, y, i: x.detach().add_(0.125),
    "set_": lambda x, y, i: x.detach().set_(y.detach()),
    "requires_grad_": lambda x, y, i: x.requires_grad_(i % 2 == 0),
    "retain_grad": lambda x, y, i: x.retain_grad(),
    "quiet_add_": lambda x, y, i: _quietly(x, lambda: x.add_(y)),
    "quiet_copy_": lambda x, y, i: _quietly(x, lambda: x.copy_(y * 0.5)),
    "quiet_zero_": lambda x, y, i: _quietly(x, x.zero_),
}
QUIET = {
    "view": lambda x, i: _quietly(x, lambda: x.view(-1)),
    "narrow": lambda x, i: _quietly(x, lambda: x.narrow(0, 0, 1)),
    "unbind": lambda x, i: _quietly(x, lambda: x.unbind(0)[0]),
    "compute": lambda x, i: _quietly(x, lambda: x * 2),
}


def _places(x, i):
    """One or two row numbers, as a tensor of x's library."""
    return (x.detach().flatten()[: 1 + i % 2] * 0).long() + i % 2


_library = [None]  # the torch of the running program


def _single(x):
    """Return x. ValueError if it is expanded: torch only warns when such a tensor is changed in place, and its gradients are
    wrong.
    """
    if not x.dim() or any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
        raise ValueError("expanded")
    return x


def _overlaps(x) -> bool:
    """Whether elements share memory although no stride is 0. The result of a write to them depends on its order."""
    reach = 1
    dims = [(stride, n) for stride, n in zip(x.stride(), x.shape, strict=True) if n > 1 and stride]
    for stride, size in sorted(dims):
        if stride < reach:
            return True
        reach = stride * (size - 1) + reach
    return False


def _matrices(x, y) -> bool:
    return x.dim() > 1 and y.dim() > 1 and x.shape[-1] == y.shape[-2]


def _quietly(x, function):
    """Run without recording."""
    with _library[0].no_grad():
        return function()


ARITHMETIC = {
    "index_select": lambda x, y, i: x.index_select(0, _places(x, i)),
    "where": lambda x, y, i: x.where(x > y, y),
    "max": lambda x, y, i: x.max(0)[0],
    "softmax": lambda x, y, i: x.softmax(-1),
    "cumsum": lambda x, y, i: x.cumsum(0),
    "prod": lambda x, y, i: x.prod(-1),
    "flip": lambda x, y, i: x.flip(0),
    "masked": lambda x, y, i: x[x > 0],
    "index": lambda x, y, i: x[_places(x, i)].contiguous(),
    "norm": lambda x, y, i: x.norm(),
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
    "matmul": lambda x, y, i: (x @ y).flatten() if _matrices(x, y) else x * 2,
}
KINDS = [
    *(("view", n) for n in VIEWS),
    *(("change", n) for n in CHANGES),
    *(("compute", n) for n in ARITHMETIC),
    *(("quiet", n) for n in QUIET),
]


def build(draw, length: int) -> list[tuple[str, str, int, int, int]]:
    """A random program. ``draw(n)`` returns an integer below n. A step is (kind, name, operand, other operand, parameter)."""
    return [(*KINDS[draw(len(KINDS))], draw(100), draw(100), draw(4)) for _ in range(length)]


def from_seed(seed: int) -> list:
    source = random.Random(seed)
    return build(source.randrange, source.randrange(3, 10))


def _sentence(error: Exception) -> str:
    """The first sentence of an error. Python 3.10 says of `1 % 0` what newer ones say of `1 // 0` alone."""
    text = first_sentence(error)
    older = sys.version_info < (3, 11) and isinstance(error, ZeroDivisionError)
    return text.replace("integer division or modulo", "integer modulo") if older else text


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
    """Everything about a program that is compared: errors by step, the final values, and the gradients of the leaves."""
    _library[0] = torch
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
                    if _overlaps(x):
                        continue
                    # a part of x with holes is not noticed by torch: what is read of it would depend on the order
                    plain = x.is_contiguous() and y.is_contiguous()
                    CHANGES[name](x, y if plain else y.clone(), parameter)
                elif kind == "compute":
                    values.append(ARITHMETIC[name](x, y, parameter))
                else:
                    values.append((VIEWS if kind == "view" else QUIET)[name](x, parameter))
            except Exception as error:
                errors[str(step)] = [type(error).__name__, _sentence(error)]
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


def _coarse(value):
    """The number without its last digits, in which libraries differ."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) > 1e-7 else 0.0
    if isinstance(value, list):
        return [_coarse(v) for v in value]
    return value


def digest(found: dict) -> str:
    """Short hashes of the errors, the geometry and flags of the values, their numbers, and the gradients."""
    aspects = (
        found["errors"],
        [[*v[:6], *v[7:]] for v in found["values"]],
        _coarse([v[6] for v in found["values"]]),
        _coarse(found["gradients"]),
    )
    return " ".join(hashlib.sha256(json.dumps(a).encode()).hexdigest()[:8] for a in aspects)


def golden_cases() -> dict:
    return {str(seed): lambda torch, s=seed: run(torch, from_seed(s)) for seed in range(PROGRAMS)}
