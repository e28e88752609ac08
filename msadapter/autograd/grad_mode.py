"""no_grad, enable_grad, set_grad_enabled, inference_mode."""

from __future__ import annotations

import functools
import inspect
import threading

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


class _Inference(threading.local):
    """Whether the thread is in an inference_mode block."""

    on = False


_inference = _Inference()


class inference_mode(_Mode):
    """Like no_grad, but ``is_inference_mode_enabled`` returns True. With False, operations are recorded.

    Tensors made inside are ordinary tensors.
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
        self._outer, _inference.on = _inference.on, self.mode
        super().__enter__()

    def __exit__(self, *exc):
        _inference.on = self._outer
        super().__exit__(*exc)

    def clone(self):
        return self.__class__(self.mode)


def is_inference_mode_enabled() -> bool:
    return _inference.on


class set_multithreading_enabled(_Mode):
    """Accepted without effect: the backward pass runs in the calling thread."""

    def __init__(self, mode: bool):
        self.mode = mode

    def _value(self) -> bool:
        return _C.is_grad_enabled()

    def clone(self):
        return self.__class__(self.mode)
