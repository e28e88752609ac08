# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch import is_grad_enabled as is_grad_enabled
from torch import is_inference_mode_enabled as is_inference_mode_enabled
from torch._tensor import Tensor as Tensor
from torch.autograd import anomaly_mode as anomaly_mode
from torch.autograd import forward_ad as forward_ad
from torch.autograd import function as function
from torch.autograd import functional as functional
from torch.autograd import grad_mode as grad_mode
from torch.autograd import graph as graph
from torch.autograd import profiler as profiler
from torch.autograd import profiler_util as profiler_util
from torch.autograd import variable as variable
from torch.autograd.function import Function as Function
from torch.autograd.function import FunctionCtx as FunctionCtx
from torch.autograd.grad_mode import enable_grad as enable_grad
from torch.autograd.grad_mode import inference_mode as inference_mode
from torch.autograd.grad_mode import is_multithreading_enabled as is_multithreading_enabled
from torch.autograd.grad_mode import no_grad as no_grad
from torch.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from torch.autograd.grad_mode import set_multithreading_enabled as set_multithreading_enabled
from torch.autograd.gradcheck import gradcheck as gradcheck
from torch.autograd.gradcheck import gradgradcheck as gradgradcheck
from torch.autograd.variable import Variable as Variable

def backward(tensors, grad_tensors=..., retain_graph=..., create_graph=..., grad_variables=..., inputs=...) -> None: ...
def grad(outputs, inputs, grad_outputs=..., retain_graph=..., create_graph=..., only_inputs=..., allow_unused=..., is_grads_batched=..., materialize_grads=...) -> _Any: ...
def load() -> _Any: ...
