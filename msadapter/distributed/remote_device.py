"""torch.distributed.remote_device: a device of a worker, written as in "worker1/cpu" or "rank:1/cuda:0"."""

from __future__ import annotations

from .._values.device import device


class _remote_device:
    """A device, and the worker that it belongs to.

    The worker is a name ("worker1/cpu") or a rank ("rank:1/cpu"). Without a device ("worker1") it is the CPU. Without a worker
    ("cuda:1", or a torch.device) it is a device of the process itself.

    Raises:
        TypeError: ``remote_device`` is neither a string nor a torch.device.
        ValueError: the string has no such form.
        RuntimeError: there is no such kind of device.
    """

    def __init__(self, remote_device: str | device):
        self._worker: str | None = None
        self._number: int | None = None
        if isinstance(remote_device, device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        malformed = ValueError(
            f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>' or "
            "'rank:<rank>/<device>' or '<device>'"
        )
        worker, slash, place = remote_device.partition("/")
        if "/" in place:
            raise malformed
        if not slash:
            if self._is_valid_local_device(worker):
                self._device = device(worker)
                return
            place = "cpu"
        if not worker:
            raise malformed
        self._device = device(place)
        head, colon, number = worker.partition(":")
        if not colon:
            self._worker = worker
        elif head == "rank" and number.isdigit():
            self._number = int(number)
        else:
            raise malformed

    @staticmethod
    def _is_valid_local_device(text) -> bool:
        try:
            device(text)
        except (RuntimeError, TypeError):
            return False
        return True

    def worker_name(self) -> str | None:
        """Return the name of the worker, or None."""
        return self._worker

    def rank(self) -> int | None:
        """Return the rank of the worker, or None."""
        return self._number

    def device(self) -> device:
        """Return the device on its worker."""
        return self._device

    def _parts(self) -> tuple:
        return self._worker, self._number, self._device

    def __repr__(self) -> str:
        if self._worker is not None:
            return f"{self._worker}/{self._device}"
        return str(self._device) if self._number is None else f"rank:{self._number}/{self._device}"

    def __eq__(self, other) -> bool:
        return isinstance(other, _remote_device) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())
