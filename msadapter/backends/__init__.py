"""torch.backends: switches of the libraries below. What a switch cannot change here it only remembers."""

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
    """From now on flags change only inside `flags(...)` blocks: accepted."""
