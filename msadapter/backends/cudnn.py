"""torch.backends.cudnn: its switches are remembered; there is no cuDNN."""

from ._flags import make_flags

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
flags = make_flags(globals(), ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"))


def is_available() -> bool:
    """False: there is no cuDNN."""
    return False


def version():
    """None: there is no cuDNN."""
    return


def is_acceptable(tensor) -> bool:
    """False: no tensor goes through cuDNN."""
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set the switches that are given; the values before."""
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }
    before = tuple(globals()[name] for name in given)
    globals().update({name: value for name, value in given.items() if value is not None})
    return before


class rnn:
    """Switches of recurrent layers."""

    fp32_precision = "none"


class conv:
    """Switches of convolutions."""

    fp32_precision = "none"
