# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class Embedding(_base_Module):
    embedding_dim: _Any
    max_norm: _Any
    norm_type: _Any
    num_embeddings: _Any
    padding_idx: _Any
    scale_grad_by_freq: _Any
    sparse: _Any
    weight: _Parameter
    def __init__(self, num_embeddings, embedding_dim, padding_idx=..., max_norm=..., norm_type=..., scale_grad_by_freq=..., sparse=..., _weight=..., _freeze=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    @classmethod
    def from_pretrained(cls, embeddings, freeze=..., padding_idx=..., max_norm=..., norm_type=..., scale_grad_by_freq=..., sparse=...) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class EmbeddingBag(_base_Module):
    embedding_dim: _Any
    include_last_offset: _Any
    max_norm: _Any
    mode: _Any
    norm_type: _Any
    num_embeddings: _Any
    padding_idx: _Any
    scale_grad_by_freq: _Any
    sparse: _Any
    weight: _Parameter
    def __init__(self, num_embeddings, embedding_dim, max_norm=..., norm_type=..., scale_grad_by_freq=..., mode=..., sparse=..., _weight=..., include_last_offset=..., padding_idx=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, offsets=..., per_sample_weights=...) -> _Any: ...
    @classmethod
    def from_pretrained(cls, embeddings, freeze=..., max_norm=..., norm_type=..., scale_grad_by_freq=..., mode=..., sparse=..., include_last_offset=..., padding_idx=...) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
