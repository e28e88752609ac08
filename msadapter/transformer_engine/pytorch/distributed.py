"""Random states of model parallel regions, and recomputation with the same random numbers."""

from contextlib import contextmanager

from ... import cuda
from ..._errors import unsupported
from ...utils import checkpoint as recompute
from .fp8 import FP8GlobalStateManager

_trackers: list = []
_recomputed = _recomputing = False  # what the two functions below answer


@contextmanager
def activation_recompute_forward(activation_recompute: bool = False, recompute_phase: bool = False):
    """A block, or a function that is decorated, whose forward pass is computed twice: first, or again in backward.

    activation_recompute: it is computed twice, which matters to 8-bit training alone. recompute_phase: now again.
    """
    global _recomputed, _recomputing
    _recomputed = activation_recompute and FP8GlobalStateManager.is_fp8_enabled()
    _recomputing = recompute_phase
    try:
        yield
    finally:
        _recomputed = _recomputing = False


def is_fp8_activation_recompute_enabled() -> bool:
    """Whether this is a block that is computed twice, and in 8 bits."""
    return _recomputed


def in_fp8_activation_recompute_phase() -> bool:
    """Whether a forward pass is computed again."""
    return _recomputing


class CudaRNGStatesTracker:
    """Stores named states of the device's generator."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        """Removes all states."""
        self.states_, self.seeds_ = {}, set()

    def get_states(self) -> dict:
        """All states by name."""
        return dict(self.states_)

    def set_states(self, states) -> None:
        """Replace all states."""
        self.states_ = states

    def add(self, name: str, seed: int) -> None:
        """Adds the state for a seed. Each name and each seed may be added only once."""
        if seed in self.seeds_:
            raise RuntimeError(f"seed {seed} already exists")
        if name in self.states_:
            raise RuntimeError(f"state {name} already exists")
        self.seeds_.add(seed)
        before = cuda.get_rng_state()
        cuda.manual_seed(seed)
        self.states_[name] = cuda.get_rng_state()
        cuda.set_rng_state(before)
        if self not in _trackers:
            _trackers.append(self)

    @contextmanager
    def fork(self, name: str = "model-parallel-rng"):
        """A block in which random numbers come from a named state."""
        if name not in self.states_:
            raise RuntimeError(f"state {name} does not exist")
        before = cuda.get_rng_state()
        cuda.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = cuda.get_rng_state()
            cuda.set_rng_state(before)


def get_all_rng_states() -> dict:
    """The states of all trackers, by name."""
    return {name: state for tracker in _trackers for name, state in tracker.states_.items()}


def checkpoint(
    function,
    *args,
    distribute_saved_activations=False,
    get_rng_state_tracker=None,
    tp_group=None,
    use_reentrant=True,
    **kwargs,
):
    """Calls function(*args, **kwargs) and recomputes its activations in backward with the same random states."""
    if distribute_saved_activations:
        raise unsupported(
            "transformer_engine.pytorch.checkpoint", "distribute_saved_activations is not supported"
        )
    tracker = None if get_rng_state_tracker is None else get_rng_state_tracker()
    first: list = []

    def run(*inputs):
        now = None if tracker is None else tracker.get_states()
        again = bool(first)
        if not again:
            first.append(now)
        elif tracker is not None:
            tracker.set_states(dict(first[0]))
        try:
            with activation_recompute_forward(activation_recompute=True, recompute_phase=again):
                return function(*inputs, **kwargs)
        finally:
            if again and tracker is not None:
                tracker.set_states(now)

    return recompute.checkpoint(run, *args, use_reentrant=use_reentrant)
