"""The contents of modules for devices that MindSpore does not have: torch.mps, torch.xpu and torch.mtia."""

from __future__ import annotations

import functools
from collections.abc import Iterable

_ANSWERS = {  # what the functions of such a module return without a device
    "is_available": False,
    "is_initialized": False,
    "_is_in_bad_fork": False,
    "is_current_stream_capturing": False,
    "is_bf16_supported": False,
    "is_tf32_supported": False,
    "device_count": 0,
    "empty_cache": None,
    "manual_seed": None,
    "manual_seed_all": None,
    "seed": None,
    "seed_all": None,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "memory_snapshot": (),
    "get_arch_list": (),
    "get_gencode_flags": "",
    "get_rng_state_all": (),
    "set_rng_state_all": None,
    "reset_peak_memory_stats": None,
    "reset_accumulated_memory_stats": None,
    "record_memory_history": None,
}


def _answer(value, *args, **kwargs):
    return list(value) if isinstance(value, tuple) else value


def _empty(*args, **kwargs) -> dict:
    """Return an empty dict, because there is no device to report on."""
    return {}


def absent(name: str, functions: Iterable[str] = (), classes: Iterable[str] = ()) -> dict:
    """Return the names of ``torch.<name>``.

    Functions that ask for devices report that there are none. All others raise AssertionError.

    Args:
        functions: names of functions that need the device, in addition to current_device and synchronize.
        classes: names of classes whose objects belong to the device.
    """
    text = f"Torch not compiled with {name.upper()} enabled"

    def refuse(*args, **kwargs):
        """Raise AssertionError, because this device does not exist."""
        raise AssertionError(text)

    def __init__(self, *args, **kwargs):
        raise AssertionError(text)

    made: dict = {key: functools.partial(_answer, value) for key, value in _ANSWERS.items()}
    made.update(memory_stats=_empty, memory_stats_as_nested_dict=_empty, default_generators=())
    made.update(dict.fromkeys(("current_device", "synchronize", *functions), refuse))
    made.update(
        {
            one: type(
                one,
                (),
                {
                    "__init__": __init__,
                    "__module__": f"torch.{name}",
                    "__doc__": "Of a device that is absent.",
                },
            )
            for one in classes
        }
    )
    return made
