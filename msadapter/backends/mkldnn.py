"""torch.backends.mkldnn: oneDNN computes matrix products on the CPU."""

from ._flags import make_flags

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = make_flags(globals(), ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"):
    """Set the flags that are given, and return the former values."""
    global enabled, deterministic, allow_tf32, fp32_precision
    before = (enabled, deterministic, allow_tf32, fp32_precision)
    enabled = enabled if _enabled is None else _enabled
    deterministic = deterministic if _deterministic is None else _deterministic
    allow_tf32 = allow_tf32 if _allow_tf32 is None else _allow_tf32
    fp32_precision = fp32_precision if _fp32_precision is None else _fp32_precision
    return before


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
