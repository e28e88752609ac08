"""Eight-bit training is off; switching it on is an error."""

from contextlib import contextmanager


def unsupported() -> NotImplementedError:
    """The error of everything that needs eight-bit floats."""
    return NotImplementedError("transformer_engine: eight-bit floats are not supported (docs/coverage.md)")


def check_fp8_support() -> tuple:
    """(whether the device has eight-bit products, why not)."""
    return False, "eight-bit floats are not supported"


@contextmanager
def fp8_autocast(enabled=True, calibrating=False, fp8_recipe=None, fp8_group=None, _graph=False):
    """A block that computes in eight bits; only `enabled=False` is supported."""
    if enabled or calibrating:
        raise unsupported()
    yield


@contextmanager
def fp8_model_init(enabled=True, *args, **kwargs):
    """A block whose parameters are kept in eight bits; only `enabled=False` is supported."""
    if enabled:
        raise unsupported()
    yield


class FP8GlobalStateManager:
    """Questions about the state of eight-bit training."""

    @classmethod
    def is_fp8_enabled(cls) -> bool:
        """Whether modules compute in eight bits."""
        return False

    is_fp8_calibration = with_fp8_parameters = is_fp8_enabled

    @classmethod
    def reset(cls) -> None:
        """Forget everything: nothing is kept."""
