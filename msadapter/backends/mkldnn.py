"""torch.backends.mkldnn: oneDNN computes matrix products on the CPU."""

import sys
import warnings

from . import _fp32, _frozen


def _set_allow_tf32(settings, value) -> None:
    warnings.warn(
        "TF32 acceleration on top of oneDNN is available for Intel GPUs. "
        "The current Torch version does not have Intel GPU Support.",
        stacklevel=3,
    )


enabled = True
deterministic = False
matmul = _fp32.setting("mkldnn", "matmul")
conv = _fp32.setting("mkldnn", "conv")
rnn = _fp32.setting("mkldnn", "rnn")
# As in PyTorch: allow_tf32 is None without an Intel GPU, and fp32_precision writes to the setting of all backends.
_fp32.settings_of(
    sys.modules[__name__],
    "mkldnn",
    *("enabled", "deterministic"),
    written="generic",
    allow_tf32=property(lambda settings: None, _set_allow_tf32),
)


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"):
    """Set the flags that are given, and return the former values."""
    given = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    precision = _fp32.read("mkldnn", "all")
    if _fp32_precision is not None:
        _fp32.write("mkldnn", "all", _fp32_precision)
    return (*_frozen.exchange(sys.modules[__name__], given), precision)


def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Set all settings inside a block."""
    return _frozen.restored(set_flags, enabled, deterministic, allow_tf32, fp32_precision)


def is_available() -> bool:
    """Return True, because MindSpore contains oneDNN."""
    return True


class verbose:
    """A context manager for oneDNN's log. It has no effect: ONEDNN_VERBOSE sets the level at start."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
