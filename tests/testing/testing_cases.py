"""torch.testing: what assert_close accepts, and the first words of what it says."""

import warnings

from tests.golden.answers import refusal


def _said(torch, *args, **options):
    return refusal(torch.testing.assert_close, *args, **options)


def accepted(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    check = torch.testing.assert_close
    check(x, x * (1 + 1e-6))
    check(x.half(), x.half() * 1.0005)
    check(x, x.double(), check_dtype=False)
    check([x, 1], [x, 1], rtol=0, atol=0)
    check(1, 1.0, check_dtype=False)
    check({"a": x}, {"a": x.clone()})
    check(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    check(torch.tensor([float("nan")]), torch.tensor([float("nan")]), rtol=0, atol=0, equal_nan=True)
    check(torch.tensor([float("inf")]), torch.tensor([float("inf")]))
    check(1 + 1e-8, 1.0)
    check(x.t(), x, check_stride=True)
    return "accepted"


def by_dtype(torch):
    """Whether a relative difference is accepted with the default tolerance of every dtype."""
    found = {}
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        x = torch.full((3,), 8.0, dtype=dtype)
        found[str(dtype)] = [
            _said(torch, x + 8 * step, x)[0] == "nothing raised"
            for step in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 2e-2)
        ]
    return found


def refused_values(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return [
        _said(torch, x, x + torch.tensor([[0.0, 0.5], [0.0, 0.0]])),
        _said(torch, x, x + 1, rtol=0, atol=0.5),
        _said(torch, torch.tensor([1, 2]), torch.tensor([1, 3])),
        _said(torch, torch.tensor([True]), torch.tensor([False])),
        _said(torch, torch.tensor(float("nan")), torch.tensor(float("nan"))),
        _said(torch, 1.0, 2.0),
        _said(torch, [1], [1.0]),
        _said(torch, [1, 2], [1, 3]),
        _said(torch, {"a": x}, {"a": x + 1}),
    ]


def refused_kinds(torch):
    x = torch.ones(2, 2)
    return [
        _said(torch, x, torch.ones(2, 3)),
        _said(torch, x, x.double()),
        _said(torch, torch.ones(2, 3).t(), torch.ones(3, 2), check_stride=True),
        _said(torch, [x], [x, x]),
        _said(torch, {"a": x}, {"b": x}),
        _said(torch, x, x, rtol=1e-3)[0],
        _said(torch, "text", "text")[0],
        _said(torch, None, x)[0],
    ]


def other_types(torch):
    class Other(torch.Tensor):
        pass

    x = torch.eye(2)
    other = x.as_subclass(Other)
    return [
        _said(torch, x, other),
        _said(torch, x, other, allow_subclasses=False),
        _said(torch, [x], [other], allow_subclasses=False),
        _said(torch, other, other, allow_subclasses=False),
        _said(torch, x, x.numpy()),
        _said(torch, x, 1.0),
    ]


def other_layouts(torch):
    x, y = torch.eye(2), torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    return [
        _said(torch, x, x.to_sparse()),
        _said(torch, x, x.to_sparse(), check_layout=False),
        _said(torch, x.to_sparse(), x.to_sparse()),
        _said(torch, x.to_sparse(), x.to_sparse() * 2),
        _said(torch, x.to_sparse(), y.to_sparse()),
        _said(torch, x.to_sparse(), x.flip(0).to_sparse()),
        _said(torch, x.to_sparse_csr(), x.to_sparse_csr()),
        _said(torch, x.to_sparse_csr(), x.flip(0).to_sparse_csr()),
        _said(torch, x.to_sparse_csr(), (x * 2).to_sparse_csr()),
    ]


def own_message(torch):
    given = _said(torch, torch.ones(1), torch.zeros(1), msg="mine")
    made = _said(torch, torch.ones(1), torch.zeros(1), msg=lambda text: "mine, then " + text[:25])
    return [given, made]


def made_tensors(torch):
    make = torch.testing.make_tensor
    x = make((4, 5), dtype=torch.float32, device="cpu", low=-2, high=3)
    i = make(6, dtype=torch.int64, device="cpu", low=3, high=9)
    b = make((50,), dtype=torch.bool, device="cpu")
    g = make((2,), dtype=torch.float64, device="cpu", requires_grad=True)
    n = make((3, 4), dtype=torch.float32, device="cpu", noncontiguous=True)
    z = make((500,), dtype=torch.float32, device="cpu", exclude_zero=True)
    return [
        list(x.shape), bool((x >= -2).all() and (x < 3).all()), bool((i >= 3).all() and (i < 9).all()),
        len(set(b.tolist())), g.requires_grad, n.is_contiguous(), bool((z != 0).all()),
    ]  # fmt: skip


_BOUNDS = [
    (None, None),
    (1, 1),
    (2, 1),
    (float("nan"), 1),
    (0, float("nan")),
    (-2.5, 3.5),
    (-1e30, 1e30),
    (1e10, 1e20),
]
_BOUNDS += [(-float("inf"), float("inf")), (3, float("inf")), (0.2, 0.8), (-5, -3), (2, 3)]


def _made(torch, dtype, low, high):
    torch.manual_seed(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = torch.testing.make_tensor((2, 3), dtype=dtype, device="cpu", low=low, high=high)
        except ValueError as error:
            return str(error)
    return made, sorted({w.category.__name__ for w in caught})


def _of_dtype(name):
    return lambda torch: [_made(torch, getattr(torch, name), low, high) for low, high in _BOUNDS]


for _name in ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
    globals()[f"tensors_of_{_name}_within_bounds"] = _of_dtype(_name)


def layouts_of_made_tensors(torch):
    make = torch.testing.make_tensor
    image = make((2, 3, 4, 5), dtype=torch.float32, device="cpu", memory_format=torch.channels_last)
    spread = make((2, 3), dtype=torch.int64, device="cpu", noncontiguous=True)
    ones = make((50,), dtype=torch.bool, device="cpu", exclude_zero=True)
    return (
        image.stride(),
        spread.stride(),
        make((1,), dtype=torch.int64, device="cpu", noncontiguous=True).stride(),
        ones.all(),
    )
