"""Reading and assigning by index in every form: run on both sides and compared."""

from __future__ import annotations

from tests.golden.answers import refusal

READINGS = """0; -1; 1, 2; 1:; ::2; :, 1; ..., 0; 0, ...; ..., 1, :; None; None, 0; :, None; 1, None, 2; [0, 1];
[0, 1], [1, 2]; [[0, 1], [1, 0]]; :, [0, 2]; [0], :, [1]; :, :, [0, 3]; [True, False]; True; False;
L([1, 0]); L([[0, 1]]), L([[1], [2]]); L(1); x > 5; M([True, False]); M([True, False]), 1;
0, L([0, 2]), 1; :, L([0, 2]), 1:3; L([0, 1]), ..., L([0, 1]); None, L([1]); :, -1:; 1:1; 5:;
-3:-1; :, :, ::3; L([], ); (); ...; 0, 1, 2; slice(None); slice(0, 1), slice(None), 1; B([1, 0]);
:, M([True, False, True]), L([0, 1]); x[:, 0, 0] > 3, 1:2; L([-1, -2]); 0, :, L([[0, 1], [2, 3]]);
L(0), L(1), L(2); L([0, 1]), None, L([1, 1]); T(1); N(1); N([0, 1]), ...; torch.tensor(True);
[[True, False], [True, True]][0]; range(2); (0, 1)"""
ERRORS = """2; 0, 3; 0, 0, 0, 0; [2]; L([5]); 1.5; "a"; M([True]); x > 5, 0, 0; ::-1; ..., ...,;
L([0]), L([0, 1]), L([0, 1, 1]); torch.tensor([0.5]); ::0; {}"""
ASSIGNMENTS = """[0] = 5; [-1, 1] = 7; [:, 1] = x[:, 0] * 2; [..., 0] = -1; [[0, 1], [1, 2]] = 9; [x > 5] = 0;
[x > 5] = x[x > 5] * 2; [L([0, 0])] = 3; [:, L([0, 2])] = torch.ones(2, 2, 4); [0] = x[1];
[0, 0] = torch.arange(4); [None] = 4; [True] = 8; [M([True, False])] = -2; [1:1] = 5;
[:] = torch.ones(4); [...] = 2.9; [0, L([0, 1]), 1:3] = torch.zeros(2, 2); [:, :, ::2] = 1;
[L(1)] = torch.ones(3, 1); [0, 1, 2] = torch.tensor([3.0]); [L([[0, 1]]), 0] = 6;
[:, [True, False, True], [0, 1]] = 5; [x[:, 0, 0] > 3] = 1; [()] = 3; [0] = torch.ones(1, 1, 3, 4);
[0] = True"""
ASSIGNMENT_ERRORS = """[0] = torch.ones(5); [5] = 1; [0] = "a"; [x > 5] = torch.ones(3); [L([9])] = 1; [0] = 1j;
[0] = None; [:, L([0, 1])] = torch.ones(3, 3); [:, 0] = [1, 2, 3, 4]"""


def _names(torch):
    import numpy

    long = torch.tensor
    return {
        "torch": torch,
        "x": torch.arange(24.0).view(2, 3, 4),
        "L": lambda v: long(v, dtype=torch.int64),
        "M": lambda v: long(v, dtype=torch.bool),
        "B": lambda v: long(v, dtype=torch.uint8),
        "T": lambda v: long(v),
        "N": numpy.array,
    }


def _parts(text):
    return [part.strip() for part in text.split(";")]


def readings(torch):
    return {text: eval(f"x[{text}]", _names(torch)) for text in _parts(READINGS)}


def reading_errors(torch):
    return {text: refusal(eval, f"x[{text}]", _names(torch)) for text in _parts(ERRORS)}


def readings_are_views_or_copies(torch):
    space, shared = _names(torch), {}
    for text in _parts(READINGS):
        y = eval(f"x[{text}]", space)
        shared[text] = [
            y.untyped_storage().data_ptr() == space["x"].untyped_storage().data_ptr(),
            y._is_view(),
        ]
    return shared


def assignments(torch):
    changed = {}
    for text in _parts(ASSIGNMENTS):
        space = _names(torch)
        exec(f"x{text}", space)
        changed[text] = [space["x"], space["x"]._version]
    return changed


def assignment_errors(torch):
    return {text: refusal(exec, f"x{text}", _names(torch)) for text in _parts(ASSIGNMENT_ERRORS)}


def gradients_of_readings(torch):
    found = {}
    for text in _parts(READINGS):
        space = _names(torch)
        x = space["x"].requires_grad_()
        y = eval(f"x[{text}]", space)
        (y * torch.arange(1.0, y.numel() + 1).view(y.shape)).sum().backward()
        found[text] = x.grad
    return found


def gradients_of_assignments(torch):
    found = {}
    # One leaf for the tensor that is changed, one for the values.
    for text in (
        "[0] = v",
        "[:, 1] = v[0]",
        "[x > 5] = v.sum()",
        "[L([0, 1]), L([1, 2])] = v[:2]",
        "[..., 0] = v[:, 0]",
        "[0, L([0, 2])] = v[1:]",
        "[1:, 1] += v[2]",
    ):
        space = _names(torch)
        leaf, v = (
            space["x"].double().requires_grad_(),
            torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4).requires_grad_(),
        )
        y = leaf * 1
        exec(f"y{text}", {**space, "y": y, "v": v})
        (y * y).sum().backward()
        found[text] = [leaf.grad, v.grad]
    return found


def zero_dim(torch):
    x = torch.tensor(3.0)
    x[()] = 4
    x[...] += 1
    return (
        x,
        x[None],
        x[...],
        x[()],
        x[True],
        x[torch.tensor(False)],
        refusal(x.__getitem__, 0),
        refusal(x.__getitem__, slice(None)),
        refusal(x.__setitem__, 0, 1),
    )


def empties(torch):
    x = torch.zeros(0, 3)
    x[:] = 5
    return (
        x[:, 1],
        x[0:0],
        refusal(x.__getitem__, 0),
        x[torch.zeros(0, dtype=torch.bool)],
        x[torch.zeros(0, dtype=torch.int64)],
        torch.ones(3)[[]],
    )


def assignment_casts(torch):
    i = torch.arange(4)
    i[0] = 2.9
    i[1] = torch.tensor(7.5)
    i[2:] = torch.tensor([1.5, -1.5])
    b = torch.zeros(3, dtype=torch.bool)
    b[1] = 5
    h = torch.zeros(2).half()
    h[0] = 1e-3
    return i, b, h


def overlapping_assignment(torch):
    x, y = torch.arange(6.0), torch.arange(4.0)
    y.view(2, 2)[:] = y.view(2, 2)[:]
    return refusal(x.__setitem__, slice(1, None), x[:-1]), refusal(y.expand(2, 4).add_, 1), y
