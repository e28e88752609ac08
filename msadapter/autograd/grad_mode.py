"""no_grad, enable_grad, set_grad_enabled, inference_mode."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings

from .._host.native import load

_C = load()
is_grad_enabled = _C.is_grad_enabled


class _Mode:
    """Base class: a context manager that sets the grad mode, and a decorator of functions and generators."""

    def _value(self) -> bool:
        raise NotImplementedError

    def __enter__(self):
        self._previous = _C.is_grad_enabled()
        _C.set_grad_enabled(self._value())

    def __exit__(self, *exc):
        _C.set_grad_enabled(self._previous)

    def clone(self):
        return self.__class__()

    def __call__(self, function):
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapper

    def _generator(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    item = next(generator)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            item = generator.throw(error)
                    else:
                        with self.clone():
                            item = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapper


class no_grad(_Mode):
    """Operations inside this block are not recorded for backward."""

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def _value(self) -> bool:
        return False


class enable_grad(_Mode):
    """Operations inside this block are recorded for backward."""

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def _value(self) -> bool:
        return True


class set_grad_enabled(_Mode):
    """Set the mode immediately. As a context manager, restore it at the end."""

    def __init__(self, mode: bool):
        self._previous = _C.is_grad_enabled()
        self.mode = bool(mode)
        _C.set_grad_enabled(self.mode)

    def __enter__(self):
        _C.set_grad_enabled(self.mode)

    def _value(self) -> bool:
        return self.mode

    def clone(self):
        return self.__class__(self.mode)

    def __call__(self, function):
        _C.set_grad_enabled(self._previous)
        return super().__call__(function)


class inference_mode(_Mode):
    """Like no_grad, and tensors that are made inside have no history and no version.

    Outside of the mode such a tensor cannot be written in place, and cannot be saved for a backward. With
    ``mode=False``, operations are recorded again.
    """

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        return self

    def __init__(self, mode=True):
        self.mode = bool(mode)

    def _value(self) -> bool:
        return not self.mode  # inference_mode(False) records again, also inside another block

    def __enter__(self):
        self._outer = _C.is_inference_mode_enabled()
        _C.set_inference_mode(self.mode)
        super().__enter__()

    def __exit__(self, *exc):
        _C.set_inference_mode(self._outer)
        super().__exit__(*exc)

    def clone(self):
        return self.__class__(self.mode)


is_inference_mode_enabled = _C.is_inference_mode_enabled


class _unsafe_preserve_version_counter(_Mode):
    """A block after which ``tensors``, one or a tuple, have the versions from before: autograd does not see its writes.

    It is for code that frees the memory of a saved tensor and restores its values before the backward. Anything else makes
    gradients wrong without an error.
    """

    def __init__(self, tensors):
        self.tensors = tensors if isinstance(tensors, tuple) else (tensors,)
        self.previous = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        set_versions(self.tensors, self.previous)

    def clone(self):
        return self.__class__(self.tensors)


def set_versions(tensors, versions) -> None:
    """Set the versions of tensors, which count in-place writes. RuntimeError for a negative version."""
    for tensor, version in zip(tensors, versions, strict=True):
        _C.set_version(tensor, version)


class _Threads(threading.local):
    """Whether backward passes that this thread starts may use several threads."""

    allowed = True


_threads = _Threads()


class set_multithreading_enabled:
    """Set whether backward passes of this thread may use several threads. As a context manager, restore it at the end.

    The setting has no effect here, because a backward pass runs in the thread that calls it.
    """

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode, self.previous = mode, _threads.allowed
        _threads.allowed = self.mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        _threads.allowed = self.previous

    def clone(self):
        return self.__class__(self.mode)


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` was given in this thread."""
    return _threads.allowed
