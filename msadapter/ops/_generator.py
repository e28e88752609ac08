"""Random generators. The CPU uses PyTorch's stream (in C++), a device MindSpore's pair (seed, offset)."""

from __future__ import annotations

import functools
import os
import weakref

from .._host import extensions
from .._host.accelerator import on_host
from .._values.base import Base
from .._values.device import META_TAG, accelerator
from .._values.device import device as device_type
from .._values.dtype import ALL
from ._declare import _C, raw, t

_DEFAULT_ID = 0
_DEVICE_STATE_BYTES = 16
_DEFAULT_SEED = 67280421310721  # PyTorch's seed of a generator that was not seeded
_OFFSET_STEP = 12  # torch_npu asks for 10 numbers, rounded up to a multiple of 4
_LOW, _HIGH = -(1 << 63), (1 << 64) - 1


def _int64(value: int):
    """Return a tensor on the host. MindSpore's operators read a seed there, also those of an NPU."""
    return _C.host_int64(value - (1 << 64) if value >= 1 << 63 else value)


@functools.cache
def _offset():
    return _int64(0)  # CPU generators have no offset


def checked_seed(seed) -> int:
    """Return ``seed`` as an unsigned 64-bit integer. A negative number stands for seed + 2**64."""
    seed = int(seed)
    if not _LOW <= seed <= _HIGH:
        raise ValueError("Overflow when unpacking long long")
    return seed % (1 << 64)


def fresh_seed() -> int:
    """Return a random seed of 53 bits from the operating system."""
    return int.from_bytes(os.urandom(8), "little") >> 11


class _HostStream:
    """A stream of the Mersenne twister (mt19937). The state is in C++; this object holds its id."""

    def __init__(self, default: bool):
        self._id = _int64(_DEFAULT_ID) if default else raw.GeneratorNew()
        if not default:
            weakref.finalize(self, raw.GeneratorFree, self._id).atexit = False

    def operands(self):
        return self._id, _offset()

    def reseed(self, seed: int) -> None:
        raw.GeneratorSeed(self._id, _int64(seed))

    def initial_seed(self) -> int:
        return _C.item(raw.GeneratorInitialSeed(self._id)) % (1 << 64)

    def get_state(self):
        return raw.GeneratorGetState(self._id)

    def set_state(self, state) -> None:
        raw.GeneratorSetState(self._id, state)


class _DeviceStream:
    """A stream of the Philox generator of an NPU: a seed, and an offset that each draw advances.

    The state (16 bytes: the seed, then the offset) and the step are those of torch_npu, so that the operators of
    a device get the same pair as there.
    """

    def __init__(self):
        self._seed, self._offset = _DEFAULT_SEED, 0

    def operands(self):
        offset = self._offset
        self._offset += _OFFSET_STEP
        return _int64(self._seed), _int64(offset)

    def reseed(self, seed: int) -> None:
        self._seed, self._offset = seed, 0

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self):
        state = self._seed.to_bytes(8, "little") + self._offset.to_bytes(8, "little")
        return t.tensor(list(state), dtype=ALL["uint8"])

    def set_state(self, state) -> None:
        content = bytes(state.tolist())
        if len(content) not in (8, _DEVICE_STATE_BYTES):  # PyTorch also accepts a state without an offset
            raise RuntimeError("RNG state is wrong size")
        self._seed = int.from_bytes(content[:8], "little")
        self._offset = int.from_bytes(content[8:], "little")


class Generator:
    """A source of random numbers (torch.Generator).

    On the CPU the numbers and the state (5056 bytes) equal PyTorch's.

    Args:
        device: the device of the tensors that it fills; "cpu" by default.

    Each default generator (``_default``) has a stream of its own, also that of an accelerator for which the host acts: what a
    program draws on the CPU must not change what it draws on the device, as in PyTorch.
    """

    def __init__(self, device="cpu", *, _default: bool = False):
        self._device = device if isinstance(device, device_type) else device_type(device)
        host = self._device.type == "cpu" or on_host()
        self._stream = _HostStream(_default and self._device.type == "cpu") if host else _DeviceStream()

    @property
    def device(self):
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream with ``seed``. Returns the generator."""
        self._stream.reseed(checked_seed(seed))
        return self

    def seed(self) -> int:
        """Restart the stream with a random seed. Returns this seed."""
        seed = fresh_seed()
        self._stream.reseed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed of the current stream."""
        return self._stream.initial_seed()

    def get_state(self):
        """Return the state as a uint8 tensor."""
        return self._stream.get_state()

    def set_state(self, new_state) -> None:
        """Continue from ``new_state``, a uint8 tensor from get_state of this package or of PyTorch.

        A device generator that runs on the CPU also accepts PyTorch's 16 bytes of (seed, offset) and restarts
        with this seed.
        """
        if not isinstance(new_state, Base):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not ALL["uint8"]:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if (
            self._device.type != "cpu"
            and isinstance(self._stream, _HostStream)
            and new_state.numel() == _DEVICE_STATE_BYTES
        ):
            self._stream.reseed(int.from_bytes(bytes(new_state.tolist()[:8]), "little"))
            return
        self._stream.set_state(new_state.cpu())

    def clone_state(self) -> Generator:
        """Return another generator with the same state."""
        other = Generator(self._device)
        other.set_state(self.get_state())
        return other

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> None:
        self.set_state(state.get_state())

    def operands(self):
        """Return the pair (seed, offset) of tensors that MindSpore's random operators take."""
        return self._stream.operands()

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def __reduce__(self):
        offset = getattr(self._stream, "_offset", None)  # a stream on the host has none, as in PyTorch
        return Generator, (self._device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state: tuple) -> None:
        """Continue from what ``__reduce__`` of this package or of PyTorch returned: seed, offset and the whole state."""
        self.set_state(state[2])


Generator.__module__ = "torch._C"


@functools.cache
def default_generator() -> Generator:
    """Return the default generator of the CPU."""
    return Generator("cpu", _default=True)


def operands(generator, tag: int):
    """Return (seed, offset) for a random operator.

    ``tag`` names the device: 0 is the CPU and n + 1 is accelerator n. With META_TAG nothing is drawn. A
    generator of another device type raises RuntimeError.
    """
    if tag == META_TAG:
        return default_generator().operands() if generator is None else generator.operands()
    if generator is None:
        if tag == 0:
            return default_generator().operands()
        return extensions.accelerator_generators.value[tag - 1].operands()
    if (generator.device.type == "cpu") != (tag == 0):
        wanted = "cpu" if tag == 0 else accelerator() or "cuda"
        raise RuntimeError(
            f"Expected a '{wanted}' device type for generator but found '{generator.device.type}'"
        )
    return generator.operands()
