"""torch.random: seeds and states of the random generators."""

from __future__ import annotations

import contextlib
import warnings

from ._host import accelerator as _accelerator
from .cuda import random as accelerator_random
from .cuda.random import manual_seed_all
from .ops import _generator
from .ops._generator import Generator

default_generator: Generator = _generator.default_generator()

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def set_rng_state(new_state) -> None:
    """Continue the CPU generator from ``new_state``, a uint8 tensor from get_rng_state here or in PyTorch."""
    default_generator.set_state(new_state)


def get_rng_state():
    """Return the state of the CPU generator as a uint8 tensor."""
    return default_generator.get_state()


def manual_seed(seed) -> Generator:
    """Seed every generator and return the CPU generator. ValueError outside of [-2**63, 2**64)."""
    seed = int(seed)
    manual_seed_all(_generator.checked_seed(seed))
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed every generator with a random number from the operating system, and return this number."""
    value = default_generator.seed()
    manual_seed_all(value)
    return value


def initial_seed() -> int:
    """Return the seed of the CPU generator."""
    return default_generator.initial_seed()


_fork_warned = False


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Restore the state of the generators at the end of this block.

    Args:
        devices: accelerators whose generators are restored in addition to the CPU's; all by default.
        enabled: False does nothing.
    """
    if not enabled:
        yield
        return
    if devices is None:
        count = _accelerator.device_count()
        global _fork_warned
        if count > 1 and not _fork_warned:
            _fork_warned = True
            warnings.warn(
                f"{device_type.upper()} reports that you have {count} available devices, and you have used "
                f"{_caller} without "
                f"explicitly specifying which devices are being used: all their states are saved. Name them with "
                f"`{_devices_kw}` to silence this warning.",
                stacklevel=3,
            )
        devices = range(count)
    devices = list(devices)
    state = get_rng_state()
    device_states = [accelerator_random.get_rng_state(d) for d in devices]
    try:
        yield
    finally:
        set_rng_state(state)
        for device, saved in zip(devices, device_states, strict=True):
            accelerator_random.set_rng_state(saved, device)
