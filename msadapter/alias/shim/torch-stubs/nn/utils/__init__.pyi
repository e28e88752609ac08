# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.utils import clip_grad as clip_grad
from torch.nn.utils import convert_parameters as convert_parameters
from torch.nn.utils import fusion as fusion
from torch.nn.utils import init as init
from torch.nn.utils import memory_format as memory_format
from torch.nn.utils import parametrizations as parametrizations
from torch.nn.utils import parametrize as parametrize
from torch.nn.utils import prune as prune
from torch.nn.utils import rnn as rnn
from torch.nn.utils import stateless as stateless
from torch.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from torch.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from torch.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from torch.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from torch.nn.utils.clip_grad import get_total_norm as get_total_norm
from torch.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from torch.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from torch.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from torch.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from torch.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from torch.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from torch.nn.utils.init import skip_init as skip_init
from torch.nn.utils.memory_format import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
from torch.nn.utils.memory_format import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
from torch.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from torch.nn.utils.spectral_norm import spectral_norm as spectral_norm
from torch.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from torch.nn.utils.weight_norm import weight_norm as weight_norm

