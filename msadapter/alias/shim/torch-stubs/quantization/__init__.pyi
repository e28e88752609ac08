# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.ao.quantization.quantize import quantize_dynamic as quantize_dynamic
from torch.ao.quantization.stubs import DeQuantStub as DeQuantStub
from torch.ao.quantization.stubs import QuantStub as QuantStub
from torch.quantization import fake_quantize as fake_quantize
from torch.quantization import observer as observer
from torch.quantization import qconfig as qconfig
from torch.quantization import quantize as quantize
from torch.quantization import stubs as stubs

