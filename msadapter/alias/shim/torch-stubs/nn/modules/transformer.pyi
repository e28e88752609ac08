# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class Transformer(_base_Module):
    batch_first: _Any
    d_model: _Any
    decoder: _Any
    encoder: _Any
    nhead: _Any
    def __init__(self, d_model=..., nhead=..., num_encoder_layers=..., num_decoder_layers=..., dim_feedforward=..., dropout=..., activation=..., custom_encoder=..., custom_decoder=..., layer_norm_eps=..., batch_first=..., norm_first=..., bias=..., device=..., dtype=...) -> None: ...
    def forward(self, src, tgt, src_mask=..., tgt_mask=..., memory_mask=..., src_key_padding_mask=..., tgt_key_padding_mask=..., memory_key_padding_mask=..., src_is_causal=..., tgt_is_causal=..., memory_is_causal=...) -> _Any: ...
    @staticmethod
    def generate_square_subsequent_mask(sz, device=..., dtype=...) -> _Any: ...
class TransformerDecoder(_base_Module):
    layers: _Any
    norm: _Any
    num_layers: _Any
    def __init__(self, decoder_layer, num_layers, norm=...) -> None: ...
    def forward(self, tgt, memory, tgt_mask=..., memory_mask=..., tgt_key_padding_mask=..., memory_key_padding_mask=..., tgt_is_causal=..., memory_is_causal=...) -> _Any: ...
class TransformerDecoderLayer(_base_Module):
    activation: _Any
    dropout: _Any
    linear1: _Any
    linear2: _Any
    norm_first: _Any
    def __init__(self, d_model, nhead, dim_feedforward=..., dropout=..., activation=..., layer_norm_eps=..., batch_first=..., norm_first=..., bias=..., device=..., dtype=...) -> None: ...
    def forward(self, tgt, memory, tgt_mask=..., memory_mask=..., tgt_key_padding_mask=..., memory_key_padding_mask=..., tgt_is_causal=..., memory_is_causal=...) -> _Any: ...
class TransformerEncoder(_base_Module):
    enable_nested_tensor: _Any
    layers: _Any
    mask_check: _Any
    norm: _Any
    num_layers: _Any
    use_nested_tensor: _Any
    def __init__(self, encoder_layer, num_layers, norm=..., enable_nested_tensor=..., mask_check=...) -> None: ...
    def forward(self, src, mask=..., src_key_padding_mask=..., is_causal=...) -> _Any: ...
class TransformerEncoderLayer(_base_Module):
    activation: _Any
    dropout: _Any
    linear1: _Any
    linear2: _Any
    norm_first: _Any
    def __init__(self, d_model, nhead, dim_feedforward=..., dropout=..., activation=..., layer_norm_eps=..., batch_first=..., norm_first=..., bias=..., device=..., dtype=...) -> None: ...
    def forward(self, src, src_mask=..., src_key_padding_mask=..., is_causal=...) -> _Any: ...
