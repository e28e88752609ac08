# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx.passes.utils import common as common
from torch.fx.passes.utils import matcher_utils as matcher_utils

