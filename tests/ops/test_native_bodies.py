"""Operators whose body exists twice, in Python and in C++, give the same results and the same errors.

An ordinary call runs the C++ code. The Python body remains the definition: other devices and MSADAPTER_FAST=0 run it.
"""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter._host.native import load
from msadapter.ops._declare import declarations
from tests.golden.answers import told

NATIVE = load().native_entries()


def x(*shape, dtype=torch.float32):
    count = 1
    for n in shape:
        count *= n
    return ((torch.arange(count) * 0.7 + 0.4).sin() * 3).reshape(shape).to(dtype)


CUBE = x(2, 3, 4)
TURNED = x(4, 2, 3).permute(1, 2, 0)
ONES = x(1, 3, 1, 2)
PART = x(5, 6)[1:4, ::2]
EMPTY, NUMBER, VECTOR = x(2, 0, 3), torch.tensor(1.5), x(4)
META = torch.ones(2, 3, device="meta")
LAST = x(2, 3, 4, 5).to(memory_format=torch.channels_last)
GAPS = x(4, 6)[::2, ::3]
LABELS = torch.tensor([2, 0, -100])
ROWS = torch.tensor([[1, 0], [2, 2]])

_SIZES = [
    {"size": [2, 3]},
    {"size": []},
    {"size": [0, 2]},
    {"size": [2, -1]},
    {"size": [2], "dtype": torch.int16},
    {"size": [2], "device": "meta"},
    {"size": [2], "device": "cuda"},
    {"size": [2], "requires_grad": True},
    {"size": [2], "layout": torch.strided},
    {"size": [2], "layout": torch.sparse_csr},
]
_LIKE = [{"self": t} for t in (CUBE, TURNED, PART, EMPTY, NUMBER, META, LAST, GAPS, x(1).expand(3, 2))] + [
    {"self": TURNED, **more}
    for more in (
        {"dtype": torch.int8},
        {"device": "meta"},
        {"requires_grad": True},
        {"memory_format": torch.contiguous_format},
        {"memory_format": torch.preserve_format},
        {"memory_format": torch.channels_last},
        {"layout": torch.jagged},
    )
]
_LIKE += [{"self": LAST, "memory_format": torch.channels_last}]


def _of(tensors, *rows):
    return [{"self": t, **row} for t in tensors for row in rows]


CASES = {
    "Tensor.new_empty": [{"self": t, **row} for t in (CUBE, META) for row in _SIZES],
    "Tensor.new_zeros": [{"self": t, **row} for t in (CUBE, META) for row in _SIZES],
    "_cat": [
        {"tensors": [CUBE, TURNED], "dim": -1, "lengths": [4, 4]},
        {"tensors": [PART, PART[:1]], "dim": 0, "lengths": [3, 1]},
    ],
    "_contiguous_copy": _of([CUBE, TURNED, PART, NUMBER, EMPTY, LAST], {}),
    "_cross_entropy": [
        {
            "self": x(3, 4),
            "target": LABELS,
            "weight": w,
            "reduction": how,
            "ignore_index": -100,
            "label_smoothing": s,
        }
        for w in (None, x(4).abs())
        for how in (0, 1, 2)
        for s in (0.0, 0.2)
    ],
    "_embedding": [
        {"weight": x(3, 4), "indices": ROWS, "padding_idx": p, "scale_grad_by_freq": f}
        for p, f in ((-1, False), (1, True))
    ],
    "_region": _of(
        [CUBE, TURNED],
        {"spec": []},
        {"spec": [0, 1, 0, 0]},
        {"spec": [1, 1, 2, 1, 0, 2, 0, 0]},
        {"spec": [2, 0, 0, 0, 1, 0, 1, 2, 2, 0, 0, 0, 0, 1, 0, 0, 1, 1, 2, 2, 2, 0, 0, 0]},
    ),
    "_slice": _of(
        [CUBE, TURNED],
        *(
            {"dim": dim, "start": start, "end": end, "step": step}
            for dim in (0, -1)
            for start, end, step in (
                (None, None, 1),
                (1, None, 2),
                (-2, 9, 1),
                (3, 1, 1),
                (-9, -1, 3),
                (0, 1, 0),
            )
        ),
        {"dim": 3, "start": 0, "end": 1, "step": 1},
    )
    + [{"self": NUMBER, "dim": 0, "start": 0, "end": 1, "step": 1}],
    "_split": _of([CUBE, TURNED], {"sizes": [1, 1, 2], "dim": 2}, {"sizes": [2, 0, 1], "dim": 1}),
    "_split_with_sizes": _of([CUBE, TURNED], {"sizes": [3, 1], "dim": 2}, {"sizes": [1, 1], "dim": 0}),
    "_unbind": _of([CUBE, TURNED], {"dim": 0}, {"dim": 1}, {"dim": 2}),
    "_unsafe_view": _of([CUBE], {"size": [6, 4]}, {"size": [24]}, {"size": [2, 1, 12]})
    + [{"self": EMPTY, "size": [0, 4]}],
    "arange": [
        {"start": a, "end": b, "step": c, **more}
        for a, b, c in (
            (5, None, 1),
            (1, 7, 2),
            (0.5, 3, 1),
            (7, 1, -2),
            (2, 2, 1),
            (0, 1, 0.25),
            (None, None, 1),
        )
        for more in ({}, {"dtype": torch.float64}, {"requires_grad": True, "dtype": torch.float32})
    ]
    + [{"start": 3, "device": "meta"}, {"start": 3, "layout": torch.sparse_coo}, {"start": None, "end": 3}],
    "as_strided": _of(
        [CUBE, PART],
        {"size": [2, 3], "stride": [1, 2]},
        {"size": [2], "stride": [3], "storage_offset": 4},
        {"size": [2, 2], "stride": [1]},
        {"size": [2], "stride": [-1]},
        {"size": [-2], "stride": [1]},
        {"size": [], "stride": [], "storage_offset": 1},
    ),
    "clone": _LIKE[:9]
    + _of(
        [LAST, CUBE],
        {"memory_format": torch.contiguous_format},
        {"memory_format": torch.preserve_format},
        {"memory_format": torch.channels_last},
    ),
    "cumsum": _of([CUBE, TURNED], {"dim": 1}, {"dim": -1, "dtype": torch.float64}, {"dim": 3})
    + [{"self": NUMBER, "dim": 0}],
    "empty": [
        *_SIZES,
        {"size": [2, 3, 4, 5], "memory_format": torch.channels_last},
        {"size": [2], "memory_format": torch.channels_last},
    ],
    "empty_like": _LIKE,
    "expand": _of(
        [ONES],
        {"size": [2, 3, 4, 2]},
        {"size": [5, -1, -1, -1, 2]},
        {"size": [1, 3, 0, 2]},
        {"size": [3, 2]},
        {"size": [-1, 1, 3, 1, 2]},
        {"size": [1, 4, 1, 2]},
        {"size": [1, 3, -2, 2]},
    )
    + [{"self": NUMBER, "size": [2, 3]}, {"self": TURNED, "size": [-1, 3, 4]}],
    "full": [{**row, "fill_value": v} for row in _SIZES for v in (2, 1.5)]
    + [{"size": [2], "fill_value": v} for v in (True, 1 + 2j)]
    + [{"size": [2], "fill_value": 3, "dtype": torch.complex64}],
    "log_softmax": _of([CUBE, TURNED], {"dim": 0}, {"dim": -1, "dtype": torch.float64}, {"dim": 3})
    + [{"self": NUMBER, "dim": 0}],
    "mean": _of(
        [CUBE, TURNED],
        {},
        {"dim": [1]},
        {"dim": [0, -1], "keepdim": True},
        {"dim": [], "dtype": torch.float64},
        {"dim": [1, 1]},
        {"dim": [3]},
    )
    + [{"self": NUMBER, "dim": [0]}, {"self": ROWS}],
    "ones": _SIZES,
    "ones_like": _LIKE,
    "permute": _of(
        [CUBE, TURNED],
        {"dims": [2, 0, 1]},
        {"dims": [-1, -2, 0]},
        {"dims": [0, 1]},
        {"dims": [0, 0, 1]},
        {"dims": [0, 1, 3]},
    )
    + [{"self": NUMBER, "dims": []}],
    "rand": _SIZES,
    "randn": _SIZES + [{"size": [17]}, {"size": [2], "dtype": torch.float16}],
    "select": _of(
        [CUBE, TURNED],
        *({"dim": d, "index": i} for d in (0, 1, -1) for i in (0, 1, -1)),
        {"dim": 1, "index": 3},
        {"dim": 1, "index": -4},
        {"dim": 3, "index": 0},
    )
    + [{"self": NUMBER, "dim": 0, "index": 0}],
    "softmax": _of([CUBE, TURNED], {"dim": 0}, {"dim": -1, "dtype": torch.float64}, {"dim": 3})
    + [{"self": NUMBER, "dim": 0}],
    "squeeze": _of(
        [ONES, ONES.permute(3, 2, 1, 0)],
        {},
        {"dim": [0]},
        {"dim": [-2, 1]},
        {"dim": [1, 1]},
        {"dim": [4]},
        {"dim": []},
    )
    + [{"self": NUMBER}, {"self": NUMBER, "dim": [0]}],
    "sum": _of(
        [CUBE, TURNED, ROWS],
        {},
        {"dim": [1]},
        {"dim": [0, -1], "keepdim": True},
        {"dim": [], "dtype": torch.float64},
        {"dim": [1, 1]},
        {"dim": [3]},
    )
    + [{"self": NUMBER, "dim": [0]}, {"self": CUBE > 0}],
    "t": _of([PART, VECTOR, NUMBER, CUBE], {}),
    "transpose": _of(
        [CUBE, TURNED],
        {"dim0": 0, "dim1": 2},
        {"dim0": -1, "dim1": 1},
        {"dim0": 1, "dim1": 1},
        {"dim0": 0, "dim1": 3},
    )
    + [{"self": NUMBER, "dim0": 0, "dim1": -1}],
    "unsqueeze": _of([CUBE, TURNED, NUMBER, EMPTY], *({"dim": d} for d in (0, 1, -1, 2, 3, 4, -5))),
    "view": _of(
        [CUBE, TURNED, PART, EMPTY],
        {"size": [-1]},
        {"size": [2, 3, 2, 2]},
        {"size": [2, 3, 4]},
        {"size": [4, 2, 3]},
        {"size": [3, 1, -1]},
        {"size": [5, -1]},
        {"size": [-1, -1]},
        {"size": [-2, 3]},
        {"size": [0, -1]},
        {"size": [2, 1, 0, 3]},
    ),
    "zeros": _SIZES,
    "zeros_like": _LIKE,
    # ordinary calls of composites
    "Tensor.where": [
        {"self": CUBE, "condition": CUBE > 0, "other": other}
        for other in (2, 2.5, x(4), NUMBER, x(3, 1, dtype=torch.float64))
    ],
    "cat": [
        {"tensors": [CUBE, TURNED, x(0)], "dim": 1},
        {"tensors": [CUBE, x(2, 3, 1, dtype=torch.float64)], "dim": -1},
        {"tensors": [VECTOR, torch.arange(2)], "dim": 0},
        {"tensors": [CUBE, VECTOR], "dim": 0},
        {"tensors": [CUBE, 3], "dim": 0},
        {"tensors": [], "dim": 0},
        {"tensors": [CUBE], "dim": 3},
    ],
    "chunk": _of(
        [CUBE, TURNED, EMPTY],
        {"chunks": 2, "dim": 2},
        {"chunks": 3, "dim": 1},
        {"chunks": 5, "dim": 0},
        {"chunks": 0},
    )
    + [{"self": NUMBER, "chunks": 1}, {"self": x(7), "chunks": 3}, {"self": x(7), "chunks": 4}],
    "contiguous": _of([CUBE, TURNED, PART, EMPTY, NUMBER], {})
    + _of(
        [LAST, x(2, 3, 4, 5)],
        {"memory_format": torch.channels_last},
        {"memory_format": torch.preserve_format},
        {"memory_format": torch.contiguous_format},
    ),
    "flatten": _of(
        [CUBE, TURNED, PART, EMPTY],
        {},
        {"start_dim": 1},
        {"start_dim": -2, "end_dim": 1},
        {"start_dim": 1, "end_dim": 0},
    )
    + [{"self": NUMBER}, {"self": VECTOR}, {"self": CUBE, "end_dim": 3}],
    "narrow": _of(
        [CUBE, TURNED],
        {"dim": 1, "start": 1, "length": 2},
        {"dim": -1, "start": -3, "length": 2},
        {"dim": 0, "start": torch.tensor(1), "length": 1},
        {"dim": 0, "start": 2, "length": 0},
        {"dim": 0, "start": 3, "length": 0},
        {"dim": 0, "start": -3, "length": 1},
        {"dim": 0, "start": 1, "length": 2},
        {"dim": 0, "start": 0, "length": -1},
        {"dim": 3, "start": 0, "length": 1},
    )
    + [{"self": NUMBER, "dim": 0, "start": 0, "length": 1}],
    "nn.functional.cross_entropy": [
        {"input": x(3, 4), "target": LABELS},
        {"input": x(3, 4), "target": LABELS, "weight": x(4).abs(), "reduction": "sum"},
        {"input": x(3, 4), "target": LABELS, "ignore_index": 2, "label_smoothing": 0.2, "reduction": "none"},
        {"input": x(3, 4), "target": x(3, 4).softmax(1)},
        {"input": x(4), "target": torch.tensor(2)},
        {"input": x(2, 4, 3), "target": torch.tensor([[0, 1, 2], [3, -100, 1]])},
        {"input": x(3, 4), "target": LABELS, "reduction": "other"},
        {"input": x(3, 4), "target": LABELS[:2]},
        {"input": x(3, 4), "target": LABELS, "size_average": False},
    ],
    "nn.functional.embedding": [
        {"input": ROWS, "weight": x(3, 4), **more}
        for more in (
            {},
            {"padding_idx": 1},
            {"padding_idx": -3},
            {"padding_idx": 3},
            {"padding_idx": -4},
            {"scale_grad_by_freq": True},
        )
    ],
    "reshape": _of(
        [CUBE, TURNED, PART, EMPTY],
        {"shape": [-1]},
        {"shape": [2, 3, 2, 2]},
        {"shape": [4, 2, 3]},
        {"shape": [3, 1, -1]},
        {"shape": [5, -1]},
        {"shape": [-1, -1]},
        {"shape": [0, -1]},
    ),
    "where": [
        {"condition": CUBE > 0},
        {"condition": CUBE > 0, "input": CUBE, "other": 2},
        {"condition": CUBE > 0, "input": 1, "other": 2.5},
        {"condition": CUBE > 0, "input": TURNED, "other": x(4, dtype=torch.float64)},
        {"condition": CUBE > 0, "input": CUBE},
        {"condition": CUBE > 0, "other": CUBE},
    ],
}
UNDEFINED = {"empty", "empty_like", "Tensor.new_empty"}  # their numbers are whatever was in memory


def described(value, numbers: bool):
    """What two results have in common, also the memory that a view shows."""
    if isinstance(value, (tuple, list)):
        return [described(v, numbers) for v in value]
    known = [
        value.dtype,
        list(value.shape),
        value.stride(),
        value.storage_offset(),
        str(value.device),
        value.requires_grad,
    ]
    return [*known, value.tolist() if numbers and not value.is_meta else None]


def memory(value):
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v.untyped_storage().data_ptr() for v in values]


def outcome(function, arguments, numbers):
    torch.manual_seed(3)
    given = next((v for v in arguments.values() if isinstance(v, torch.Tensor)), None)
    try:
        made = function(**arguments)
    except Exception as error:
        return told(error)
    shared = [m == given.untyped_storage().data_ptr() for m in memory(made)] if given is not None else None
    return described(made, numbers), shared


def test_every_body_and_call_in_cpp_is_compared():
    assert {*NATIVE["body"], *NATIVE["call"]} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_both_bodies(name):
    declaration = declarations[name]
    function = declaration.function if "f" in declaration.forms else declaration.method
    defaults = {p.name: p.default for p in declaration.schema.parameters}
    for row, arguments in enumerate(CASES[name]):
        numbers = name not in UNDEFINED
        wanted = outcome(function, arguments, numbers)
        found = outcome(declaration.body, defaults | arguments, numbers)
        assert found == wanted, (row, arguments)
