# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.ao.quantization import fake_quantize as fake_quantize
from torch.ao.quantization import observer as observer
from torch.ao.quantization import qconfig as qconfig
from torch.ao.quantization import quantize as quantize
from torch.ao.quantization import stubs as stubs
from torch.ao.quantization.fake_quantize import FakeQuantize as FakeQuantize
from torch.ao.quantization.fake_quantize import disable_fake_quant as disable_fake_quant
from torch.ao.quantization.fake_quantize import disable_observer as disable_observer
from torch.ao.quantization.fake_quantize import enable_fake_quant as enable_fake_quant
from torch.ao.quantization.fake_quantize import enable_observer as enable_observer
from torch.ao.quantization.observer import HistogramObserver as HistogramObserver
from torch.ao.quantization.observer import MinMaxObserver as MinMaxObserver
from torch.ao.quantization.observer import MovingAverageMinMaxObserver as MovingAverageMinMaxObserver
from torch.ao.quantization.observer import MovingAveragePerChannelMinMaxObserver as MovingAveragePerChannelMinMaxObserver
from torch.ao.quantization.observer import NoopObserver as NoopObserver
from torch.ao.quantization.observer import ObserverBase as ObserverBase
from torch.ao.quantization.observer import PerChannelMinMaxObserver as PerChannelMinMaxObserver
from torch.ao.quantization.observer import default_histogram_observer as default_histogram_observer
from torch.ao.quantization.observer import default_observer as default_observer
from torch.ao.quantization.observer import default_per_channel_weight_observer as default_per_channel_weight_observer
from torch.ao.quantization.observer import default_weight_observer as default_weight_observer
from torch.ao.quantization.qconfig import QConfig as QConfig
from torch.ao.quantization.qconfig import get_default_qat_qconfig as get_default_qat_qconfig
from torch.ao.quantization.qconfig import get_default_qconfig as get_default_qconfig
from torch.ao.quantization.quantize import quantize_dynamic as quantize_dynamic
from torch.ao.quantization.stubs import DeQuantStub as DeQuantStub
from torch.ao.quantization.stubs import QuantStub as QuantStub

default_fake_quant: _Any
default_per_channel_qconfig: _Any
default_per_channel_weight_fake_quant: _Any
default_qat_qconfig: _Any
default_qconfig: _Any
default_weight_fake_quant: _Any
