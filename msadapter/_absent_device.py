"""The contents of modules for devices that MindSpore does not have: torch.mps, torch.xpu and torch.mtia."""

from __future__ import annotations

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


def _named(function, device: str, name: str):
    """Return the function under the name that it has in ``torch.<device>``."""
    function.__module__ = f"torch.{device}"
    function.__name__ = function.__qualname__ = name
    return function


def _answer(value):
    def answer(*args, **kwargs):
        return list(value) if isinstance(value, tuple) else value

    return answer


def _empty():
    def empty(*args, **kwargs) -> dict:
        """Return an empty dict, because there is no device to report on."""
        return {}

    return empty


def _refusal(text: str):
    def refuse(*args, **kwargs):
        """Raise AssertionError, because this device does not exist."""
        raise AssertionError(text)

    return refuse


def absent(name: str, functions: Iterable[str] = (), classes: Iterable[str] = ()) -> dict:
    """Return the names of ``torch.<name>``.

    Functions that ask for devices report that there are none. All others raise AssertionError.

    Args:
        functions: names of functions that need the device, in addition to current_device and synchronize.
        classes: names of classes whose objects belong to the device.
    """
    text = f"Torch not compiled with {name.upper()} enabled"

    def __init__(self, *args, **kwargs):
        raise AssertionError(text)

    made: dict = {key: _answer(value) for key, value in _ANSWERS.items()}
    made.update(memory_stats=_empty(), memory_stats_as_nested_dict=_empty())
    made.update({key: _refusal(text) for key in ("current_device", "synchronize", *functions)})
    for key, function in made.items():
        _named(function, name, key)
    made["default_generators"] = ()
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
