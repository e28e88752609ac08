"""torch.distributed.rpc.options: who takes part in remote procedure calls, and with what settings."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..._values.device import device as _device
from .constants import DEFAULT_INIT_METHOD, DEFAULT_NUM_WORKER_THREADS, DEFAULT_RPC_TIMEOUT_SEC

__all__ = ["RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo"]


_NAME = re.compile(r"[A-Za-z0-9_:-]{1,127}")


class _Worker(NamedTuple):
    name: str
    id: int


class WorkerInfo(_Worker):
    """The name of a worker and its number, which is its rank.

    RuntimeError unless the name has 1 to 127 letters, digits, underscores, colons and dashes.
    """

    __slots__ = ()

    def __new__(cls, name: str, worker_id: int):
        if not _NAME.fullmatch(name):
            raise RuntimeError(
                f"Worker name must match ^[A-Za-z0-9-_:]*$, must be non-empty and shorter than 128 chars, but got {name!r}"
            )
        return super().__new__(cls, name, worker_id)

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    __str__ = __repr__


class RpcBackendOptions:
    """The settings that every backend has: the timeout of a call in seconds, and the URL at which the workers meet."""

    def __init__(
        self, rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC, init_method: str = DEFAULT_INIT_METHOD
    ) -> None:
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


def _device_map(devices: dict) -> dict:
    """Return the map between devices. ValueError if two of them go to the same one."""
    result: dict = {}
    for source, target in ((_device(a), _device(b)) for a, b in devices.items()):
        for other, taken in result.items():
            if taken == target:
                raise ValueError(
                    f"`device_map` only supports 1-to-1 mapping, trying to map {source} and {other} to {target}"
                )
        result[source] = target
    return result


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """The settings of the only backend, under PyTorch's name for it. Messages go over TCP.

    ``num_worker_threads`` threads run the functions that others call. ``device_maps[name]`` maps devices of this worker to
    devices of the worker of that name: a tensor on the first arrives on the second, and results go back by the inverse. Without
    a map only tensors on the CPU can be sent. Choices of transports (`_transports`, `_channels`) have no effect.
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = DEFAULT_INIT_METHOD,
        device_maps: dict | None = None,
        devices: list | None = None,
        _transports=None,
        _channels=None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError("num_worker_threads must be positive")
        self.num_worker_threads = num_worker_threads
        self.device_maps = {name: _device_map(devices) for name, devices in (device_maps or {}).items()}
        self.devices: list = []
        self.set_devices(devices or [])

    def set_device_map(self, to: str, device_map: dict) -> None:
        """Add to the map of devices for tensors that are sent to the worker ``to``."""
        known, further = self.device_maps.setdefault(to, {}), _device_map(device_map)
        for source, target in further.items():
            if known.get(source, target) != target:
                raise ValueError(
                    "`set_device_map` only supports 1-to-1 mapping, trying to map "
                    f"{source} to {target} and {known[source]}"
                )
        self.device_maps[to] = _device_map({**known, **further})

    def set_devices(self, devices: list) -> None:
        """Name the accelerators of this worker whose tensors are sent."""
        self.devices = [_device(place) for place in devices]
        for place in self.devices:
            if place.type == "cpu":
                raise ValueError(
                    f"`set_devices` expect a list of CUDA devices, but got device type {place.type}."
                )
