# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx.passes.infra import pass_base as pass_base
from torch.fx.passes.infra import pass_manager as pass_manager

