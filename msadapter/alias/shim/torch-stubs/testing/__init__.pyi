# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.testing import _comparison as _comparison
from torch.testing import _creation as _creation
from torch.testing import _internal as _internal

def assert_allclose(actual, expected, rtol=..., atol=..., equal_nan=..., msg=...) -> None: ...
def assert_close(actual, expected, *, allow_subclasses=..., rtol=..., atol=..., equal_nan=..., check_device=..., check_dtype=..., check_layout=..., check_stride=..., msg=...) -> None: ...
def make_tensor(*shape, dtype, device, low=..., high=..., requires_grad=..., noncontiguous=..., exclude_zero=..., memory_format=...) -> _Any: ...
