"""torch.cuda.tunable: the choice among matrix products of CUDA's libraries by measuring. There is nothing to choose from here.

The choice is off. Its settings can be made and read, as they can while it is off in PyTorch. Whatever would choose, measure or
record raises NotImplementedError.
"""

from dataclasses import dataclass

from .._errors import unsupported

__all__ = [
    "enable", "get_filename", "get_max_tuning_duration", "get_max_tuning_iterations", "get_results", "get_rotating_buffer_size",
    "get_validators", "is_enabled", "mgpu_tune_gemm_in_file", "read_file", "record_untuned_enable", "record_untuned_is_enabled",
    "set_filename", "set_max_tuning_duration", "set_max_tuning_iterations", "set_numerical_check_tolerances",
    "set_rotating_buffer_size", "tune_gemm_in_file", "tuning_enable", "tuning_is_enabled",
]  # fmt: skip


@dataclass
class _Settings:
    """What PyTorch documents as the defaults."""

    filename: str = "tunableop_results.csv"
    duration: int = 30  # milliseconds
    iterations: int = 100
    rotating_buffer: int = 0  # kilobytes


_settings = _Settings()


_WHY = "there is one matrix product"


def is_enabled() -> bool:
    """Return False."""
    return False


def tuning_is_enabled() -> bool:
    """Return False."""
    return False


def enable(val: bool = True) -> None:
    """Turn the choice off, which it is. NotImplementedError if it is to be turned on."""
    if val:
        raise unsupported("torch.cuda.tunable.enable", _WHY)


def tuning_enable(val: bool = True) -> None:
    """Turn measuring off, which it is. NotImplementedError if it is to be turned on."""
    if val:
        raise unsupported("torch.cuda.tunable.tuning_enable", _WHY)


def record_untuned_is_enabled() -> bool:
    """Return False."""
    return False


def record_untuned_enable(val: bool = True) -> None:
    """Turn recording off, which it is. NotImplementedError if it is to be turned on."""
    if val:
        raise unsupported("torch.cuda.tunable.record_untuned_enable", _WHY)


def set_max_tuning_duration(duration: int) -> None:
    """Set for how many milliseconds one product would be measured."""
    _settings.duration = int(duration)


def get_max_tuning_duration() -> int:
    """Return for how many milliseconds one product would be measured."""
    return _settings.duration


def set_max_tuning_iterations(iterations: int) -> None:
    """Set how often one product would be measured."""
    _settings.iterations = int(iterations)


def get_max_tuning_iterations() -> int:
    """Return how often one product would be measured."""
    return _settings.iterations


def set_filename(filename: str, insert_device_ordinal: bool = False) -> None:
    """Set the file of results. With ``insert_device_ordinal`` the number of the device, 0, stands before its suffix."""
    stem, dot, suffix = filename.rpartition(".")
    ordinal = f"{stem}0{dot}{suffix}" if dot else f"{filename}0"
    _settings.filename = ordinal if insert_device_ordinal else filename


def get_filename() -> str:
    """Return the file of results, which nothing writes."""
    return _settings.filename


def set_rotating_buffer_size(buffer_size: int) -> None:
    """Set the size in kilobytes of the buffer that would keep operands out of the cache."""
    _settings.rotating_buffer = int(buffer_size)


def get_rotating_buffer_size() -> int:
    """Return the size in kilobytes of the buffer that would keep operands out of the cache."""
    return _settings.rotating_buffer


def get_results() -> tuple:
    """Return no results, because nothing was measured."""
    return ()


def get_validators() -> tuple:
    """Raise NotImplementedError: the versions of CUDA's libraries are not there."""
    raise unsupported("torch.cuda.tunable.get_validators", _WHY)


def read_file(filename: str | None = None) -> bool:
    """Raise NotImplementedError: results of another machine's libraries choose nothing here."""
    raise unsupported("torch.cuda.tunable.read_file", _WHY)


def set_numerical_check_tolerances(enable: bool, atol: float = 1e-05, rtol: float = 1e-05) -> None:
    """Turn the check of results off, which it is. NotImplementedError if it is to be turned on."""
    if enable:
        raise unsupported("torch.cuda.tunable.set_numerical_check_tolerances", _WHY)


def tune_gemm_in_file(filename: str) -> None:
    """Raise NotImplementedError."""
    raise unsupported("torch.cuda.tunable.tune_gemm_in_file", _WHY)


def mgpu_tune_gemm_in_file(filename_pattern: str, num_gpus: int) -> None:
    """Raise NotImplementedError."""
    raise unsupported("torch.cuda.tunable.mgpu_tune_gemm_in_file", _WHY)
