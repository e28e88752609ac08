"""torch.utils.checkpoint: recompute activations in the backward pass instead of keeping them."""

from __future__ import annotations

import contextlib
import warnings
import weakref

from .. import cuda
from .. import random as _random
from .._host.native import load
from ..amp import autocast, get_autocast_dtype, is_autocast_cache_enabled, is_autocast_enabled
from ..autograd import (
    Function,
    _is_checkpoint_valid,
    backward,
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from ..autograd.graph import saved_tensors_hooks
from ..tensor import Tensor
from ._python_dispatch import LoggingMode
from ._selective_checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from ._selective_checkpoint import (
    _CachedTorchDispatchMode as _CachedTorchDispatchMode,
)
from ._selective_checkpoint import (
    _CachingTorchDispatchMode as _CachingTorchDispatchMode,
)

_C = load()
_determinism_default = "default"


def detach_variable(inputs) -> tuple:
    """Return ``inputs`` with detached copies of its tensors, which keep requires_grad."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type:  {type(inputs).__name__}"
        )
    out = []
    for x in inputs:
        if isinstance(x, Tensor):
            d = x.detach()
            d.requires_grad = x.requires_grad
            out.append(d)
        else:
            out.append(x)
    return tuple(out)


def check_backward_validity(inputs) -> None:
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """Return (device ids, generator states) of the accelerators on which the arguments are."""
    ids = sorted({a.get_device() for a in args if isinstance(a, Tensor) and a.get_device() >= 0})
    return ids, [cuda.get_rng_state(i) for i in ids]


def set_device_states(devices, states, *, device_type=None) -> None:
    for i, state in zip(devices, states, strict=True):
        cuda.set_rng_state(state, i)


def _get_autocast_kwargs(device_type: str = "cuda") -> tuple[dict | None, dict]:
    """Return the arguments with which autocast restores its present state, for the device and for the CPU."""

    def now(device: str) -> dict:
        return {
            "enabled": is_autocast_enabled(device),
            "dtype": get_autocast_dtype(device),
            "cache_enabled": is_autocast_cache_enabled(),
        }

    return (None if device_type == "cpu" else now(device_type)), now("cpu")


class _Surroundings:
    """The states of the random generators and of autocast at the first run."""

    def __init__(self, preserve: bool, args):
        self.preserve = preserve
        self.autocast = {d: (is_autocast_enabled(d), get_autocast_dtype(d)) for d in ("cuda", "cpu")}
        if preserve:
            self.cpu_state = _random.get_rng_state()
            self.devices, self.states = get_device_states(*args)

    @contextlib.contextmanager
    def again(self):
        with contextlib.ExitStack() as stack:
            if self.preserve:
                stack.enter_context(_random.fork_rng(devices=self.devices, enabled=True))
                _random.set_rng_state(self.cpu_state)
                set_device_states(self.devices, self.states)
            for device, (on, dtype) in self.autocast.items():
                if on or is_autocast_enabled(device):
                    stack.enter_context(autocast(device, dtype=dtype, enabled=on))
            yield


class CheckpointFunction(Function):
    """The re-entrant form. Forward records no graph; backward runs forward again with a graph, and then its backward."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state, args)
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). Give use_reentrant=False, or call .backward() without `inputs`."
            )
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[i] = t
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(d.grad if isinstance(d, Tensor) else None for d in detached))


class CheckpointError(RuntimeError):
    """Raised if the recomputation saves other tensors than the first run."""


class _StopRecomputation(Exception):
    pass


class _Frame:
    """One checkpointed region. It counts the saved tensors, and computes all of them again when the first one is needed."""

    def __init__(self, function, args, kwargs, preserve, early_stop, checks, log):
        self.checks = checks  # whether the tensors that the recomputation saves must look like the first ones
        self.log = log  # the operators of the first run and of the recomputation, or None
        self.completed = False  # whether the first run has ended; a backward pass inside of it may need saved tensors before
        self.function, self.args, self.kwargs = function, args, kwargs
        self.surroundings = _Surroundings(preserve, args)
        self.early_stop = early_stop
        self.saved: list[weakref.ref] = []
        # The backward pass that has recomputed the region last, and its tensors. A tensor is dropped with its
        # placeholder, which lives until its node has run.
        self.task = -1
        self.recomputed: weakref.WeakKeyDictionary[_Holder, Tensor] = weakref.WeakKeyDictionary()

    def pack(self, tensor):
        holder = _Holder(self, tuple(tensor.shape), tensor.dtype)
        self.saved.append(weakref.ref(holder))
        return holder

    def take(self, holder: _Holder) -> Tensor:
        """Return a saved tensor, once in a backward pass. The region is recomputed once for each backward pass."""
        task = _C.current_graph_task_id()
        if task == -1 or task != self.task:
            self.recomputed = weakref.WeakKeyDictionary()
            self._recompute()
            self.task = task
        elif holder not in self.recomputed:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are "
                "calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with "
                "details on your use case."
            )
        return self.recomputed.pop(holder)

    def _recompute(self) -> None:
        position = 0

        def keep(tensor):
            nonlocal position
            if position == len(self.saved) and not self.completed:
                return tensor.detach()
            if position == len(self.saved):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\nNumber of tensors saved during forward: {len(self.saved)}"
                )
            holder = self.saved[position]()
            if holder is not None:
                self.recomputed[holder] = tensor.detach()
            position += 1
            if self.early_stop and position == len(self.saved):
                raise _StopRecomputation
            return tensor.detach()

        recording = saved_tensors_hooks(keep, lambda t: t)
        logged = contextlib.nullcontext() if self.log is None else self.log.second()
        with (
            self.surroundings.again(),
            enable_grad(),
            recording,
            logged,
            contextlib.suppress(_StopRecomputation),
        ):
            self.function(*self.args, **self.kwargs)
        if position != len(self.saved):
            raise CheckpointError(
                f"torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.saved)}\nNumber of tensors saved "
                f"during recomputation: {position}"
            )


class _Holder:
    """Placeholder of a tensor that will be computed again."""

    __slots__ = ("frame", "shape", "dtype", "__weakref__")

    def __init__(self, frame, shape, dtype):
        self.frame, self.shape, self.dtype = frame, shape, dtype


class _Log:
    """The operators of a checkpointed region: those of the first run, and those of the latest recomputation."""

    def __init__(self):
        self.runs = ([], [])

    def first(self) -> LoggingMode:
        return LoggingMode(self.runs[0])

    def second(self) -> LoggingMode:
        self.runs[1].clear()
        return LoggingMode(self.runs[1])

    def text(self) -> str:
        titles = ("the original forward", "recomputation")
        return "\n".join(
            f"\nOperations executed during {title}:\n" + "\n".join(lines)
            for title, lines in zip(titles, self.runs, strict=True)
        )


def _unpack(holder):
    try:
        return _checked(holder)
    except CheckpointError as error:
        if holder.frame.log is None:
            raise
        raise CheckpointError(
            f"{error}\n{holder.frame.log.text()}\n\nYou are seeing this error because you passed `debug=True` to checkpoint, and "
            "the tensors to be saved differ between the original forward and its recomputation: they execute different operations."
        ) from error


def _checked(holder):
    tensor = holder.frame.take(holder)
    if not holder.frame.checks:
        return tensor
    if tuple(tensor.shape) != holder.shape or tensor.dtype is not holder.dtype:
        raise CheckpointError(
            "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
            f"the forward pass.\nsaved: {holder.shape} {holder.dtype}, recomputed: {tuple(tensor.shape)} {tensor.dtype}"
        )
    return tensor


_early_stop = [True]


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Set whether recomputation stops as soon as all needed tensors exist."""
    before, _early_stop[0] = _early_stop[0], enable
    try:
        yield
    finally:
        _early_stop[0] = before


_debug: list[bool | None] = [None]


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Set whether checkpoints log their operators, whatever their argument ``debug`` is; None leaves it to the argument."""
    before, _debug[0] = _debug[0], enabled
    try:
        yield
    finally:
        _debug[0] = before


def noop_context_fn():
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check=_determinism_default,
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Return ``function(*args)`` without keeping its activations. The backward pass computes them again.

    determinism_check: "default" compares the sizes and dtypes of the tensors of both runs, "none" does not.
    With ``debug``, an error about tensors that differ lists the operators of both runs.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly.", stacklevel=2
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in (_determinism_default, "none"):
        raise ValueError(
            f"determinism_check should be one of ['{_determinism_default}', 'none'], but got {determinism_check}"
        )
    log = _Log() if (debug if _debug[0] is None else _debug[0]) else None
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()

    def again(*a, **k):
        with second:
            return function(*a, **k)

    frame = _Frame(
        again if context_fn is not noop_context_fn else function,
        args,
        kwargs,
        preserve,
        early_stop and _early_stop[0],
        determinism_check == _determinism_default,
        log,
    )
    with (
        first,
        saved_tensors_hooks(frame.pack, _unpack),
        contextlib.nullcontext() if log is None else log.first(),
    ):
        result = function(*args, **kwargs)
    frame.completed = True
    return result


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run a sequence of functions as ``segments`` pieces. All are checkpointed except the last one."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start, end):
        def forward(x):
            for j in range(start, end + 1):
                x = functions[j](x)
            return x

        return forward

    size, end = len(functions) // segments, -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(end + 1, len(functions) - 1)(input)


class DefaultDeviceType:
    """The device type that is assumed if no argument is on an accelerator."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_grad_enabled",
]
