"""The device of a loaded storage: location tags in files, and the map_location argument of torch.load."""

from .._errors import unsupported
from .._host import accelerator as _accelerator_state
from .._host.native import load
from .._values.device import device

_packages: list = []  # (priority, tagger, deserializer), lowest priority first


def register_package(priority: int, tagger, deserializer) -> None:
    """Add a pair of functions for a kind of device.

    `tagger(storage)` returns a location or None. `deserializer(storage, location)` returns a storage or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def default_restore_location(storage, location: str):
    """Return the storage on the device that `location` names. RuntimeError if there is no such device."""
    location = str(location)
    for _, _, deserialize in _packages:
        restored = deserialize(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with {location})"
    )


def _cpu(storage, location):
    return storage if location == "cpu" else None


def _meta(storage, location):
    if location == "meta":
        raise unsupported("torch.load", "map_location='meta' is not supported")


def _accelerator(storage, location):
    kind, _, index = location.partition(":")
    if kind not in ("cuda", "npu", "privateuseone"):
        return None
    if not _accelerator_state.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is "
            "False. "
            "If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    count = _accelerator_state.device_count()
    number = int(index) if index else _accelerator_state.current_device()
    if number >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {number} but "
            f"torch.{kind}.device_count() is "
            f"{count}. Please use torch.load with map_location to map your storages to an existing device."
        )
    if _accelerator_state.on_host():
        load().set_device_tag(storage._holder, number + 1)
        return storage
    return storage.cuda(f"{kind}:{number}")


register_package(10, lambda storage: None, _cpu)
register_package(20, lambda storage: None, _accelerator)
register_package(22, lambda storage: None, _meta)


def restore_function(map_location):
    """Return `f(storage, location) -> storage` for a map_location: None, str, torch.device, dict or callable."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, bytes)):
        fixed = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, fixed)
    if isinstance(map_location, device):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            f"map_location should be a string, device, dict or callable, but got {type(map_location)}"
        )

    def restore(storage, location):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore
