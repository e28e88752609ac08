# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim import _adafactor as _adafactor
from torch.optim import _muon as _muon
from torch.optim import adadelta as adadelta
from torch.optim import adagrad as adagrad
from torch.optim import adam as adam
from torch.optim import adamax as adamax
from torch.optim import adamw as adamw
from torch.optim import asgd as asgd
from torch.optim import lbfgs as lbfgs
from torch.optim import lr_scheduler as lr_scheduler
from torch.optim import nadam as nadam
from torch.optim import optimizer as optimizer
from torch.optim import radam as radam
from torch.optim import rmsprop as rmsprop
from torch.optim import rprop as rprop
from torch.optim import sgd as sgd
from torch.optim import sparse_adam as sparse_adam
from torch.optim import swa_utils as swa_utils
from torch.optim.adadelta import Adadelta as Adadelta
from torch.optim.adagrad import Adagrad as Adagrad
from torch.optim.adam import Adam as Adam
from torch.optim.adamax import Adamax as Adamax
from torch.optim.adamw import AdamW as AdamW
from torch.optim.asgd import ASGD as ASGD
from torch.optim.lbfgs import LBFGS as LBFGS
from torch.optim.nadam import NAdam as NAdam
from torch.optim.optimizer import Optimizer as Optimizer
from torch.optim.optimizer import Optimizer as _base_Optimizer
from torch.optim.radam import RAdam as RAdam
from torch.optim.rmsprop import RMSprop as RMSprop
from torch.optim.rprop import Rprop as Rprop
from torch.optim.sgd import SGD as SGD
from torch.optim.sparse_adam import SparseAdam as SparseAdam

class Adafactor(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., beta2_decay=..., eps=..., d=..., weight_decay=..., *, foreach=..., maximize=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
class Muon(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., weight_decay=..., momentum=..., nesterov=..., ns_coefficients=..., eps=..., ns_steps=..., adjust_lr_fn=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
