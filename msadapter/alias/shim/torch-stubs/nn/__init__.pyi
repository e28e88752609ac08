# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn import _reduction as _reduction
from torch.nn import attention as attention
from torch.nn import common_types as common_types
from torch.nn import functional as functional
from torch.nn import grad as grad
from torch.nn import init as init
from torch.nn import modules as modules
from torch.nn import parallel as parallel
from torch.nn import parameter as parameter
from torch.nn import utils as utils
from torch.nn.modules.activation import CELU as CELU
from torch.nn.modules.activation import ELU as ELU
from torch.nn.modules.activation import GELU as GELU
from torch.nn.modules.activation import GLU as GLU
from torch.nn.modules.activation import Hardshrink as Hardshrink
from torch.nn.modules.activation import Hardsigmoid as Hardsigmoid
from torch.nn.modules.activation import Hardswish as Hardswish
from torch.nn.modules.activation import Hardtanh as Hardtanh
from torch.nn.modules.activation import LeakyReLU as LeakyReLU
from torch.nn.modules.activation import LogSigmoid as LogSigmoid
from torch.nn.modules.activation import LogSoftmax as LogSoftmax
from torch.nn.modules.activation import Mish as Mish
from torch.nn.modules.activation import PReLU as PReLU
from torch.nn.modules.activation import RReLU as RReLU
from torch.nn.modules.activation import ReLU as ReLU
from torch.nn.modules.activation import ReLU6 as ReLU6
from torch.nn.modules.activation import SELU as SELU
from torch.nn.modules.activation import SiLU as SiLU
from torch.nn.modules.activation import Sigmoid as Sigmoid
from torch.nn.modules.activation import Softmax as Softmax
from torch.nn.modules.activation import Softmax2d as Softmax2d
from torch.nn.modules.activation import Softmin as Softmin
from torch.nn.modules.activation import Softplus as Softplus
from torch.nn.modules.activation import Softshrink as Softshrink
from torch.nn.modules.activation import Softsign as Softsign
from torch.nn.modules.activation import Tanh as Tanh
from torch.nn.modules.activation import Tanhshrink as Tanhshrink
from torch.nn.modules.activation import Threshold as Threshold
from torch.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from torch.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from torch.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from torch.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from torch.nn.modules.batchnorm import LazyBatchNorm1d as LazyBatchNorm1d
from torch.nn.modules.batchnorm import LazyBatchNorm2d as LazyBatchNorm2d
from torch.nn.modules.batchnorm import LazyBatchNorm3d as LazyBatchNorm3d
from torch.nn.modules.batchnorm import SyncBatchNorm as SyncBatchNorm
from torch.nn.modules.channelshuffle import ChannelShuffle as ChannelShuffle
from torch.nn.modules.container import Container as Container
from torch.nn.modules.container import ModuleDict as ModuleDict
from torch.nn.modules.container import ModuleList as ModuleList
from torch.nn.modules.container import ParameterDict as ParameterDict
from torch.nn.modules.container import ParameterList as ParameterList
from torch.nn.modules.container import Sequential as Sequential
from torch.nn.modules.conv import Conv1d as Conv1d
from torch.nn.modules.conv import Conv2d as Conv2d
from torch.nn.modules.conv import Conv3d as Conv3d
from torch.nn.modules.conv import ConvTranspose1d as ConvTranspose1d
from torch.nn.modules.conv import ConvTranspose2d as ConvTranspose2d
from torch.nn.modules.conv import ConvTranspose3d as ConvTranspose3d
from torch.nn.modules.conv import LazyConv1d as LazyConv1d
from torch.nn.modules.conv import LazyConv2d as LazyConv2d
from torch.nn.modules.conv import LazyConv3d as LazyConv3d
from torch.nn.modules.conv import LazyConvTranspose1d as LazyConvTranspose1d
from torch.nn.modules.conv import LazyConvTranspose2d as LazyConvTranspose2d
from torch.nn.modules.conv import LazyConvTranspose3d as LazyConvTranspose3d
from torch.nn.modules.distance import CosineSimilarity as CosineSimilarity
from torch.nn.modules.distance import PairwiseDistance as PairwiseDistance
from torch.nn.modules.dropout import AlphaDropout as AlphaDropout
from torch.nn.modules.dropout import Dropout as Dropout
from torch.nn.modules.dropout import Dropout1d as Dropout1d
from torch.nn.modules.dropout import Dropout2d as Dropout2d
from torch.nn.modules.dropout import Dropout3d as Dropout3d
from torch.nn.modules.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from torch.nn.modules.flatten import Flatten as Flatten
from torch.nn.modules.flatten import Unflatten as Unflatten
from torch.nn.modules.fold import Fold as Fold
from torch.nn.modules.fold import Unfold as Unfold
from torch.nn.modules.instancenorm import InstanceNorm1d as InstanceNorm1d
from torch.nn.modules.instancenorm import InstanceNorm2d as InstanceNorm2d
from torch.nn.modules.instancenorm import InstanceNorm3d as InstanceNorm3d
from torch.nn.modules.instancenorm import LazyInstanceNorm1d as LazyInstanceNorm1d
from torch.nn.modules.instancenorm import LazyInstanceNorm2d as LazyInstanceNorm2d
from torch.nn.modules.instancenorm import LazyInstanceNorm3d as LazyInstanceNorm3d
from torch.nn.modules.linear import Bilinear as Bilinear
from torch.nn.modules.linear import Identity as Identity
from torch.nn.modules.linear import LazyLinear as LazyLinear
from torch.nn.modules.linear import Linear as Linear
from torch.nn.modules.loss import BCELoss as BCELoss
from torch.nn.modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from torch.nn.modules.loss import CTCLoss as CTCLoss
from torch.nn.modules.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from torch.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from torch.nn.modules.loss import GaussianNLLLoss as GaussianNLLLoss
from torch.nn.modules.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from torch.nn.modules.loss import HuberLoss as HuberLoss
from torch.nn.modules.loss import KLDivLoss as KLDivLoss
from torch.nn.modules.loss import L1Loss as L1Loss
from torch.nn.modules.loss import MSELoss as MSELoss
from torch.nn.modules.loss import MarginRankingLoss as MarginRankingLoss
from torch.nn.modules.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from torch.nn.modules.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from torch.nn.modules.loss import MultiMarginLoss as MultiMarginLoss
from torch.nn.modules.loss import NLLLoss as NLLLoss
from torch.nn.modules.loss import NLLLoss2d as NLLLoss2d
from torch.nn.modules.loss import PoissonNLLLoss as PoissonNLLLoss
from torch.nn.modules.loss import SmoothL1Loss as SmoothL1Loss
from torch.nn.modules.loss import SoftMarginLoss as SoftMarginLoss
from torch.nn.modules.loss import TripletMarginLoss as TripletMarginLoss
from torch.nn.modules.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from torch.nn.modules.module import Module as Module
from torch.nn.modules.module import Module as _base_Module
from torch.nn.modules.normalization import CrossMapLRN2d as CrossMapLRN2d
from torch.nn.modules.normalization import GroupNorm as GroupNorm
from torch.nn.modules.normalization import LayerNorm as LayerNorm
from torch.nn.modules.normalization import LocalResponseNorm as LocalResponseNorm
from torch.nn.modules.normalization import RMSNorm as RMSNorm
from torch.nn.modules.padding import CircularPad1d as CircularPad1d
from torch.nn.modules.padding import CircularPad2d as CircularPad2d
from torch.nn.modules.padding import CircularPad3d as CircularPad3d
from torch.nn.modules.padding import ConstantPad1d as ConstantPad1d
from torch.nn.modules.padding import ConstantPad2d as ConstantPad2d
from torch.nn.modules.padding import ConstantPad3d as ConstantPad3d
from torch.nn.modules.padding import ReflectionPad1d as ReflectionPad1d
from torch.nn.modules.padding import ReflectionPad2d as ReflectionPad2d
from torch.nn.modules.padding import ReflectionPad3d as ReflectionPad3d
from torch.nn.modules.padding import ReplicationPad1d as ReplicationPad1d
from torch.nn.modules.padding import ReplicationPad2d as ReplicationPad2d
from torch.nn.modules.padding import ReplicationPad3d as ReplicationPad3d
from torch.nn.modules.padding import ZeroPad1d as ZeroPad1d
from torch.nn.modules.padding import ZeroPad2d as ZeroPad2d
from torch.nn.modules.padding import ZeroPad3d as ZeroPad3d
from torch.nn.modules.pixelshuffle import PixelShuffle as PixelShuffle
from torch.nn.modules.pixelshuffle import PixelUnshuffle as PixelUnshuffle
from torch.nn.modules.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from torch.nn.modules.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from torch.nn.modules.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from torch.nn.modules.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from torch.nn.modules.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from torch.nn.modules.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from torch.nn.modules.pooling import AvgPool1d as AvgPool1d
from torch.nn.modules.pooling import AvgPool2d as AvgPool2d
from torch.nn.modules.pooling import AvgPool3d as AvgPool3d
from torch.nn.modules.pooling import FractionalMaxPool2d as FractionalMaxPool2d
from torch.nn.modules.pooling import FractionalMaxPool3d as FractionalMaxPool3d
from torch.nn.modules.pooling import LPPool1d as LPPool1d
from torch.nn.modules.pooling import LPPool2d as LPPool2d
from torch.nn.modules.pooling import LPPool3d as LPPool3d
from torch.nn.modules.pooling import MaxPool1d as MaxPool1d
from torch.nn.modules.pooling import MaxPool2d as MaxPool2d
from torch.nn.modules.pooling import MaxPool3d as MaxPool3d
from torch.nn.modules.pooling import MaxUnpool1d as MaxUnpool1d
from torch.nn.modules.pooling import MaxUnpool2d as MaxUnpool2d
from torch.nn.modules.pooling import MaxUnpool3d as MaxUnpool3d
from torch.nn.modules.rnn import GRU as GRU
from torch.nn.modules.rnn import GRUCell as GRUCell
from torch.nn.modules.rnn import LSTM as LSTM
from torch.nn.modules.rnn import LSTMCell as LSTMCell
from torch.nn.modules.rnn import RNN as RNN
from torch.nn.modules.rnn import RNNBase as RNNBase
from torch.nn.modules.rnn import RNNCell as RNNCell
from torch.nn.modules.rnn import RNNCellBase as RNNCellBase
from torch.nn.modules.sparse import Embedding as Embedding
from torch.nn.modules.sparse import EmbeddingBag as EmbeddingBag
from torch.nn.modules.transformer import Transformer as Transformer
from torch.nn.modules.transformer import TransformerDecoder as TransformerDecoder
from torch.nn.modules.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from torch.nn.modules.transformer import TransformerEncoder as TransformerEncoder
from torch.nn.modules.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from torch.nn.modules.upsampling import Upsample as Upsample
from torch.nn.modules.upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
from torch.nn.modules.upsampling import UpsamplingNearest2d as UpsamplingNearest2d
from torch.nn.parallel import DataParallel as DataParallel
from torch.nn.parameter import Buffer as Buffer
from torch.nn.parameter import Parameter as Parameter
from torch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from torch.nn.parameter import UninitializedParameter as UninitializedParameter

class MultiheadAttention(_base_Module):
    _qkv_same_embed_dim: _Any
    add_zero_attn: _Any
    batch_first: _Any
    bias_k: _Any
    bias_v: _Any
    dropout: _Any
    embed_dim: _Any
    head_dim: _Any
    in_proj_bias: _Any
    in_proj_weight: _Any
    k_proj_weight: _Any
    kdim: _Any
    num_heads: _Any
    out_proj: _Any
    q_proj_weight: _Any
    v_proj_weight: _Any
    vdim: _Any
    def __init__(self, embed_dim, num_heads, dropout=..., bias=..., add_bias_kv=..., add_zero_attn=..., kdim=..., vdim=..., batch_first=..., device=..., dtype=...) -> None: ...
    def forward(self, query, key, value, key_padding_mask=..., need_weights=..., attn_mask=..., average_attn_weights=..., is_causal=...) -> _Any: ...
    def merge_masks(self, attn_mask, key_padding_mask, query) -> _Any: ...
def factory_kwargs(kwargs) -> _Any: ...
