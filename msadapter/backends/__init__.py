"""torch.backends: settings of libraries. Settings without a meaning here are only stored."""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized, xeon

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xeon",
]
__allow_nonbracketed_mutation_flag = True


def disable_global_flags() -> None:
    """Accepted without effect. In PyTorch, flags can then be changed only inside `flags(...)` blocks."""
