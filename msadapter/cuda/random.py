"""Random number generators of the accelerator.

Each device has its own random stream, as in PyTorch: ranks of tensor parallelism draw the same numbers on their devices although
only one of them draws on the CPU, for the order of the data. If the host acts as the accelerator, the stream of a device is a
Mersenne twister, so a seed gives the numbers that PyTorch draws with it on the CPU.
"""

from .._host import accelerator as _accelerator
from .._host import extensions
from .._values.device import device
from ..ops._generator import Generator

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


class _Generators:
    """The generators of the devices, which are created on first access, with the seed that all of them were last given."""

    def __init__(self):
        self._made = {}
        self._seed: int | None = None

    def __len__(self):
        return _accelerator.device_count()

    def __getitem__(self, index):
        if index < 0:
            index += len(self)
        if not 0 <= index < max(len(self), 1):
            raise IndexError("device index out of range")
        if index not in self._made:
            made = Generator(device(_accelerator.kind() or "cuda", index), _default=True)
            self._made[index] = made if self._seed is None else made.manual_seed(self._seed)
        return self._made[index]

    def seed_all(self, seed: int) -> None:
        """Seed those that exist and those that are created later."""
        self._seed = seed
        for made in self._made.values():
            made.manual_seed(seed)

    def __iter__(self):
        return (self[i] for i in range(len(self)))


default_generators = _Generators()
extensions.accelerator_generators.provide(default_generators)


def _generator(device):
    return default_generators[_accelerator.index_of(device)]


def get_rng_state(device="cuda"):
    """State of the device's generator as a ByteTensor on the host."""
    _accelerator.require()
    return _generator(device).get_state()


def get_rng_state_all() -> list:
    """States of all devices."""
    return [get_rng_state(i) for i in range(_accelerator.device_count())]


def set_rng_state(new_state, device="cuda") -> None:
    """Set the state of the device's generator."""
    _accelerator.require()
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states) -> None:
    """Set the states of all devices."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed: int) -> None:
    """Seeds the generator of the current device. Without an accelerator, nothing happens."""
    if _accelerator.is_available():
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices, also of those that a program uses only later."""
    default_generators.seed_all(int(seed))


def seed() -> None:
    """Seed the current device's generator with a random number."""
    _accelerator.require()
    _generator(None).seed()


def seed_all() -> None:
    """Seed all devices' generators with the same random number."""
    _accelerator.require()
    manual_seed_all(_generator(None).seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    _accelerator.require()
    return _generator(None).initial_seed()
