"""Tensor: copies, printing, dtypes, devices, construction and operators. Each function is one case."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np

from tests.golden.answers import refusal

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "complex64",
    "complex128",
)


def deepcopied(torch):
    x = torch.arange(4.0, requires_grad=True)
    x.grad = torch.ones(4)
    x.label = "kept"
    y = copy.deepcopy(x)
    base = torch.arange(6.0)
    pair = copy.deepcopy([base[1:3], base])
    pair[0].fill_(-1)
    return (
        y,
        y.requires_grad,
        y.grad,
        y.label,
        y.is_leaf,
        y.grad is x.grad,
        pair,
        base,
        pair[0].storage_offset(),
        refusal(copy.deepcopy, x * 2),
    )


def copied(torch):
    x = torch.arange(4.0)
    y = copy.copy(x)
    y[0] = 9
    return x, y is x


def pickled(torch):
    base = torch.arange(6.0).view(2, 3)
    parameter = torch.nn.Parameter(torch.ones(2))
    values = [
        base.t(),
        base[1],
        torch.tensor(True),
        torch.tensor([1 + 2j]),
        torch.ones(2).bfloat16(),
        parameter,
        torch.Size([1, 2]),
        torch.float16,
        torch.device("cpu"),
        torch.ones(2, requires_grad=True),
    ]
    back = pickle.loads(pickle.dumps(values))
    return (
        back,
        type(back[5]).__name__,
        type(back[6]).__name__,
        back[7] is torch.float16,
        back[0].untyped_storage() == back[1].untyped_storage(),
    )


def saved_and_loaded(torch):
    buffer, base = io.BytesIO(), torch.arange(6.0)
    torch.save({"a": base[2:], "b": base}, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    return back, back["a"].untyped_storage().data_ptr() == back["b"].untyped_storage().data_ptr()


def printed(torch):
    e = torch.tensor([])
    values = [
        torch.tensor(1.5),
        torch.tensor(3),
        torch.tensor(True),
        torch.tensor([1.0, 2.0]),
        torch.tensor([1.5, -2.25]),
        torch.tensor([1, 20, 300]),
        torch.tensor([[1.0, 2.5], [1e-3, 4.0]]),
        torch.tensor([1e-8, 1.0]),
        torch.tensor([1e10, 1.0]),
        torch.tensor([float("nan"), 1.0]),
        torch.tensor([float("inf"), -1.5]),
        torch.tensor([float("inf"), float("nan")]),
        torch.arange(1001.0),
        torch.arange(2000).view(40, 50),
        e,
        torch.zeros(0, 3),
        torch.zeros(2, 0, dtype=torch.int64),
        torch.ones(2, dtype=torch.float64),
        torch.ones(2).half(),
        torch.ones(2).bfloat16(),
        torch.tensor([1 + 2j, 0.5 - 1j]),
        torch.tensor([True, False]),
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True) * 2,
        torch.ones(2, 2, 2),
        torch.zeros(3),
        torch.tensor([0.0, -0.0]),
        torch.tensor([100000.0, 0.5]),
        torch.tensor([[-1.0, 20.0], [300.0, 4.0]]),
        torch.tensor(1e-10),
        torch.tensor([0.1] * 30),
        torch.arange(30),
        torch.ones(1, 1, 1, 1),
        torch.tensor([1, 2], dtype=torch.uint8),
        torch.tensor([123456789.0, 1.0]),
        torch.linspace(0, 1, 7),
        torch.tensor(-0.00001),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, requires_grad=True).view(2, 1),
        torch.tensor([[1 + 1j]]),
        torch.tensor(2 - 3j),
        torch.full((2, 3), 7, dtype=torch.int32),
        torch.ones(1100, 2)[:, 0],
        torch.tensor(float("nan")),
        torch.tensor([1e38, 1.0]),
    ]
    return [str(v) for v in values]


def formatted(torch):
    x = torch.tensor(3.14159)
    return (
        f"{x:.2f}",
        f"{torch.tensor(5):04d}",
        f"{x}",
        refusal(format, torch.ones(2), ".2f"),
        repr(torch.ones(1)),
        f"{torch.ones(2)}",
    )


def print_options(torch):
    x = torch.tensor([1.23456789, 1e-5, 100.0])
    seen = []
    for options in (
        {"precision": 2},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "full"},
        {"linewidth": 20},
        {"profile": "short"},
    ):
        torch.set_printoptions(**options)
        seen.append(str(x))
        torch.set_printoptions(profile="default")
    torch.set_printoptions(threshold=5, edgeitems=1)
    seen.append(str(torch.arange(10)))
    torch.set_printoptions(profile="default")
    return seen


def dtypes_print_and_compare(torch):
    return [
        [
            repr(d),
            str(d),
            d.itemsize,
            d.is_floating_point,
            d.is_complex,
            d.is_signed,
            d == torch.float,
            hash(d) == hash(d),
        ]
        for d in (getattr(torch, n) for n in DTYPES)
    ] + [
        torch.float is torch.float32,
        torch.long is torch.int64,
        torch.half is torch.float16,
        {torch.int: 1}[torch.int32],
        torch.double.to_complex(),
        torch.cfloat.to_real(),
    ]


def devices(torch):
    d = torch.device
    return [
        repr(d("cpu")),
        str(d("cuda:1")),
        d("cuda", 1) == d("cuda:1"),
        d("cpu") == d("cpu", 0),
        d("cuda:0").index,
        d("cpu").index,
        d("cuda").type,
        hash(d("cpu")) == hash(d("cpu")),
        d("cpu") == "cpu",
        d(d("cpu")) == d("cpu"),
        refusal(d, "nowhere"),
        refusal(d, "cuda:-1"),
        refusal(d, "cpu:x"),
        str(torch.ones(1).device),
        repr(torch.strided),
        repr(torch.preserve_format),
        repr(torch.channels_last),
        torch.contiguous_format is torch.contiguous_format,
        torch.ones(1).layout is torch.strided,
    ]


def sizes(torch):
    s = torch.ones(2, 3).shape
    return (
        repr(s),
        s == (2, 3),
        isinstance(s, tuple),
        s.numel(),
        type(s[:1]).__name__,
        type(s + (4,)).__name__,
        s[0],
        list(s),
        hash(s) == hash((2, 3)),
        torch.Size([1, 2]) == torch.Size((1, 2)),
        refusal(torch.Size, [1.5]),
        type(s * 2).__name__,
        s.index(3),
        s.count(2),
        repr(torch.Size()),
    )


def memory_formats(torch):
    x = torch.arange(24.0).view(1, 2, 3, 4)
    y = x.to(memory_format=torch.channels_last)
    return (
        y.stride(),
        y.is_contiguous(),
        y.is_contiguous(memory_format=torch.channels_last),
        y.contiguous().stride(),
        (y + 1).stride(),
        torch.empty_like(y).stride(),
        y.clone().stride(),
        torch.empty(1, 2, 3, 4, memory_format=torch.channels_last).stride(),
        y,
    )


def numbers_from_tensors(torch):
    x = torch.tensor([2])
    return (
        int(x),
        float(x),
        bool(x),
        x.item(),
        [10, 20, 30][x],
        torch.tensor(2.7).item(),
        complex(torch.tensor(1 + 2j)),
        refusal(torch.ones(2).item),
        refusal(bool, torch.ones(2)),
        refusal(bool, torch.ones(0)),
        refusal(int, torch.ones(2)),
        refusal([1].__getitem__, torch.tensor(0.5)),
        refusal(len, torch.tensor(1)),
        refusal(list, torch.tensor(1)),
        round(torch.tensor(2.6).item()),
        list(range(torch.tensor(3))),
    )


def made_from_data(torch):
    t = torch.tensor
    return (
        t([[1, 2], [3, 4]]),
        t([1, 2.5]),
        t([True, False]),
        t([1, True]),
        t([]),
        t([[]]),
        t(5),
        t(2.5),
        t(1j),
        t((1, 2)),
        t(range(3)),
        t(np.float64(1.5)),
        t([np.int32(1)]),
        t(np.arange(2, dtype=np.int16)),
        t([t(1), t(2)]),
        t([1, 2], dtype=torch.float16),
        refusal(t, [[1], [1, 2]]),
        refusal(t, "a"),
        refusal(t, [None]),
        t(2**40),
        t([1.0], dtype=torch.int32),
        t([[t(1.0)], [2]]),
        torch.Tensor([1, 2]),
        torch.Tensor(2, 3).shape,
        torch.FloatTensor([1]),
        torch.LongTensor([1, 2]),
        t(3, dtype=torch.bool),
    )


def old_constructors(torch):
    """torch.Tensor, torch.FloatTensor and Tensor.new have one set of signatures."""
    x, whole = torch.ones(2), torch.ones(2, dtype=torch.int64)
    return (
        [f(size=(2, 3)).shape for f in (torch.Tensor, torch.LongTensor, x.new)],
        [f(data=[1, 2]) for f in (torch.Tensor, torch.LongTensor, x.new)],
        torch.LongTensor(size=[2, 3], device="cpu").shape,
        torch.FloatTensor(other=x),
        torch.Tensor(whole),
        torch.FloatTensor([torch.tensor(1), 2]),
        torch.FloatTensor(np.int64(3)).shape,
        torch.FloatTensor(torch.ones(2).untyped_storage()),
        refusal(torch.LongTensor, x),
        refusal(x.new, whole),
        refusal(torch.LongTensor, x.storage()),
        *[refusal(f, 2.5) for f in (torch.Tensor, torch.LongTensor, x.new)],
        refusal(torch.Tensor, True),
        refusal(torch.FloatTensor, None),
        refusal(torch.Tensor, "ab"),
        refusal(torch.Tensor, size=3),
        refusal(torch.FloatTensor, [1], foo=1),
        refusal(x.new, foo=3),
        refusal(torch.IntTensor, 2, [3]),
        refusal(torch.IntTensor, -1),
        refusal(torch.IntTensor, 2.0, 3),
        refusal(torch.FloatTensor, 3, device="meta"),
    )


def made_like(torch):
    x = torch.ones(2, 3, dtype=torch.float64)
    return (
        x.new_tensor([1, 2]),
        x.new_zeros(2),
        x.new_ones((1, 2), dtype=torch.int8),
        x.new_full((2,), 3),
        x.new_empty(0),
        torch.zeros_like(x),
        torch.full_like(x, 2, dtype=torch.bool),
        torch.empty_like(x.t()).stride(),
        torch.full((2,), True),
        torch.full((2,), 2),
        torch.arange(3, dtype=torch.float32),
        torch.arange(0, 1, 0.25),
        torch.arange(5, 0, -2),
        torch.eye(2),
        torch.linspace(0, 1, 3),
    )


def numbers_of_several_kinds(torch):
    """The dtype of a list is that of all its numbers together, of numpy's and tensors too."""
    T, default = torch.tensor, torch.get_default_dtype()
    lists = (
        [1, np.float64(2)],
        [1.5, np.float64(2)],
        [np.float32(1), 2],
        [1, np.zeros(())],
        [1.5, np.zeros((), np.int32)],
        [True, np.ones((), np.int16)],
        [2.0, np.ones((), np.float16), np.int64(3)],
        [1, 1j, np.float64(1)],
        [np.uint8(3), np.int8(-1)],
        [np.array([1, 2]), [1.5, 2]],
        [T(1), 2.5],
        [T(1), T(2.5)],
        [1, torch.ones((), dtype=torch.float64)],
        [[T(1), T(2)], [3, 4.5]],
        [T(1.0, dtype=torch.bfloat16), T(1.0, dtype=torch.float16)],
        [T(2**53 + 1), 1],
    )
    made = [T(numbers) for numbers in lists]
    torch.set_default_dtype(torch.float64)
    try:
        made += [T([np.float32(1), 2.5]), T([T(1), 2.5]), T([np.float32(1), 2])]
    finally:
        torch.set_default_dtype(default)
    return made, torch.as_tensor([1, np.float64(2)]), torch.ones(1).new_tensor([1, np.float64(2)])


def what_is_no_number(torch):
    wrong = ([1, None], [torch.tensor(1), None], None, ["a"], [np.float32(1), "a"], "a")
    return [refusal(torch.tensor, data) for data in wrong]


def conversions(torch):
    x = torch.tensor([1.7, -2.3, 300.0])
    return (
        x.int(),
        x.to(torch.int8),
        x.long(),
        x.bool(),
        x.half(),
        x.bfloat16(),
        x.to("cpu") is x,
        x.to(torch.float32) is x,
        x.to(x) is x,
        x.to(torch.float32, copy=True) is x,
        x.type(),
        x.type(torch.int32),
        x.type("torch.DoubleTensor"),
        x.type_as(torch.ones(1).half()),
        x.double().dtype,
        x.to("cpu", torch.float64).dtype,
        x.float() is x,
        torch.tensor([1e40], dtype=torch.float64).float(),
        x.tolist(),
        x.char(),
    )


def type_promotion(torch):
    """Every pair of dtypes, for tensors, 0-dim tensors and Python numbers."""
    types, table = [getattr(torch, n) for n in DTYPES], {}
    for a in types:
        for b in types:
            x, y = torch.ones(2, dtype=a), torch.ones(2, dtype=b)
            table[f"{a} {b}"] = [
                str(v.dtype)
                for v in (
                    x + y,
                    x * y[0],
                    x[0] * y,
                    x[0] + y[0],
                    torch.where(x > 1 if not a.is_complex else x == 1, x, y),
                    torch.cat([x, y]),
                )
            ] + [str(torch.promote_types(a, b)), torch.can_cast(a, b)]
        x, numbers = torch.ones(2, dtype=a), (True, 2, 2.5, 1j)[: 3 if a is torch.float16 else 4]
        table[f"{a} numbers"] = [str((y * n).dtype) for y in (x, x[0]) for n in numbers]
        table[f"{a} division"] = [
            str((x / 2).dtype),
            str(x.sum().dtype),
            str(torch.result_type(x, 2.5)),
            str(torch.result_type(x[0], x.double() if not a.is_complex else x)),
        ]
    return table


def inplace_results_must_fit(torch):
    i, f = torch.ones(2, dtype=torch.int64), torch.ones(2)
    return (
        refusal(i.add_, f),
        refusal(i.mul_, 1.5),
        refusal(i.div_, 2),
        refusal(f.add_, 1j),
        f.add_(i),
        refusal(torch.ones(2, dtype=torch.bool).add_, i),
    )


def default_dtype(torch):
    seen = []
    try:
        for d in (torch.float64, torch.bfloat16):
            torch.set_default_dtype(d)
            seen += [
                torch.tensor(1.5).dtype,
                torch.ones(1).dtype,
                (torch.ones(1, dtype=torch.int64) * 1.5).dtype,
                torch.arange(2).dtype,
                torch.get_default_dtype(),
            ]
    finally:
        torch.set_default_dtype(torch.float32)
    return seen, refusal(torch.set_default_dtype, torch.int64)


def operators(torch):
    x, i = torch.tensor([3.0, -2.0]), torch.tensor([6, -4])
    return (
        1 - x,
        2 / x,
        2**x,
        x**2,
        x // 2,
        x % 2,
        7 // i,
        7 % i,
        -x,
        +x,
        abs(x),
        ~i,
        i & 3,
        3 | i,
        i ^ 1,
        i << 1,
        i >> 1,
        1 << torch.tensor([1, 2]),
        x == x,
        x != 1,
        x < 0,
        1 > x,  # noqa: SIM300
        x @ x,
        divmod(7, 2),
        x.__radd__(1),
        i / 4,
        i // 4,
        -5 // i,
        True & torch.tensor([True]),
        x == None,  # noqa: E711
        x != "a",
    )  # noqa: E711


def operators_refused(torch):
    x = torch.ones(2)
    return (
        refusal(lambda: x + "a"),
        refusal(lambda: x & 1),
        refusal(lambda: ~x),
        refusal(lambda: x + torch.ones(3)),
        refusal(lambda: x @ torch.ones(3)),
        refusal(lambda: x + None),
        refusal(lambda: x << None),
        refusal(lambda: -torch.tensor([True])),
        refusal(lambda: x < 1j),
        refusal(lambda: x + [1, 2]),
    )


def iteration(torch):
    x = torch.arange(6).view(3, 2)
    a, b, c = x
    return (
        [r.tolist() for r in x],
        a,
        [v.item() for v in a],
        3 in x,
        30 in x,
        list(reversed(x))[0],
        x.unbind(1),
        len(x),
        dict.fromkeys([1]),
        sum(x),
    )


def attributes_stay(torch):
    x = torch.ones(2)
    x.anything = [1]
    x.grad = torch.ones(2)
    return (
        x.anything,
        x.ndim,
        x.T.shape,
        torch.ones(2, 3).mT.shape,
        x.is_cuda,
        x.is_leaf,
        hasattr(x, "asnumpy"),
        x.is_sparse,
        x.requires_grad,
        x.numel(),
    )


def forms_of_to(torch):
    """The first argument tells the form, and the others have to fit it."""
    x, y = torch.ones(2), torch.zeros(1, dtype=torch.float64)
    forms = (
        ("cpu", torch.float64),
        ("cpu", torch.float64, True, True),
        (torch.float64, True, True),
        (y, True),
        (None,),
        (None, torch.float64),
        (float,),
        ("cpu", int),
        (),
    )
    wrong = (
        (torch.float64, "cpu"),
        ("cpu", True),
        ("cpu", torch.float64, True, True, True),
        (torch.float64, 1),
        (y, torch.float32),
        (torch.float64, None),
        ([1],),
        ("cpu", "cpu"),
    )
    named = ({"tensor": y}, {"device": "cpu", "dtype": torch.float64}, {"dtype": float})
    refused = (
        ((torch.float64,), {"device": "cpu"}),
        ((torch.float64,), {"dtype": torch.float64}),
        ((torch.float64,), {"copy": 1}),
        ((torch.float64,), {"non_blocking": None}),
        ((y,), {"dtype": torch.float32}),
        ((), {"other": y}),
        ((), {"foo": 1}),
    )
    return [
        [x.to(*form).dtype for form in forms],
        [x.to(**form).dtype for form in named],
        [refusal(x.to, *form) for form in wrong],
        [refusal(x.to, *args, **kwargs) for args, kwargs in refused],
    ]
