"""torch.backends.cudnn: there is no cuDNN. Its settings are only stored."""

import sys

from . import _fp32, _frozen

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
depthwise_kernel = "auto"
conv = _fp32.setting("cuda", "conv")
rnn = _fp32.setting("cuda", "rnn")
_fp32.settings_of(
    sys.modules[__name__],
    "cuda",
    *("enabled", "benchmark", "deterministic", "depthwise_kernel"),
    allow_tf32=_fp32.TF32_OF_CUDNN,
)


def is_available() -> bool:
    """Return False, because there is no cuDNN."""
    return False


def version():
    """Return None, because there is no cuDNN."""
    return


def is_acceptable(tensor) -> bool:
    """Return False, because there is no cuDNN."""
    return False


def set_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision="none",
    _depthwise_kernel=None,
):
    """Set the given values and return the former ones."""
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
        "depthwise_kernel": _depthwise_kernel,
    }
    return _frozen.exchange(sys.modules[__name__], given)


def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel="auto",
):
    """Set all settings inside a block."""
    return _frozen.restored(
        set_flags,
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        allow_tf32,
        fp32_precision,
        depthwise_kernel,
    )
