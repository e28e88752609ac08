"""The names of torch._tensor_str that libraries use."""

import msadapter as torch
from msadapter.tensor import _printing


def test_the_values_are_those_of_the_text():
    values = torch.arange(12.0).reshape(3, 4) / 7
    assert f"tensor({_printing._tensor_str(values, indent=7)})" == repr(values)
    assert _printing._tensor_str(torch.empty(0, 2), indent=0) == "[]"


def test_options_hold_inside_a_block():
    value, before = torch.tensor([1 / 3]), repr(torch.tensor([1 / 3]))
    with _printing.printoptions(precision=2):
        assert _printing.PRINT_OPTS.precision == 2 and repr(value) == "tensor([0.33])"
    assert repr(value) == before
