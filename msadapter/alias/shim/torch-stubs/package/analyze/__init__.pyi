# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.package.analyze.is_from_package import is_from_package as is_from_package

