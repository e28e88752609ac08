"""torch.backends.cudnn: there is no cuDNN. Its settings are only stored."""

from ._flags import make_flags

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
flags = make_flags(globals(), ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"))


def is_available() -> bool:
    """Return False, because there is no cuDNN."""
    return False


def version():
    """Return None, because there is no cuDNN."""
    return


def is_acceptable(tensor) -> bool:
    """Return False, because there is no cuDNN."""
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set the given values and return the former ones."""
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
    """Settings of recurrent layers."""

    fp32_precision = "none"


class conv:
    """Settings of convolutions."""

    fp32_precision = "none"
