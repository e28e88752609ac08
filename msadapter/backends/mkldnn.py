"""torch.backends.mkldnn: oneDNN computes the matrix products on the host."""

from ._flags import make_flags

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = make_flags(globals(), ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


def is_available() -> bool:
    """True: MindSpore ships oneDNN."""
    return True


class verbose:
    """Context manager: oneDNN's own log. Its level is fixed when the library is loaded (ONEDNN_VERBOSE)."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
