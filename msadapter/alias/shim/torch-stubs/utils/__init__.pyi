# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils import _contextlib as _contextlib
from torch.utils import _foreach_utils as _foreach_utils
from torch.utils import _mode_utils as _mode_utils
from torch.utils import _python_dispatch as _python_dispatch
from torch.utils import _pytree as _pytree
from torch.utils import backcompat as backcompat
from torch.utils import benchmark as benchmark
from torch.utils import checkpoint as checkpoint
from torch.utils import collect_env as collect_env
from torch.utils import cpp_extension as cpp_extension
from torch.utils import data as data
from torch.utils import deterministic as deterministic
from torch.utils import dlpack as dlpack
from torch.utils import flop_counter as flop_counter
from torch.utils import hooks as hooks
from torch.utils import model_zoo as model_zoo
from torch.utils import tensorboard as tensorboard
from torch.utils import weak as weak

def set_module(obj, mod) -> None: ...
def swap_tensors(t1, t2) -> None: ...
