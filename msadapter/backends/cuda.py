"""torch.backends.cuda: settings of matrix products and of attention."""

import warnings
from contextlib import contextmanager

from .._host import accelerator as _accelerator
from . import _fp32

_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": False}


class _PlanCache:
    """The cache of FFT plans, which is always empty."""

    size = 0
    max_size = 0

    def clear(self) -> None:
        """Does nothing, because the cache is empty."""

    def __getitem__(self, device):
        return self


# The settings of matrix products are stored, but products never use a reduced precision here.
matmul = _fp32.setting(
    "cuda",
    "matmul",
    allow_tf32=_fp32.TF32_OF_MATMUL,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
)
cufft_plan_cache = _PlanCache()


def is_built() -> bool:
    """Return whether the accelerator is called cuda in this run."""
    return _accelerator.is_available()


def preferred_linalg_library(backend=None) -> str:
    """Return the linear algebra library. There is only one."""
    return "default"


def preferred_blas_library(backend=None) -> str:
    """Return the library of matrix products. There is only one."""
    return "default"


def _switch(name):
    def enabled() -> bool:
        return _sdp[name]

    def enable(enabled: bool) -> None:
        _sdp[name] = bool(enabled)

    enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    enabled.__doc__ = f"Whether the {name} attention may be chosen (the math path always computes here)."
    enable.__doc__ = f"Allow or forbid the {name} attention."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


def is_flash_attention_available() -> bool:
    """Return False, because attention uses the mathematical formula."""
    return False


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Choose attention implementations inside a block. The choice is stored."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
        "`torch.nn.attention.sdpa_kernel()` for the new context manager.",
        FutureWarning,
        stacklevel=3,
    )
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(before)
