# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
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

