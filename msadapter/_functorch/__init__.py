"""torch._functorch: the modules in which PyTorch has the functions of torch.func."""

from . import apis, batch_norm_replacement, deprecated, eager_transforms, functional_call, make_functional

__all__ = [
    "apis",
    "batch_norm_replacement",
    "deprecated",
    "eager_transforms",
    "functional_call",
    "make_functional",
]
