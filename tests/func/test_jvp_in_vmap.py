"""jvp inside of two vmaps, batched along any dims of its primal and its tangent, against loops over single elements."""

from __future__ import annotations

import itertools

import pytest

import msadapter as torch
from msadapter.func import jvp, vjp, vmap

FUNCTIONS = {
    "exp": torch.exp,
    "cumsum": lambda a: torch.cumsum(a * a, 0),
    "sum of squares": lambda a: (a * a).sum(),
    "vjp": lambda a: vjp(torch.sin, a)[1](a)[0],
    "written": lambda a: a.clone().mul_(a).sub_(a.exp()),
}
INNER, OUTER = 2, 4


def _batched(inner, outer):
    """Return an input whose elements have 3 numbers, with the batch dims of both vmaps where they are wanted."""
    shape = [3]
    if inner is not None:
        shape.insert(inner, INNER)
    if outer is not None:
        shape.insert(outer, OUTER)
    return torch.randn(shape)


def _element(x, dim, i):
    return x if dim is None else x.select(dim, i)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "dims",
    [
        (inner, outer)
        for inner in itertools.product((None, 0, 1), repeat=2)
        for outer in itertools.product((None, 0, 1), repeat=2)
        if inner != (None, None) and outer != (None, None)
    ],
)
def test_elements_do_not_mix(name, dims):
    torch.manual_seed(3)
    inner, outer = dims
    function = FUNCTIONS[name]
    given = [_batched(i, o) for i, o in zip(inner, outer, strict=True)]

    def both(x, v):
        return jvp(function, (x,), (v,))

    found = vmap(vmap(both, inner), outer)(*given)
    for i, j in itertools.product(range(OUTER), range(INNER)):
        one = [_element(_element(x, o, i), d, j) for x, d, o in zip(given, inner, outer, strict=True)]
        for part, wanted in zip(found, both(*one), strict=True):
            assert torch.allclose(part[i, j], wanted, atol=1e-6)


def test_an_element_may_be_empty():
    x, v = torch.ones(0, 0), torch.ones(2, 0, 0).transpose(1, 2)
    found = vmap(lambda v: jvp(torch.sin, (x,), (v,)))(v)
    assert [part.shape for part in found] == [(2, 0, 0), (2, 0, 0)]
