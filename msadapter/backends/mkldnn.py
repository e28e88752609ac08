"""torch.backends.mkldnn: oneDNN computes matrix products on the CPU."""

from ._flags import make_flags

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = make_flags(globals(), ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


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
