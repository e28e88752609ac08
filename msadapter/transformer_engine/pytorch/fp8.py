"""8-bit training, which is always off. Enabling it raises NotImplementedError."""

from contextlib import contextmanager

from ..._errors import unsupported


def no_eight_bits() -> NotImplementedError:
    """The error for all functions that need 8-bit floats."""
    return unsupported("transformer_engine", "eight-bit floats are not supported")


def check_fp8_support() -> tuple:
    """Returns (whether the device supports 8-bit products, the reason if not)."""
    return False, "eight-bit floats are not supported"


@contextmanager
def fp8_autocast(enabled=True, calibrating=False, fp8_recipe=None, fp8_group=None, _graph=False):
    """A block that computes in 8 bits. Only `enabled=False` is supported."""
    if enabled or calibrating:
        raise no_eight_bits()
    yield


@contextmanager
def fp8_model_init(enabled=True, *args, **kwargs):
    """A block that creates parameters in 8 bits. Only `enabled=False` is supported."""
    if enabled:
        raise no_eight_bits()
    yield


class FP8GlobalStateManager:
    """The state of 8-bit training."""

    @classmethod
    def is_fp8_enabled(cls) -> bool:
        """Whether modules compute in 8 bits."""
        return False

    is_fp8_calibration = with_fp8_parameters = is_fp8_enabled

    @classmethod
    def reset(cls) -> None:
        """Does nothing, because there is no state."""
