# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.ao.quantization import default_fake_quant as default_fake_quant
from torch.ao.quantization import default_per_channel_weight_fake_quant as default_per_channel_weight_fake_quant
from torch.ao.quantization import default_weight_fake_quant as default_weight_fake_quant
from torch.ao.quantization.fake_quantize import FakeQuantize as FakeQuantize
from torch.ao.quantization.fake_quantize import disable_fake_quant as disable_fake_quant
from torch.ao.quantization.fake_quantize import disable_observer as disable_observer
from torch.ao.quantization.fake_quantize import enable_fake_quant as enable_fake_quant
from torch.ao.quantization.fake_quantize import enable_observer as enable_observer

