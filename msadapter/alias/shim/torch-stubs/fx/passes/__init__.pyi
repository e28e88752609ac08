# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx.passes import infra as infra
from torch.fx.passes import operator_support as operator_support
from torch.fx.passes import shape_prop as shape_prop
from torch.fx.passes import tools_common as tools_common
from torch.fx.passes import utils as utils

