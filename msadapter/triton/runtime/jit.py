"""Kernels that can be declared. With TRITON_INTERPRET=1 they can be launched, too."""

import functools
import math
import os


class JITFunction:
    """A declared kernel."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn
        # Functions from the arguments of a launch to further arguments, by name, in the order of their decorators from below.
        self.chosen: list = []

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid)

    def run(self, *args, grid, warmup=False, **kwargs):
        """Launch the kernel on a grid.

        Raises:
            NotImplementedError: TRITON_INTERPRET=1 is not set. There is no compiler for kernels.
        """
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise self._refusal()
        if not warmup:
            # It needs torch, which is not complete when MindSpore imports this module.
            from .. import interpreter

            interpreter.launch(self.fn, grid, args, kwargs, self.chosen)

    def __call__(self, *args, **kwargs):
        """Call the kernel from another one, which is being interpreted."""
        # As in run().
        from .. import interpreter

        if not interpreter.inside():
            raise self._refusal()
        return self.fn(*args, **kwargs)

    def _refusal(self) -> NotImplementedError:
        return NotImplementedError(
            f"triton: launching the kernel {self.fn.__name__} is not supported (docs/coverage.md); with TRITON_INTERPRET=1 it is "
            "interpreted on the CPU"
        )


def jit(fn=None, **options):
    """Declare a kernel, with or without options."""
    return JITFunction if fn is None else JITFunction(fn)


class Config:
    """One choice of a kernel's parameters."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, **options):
        self.kwargs, self.num_warps, self.num_stages, self.options = kwargs, num_warps, num_stages, options


def _size_of_blocks(config: Config) -> int:
    return math.prod(value for value in config.kwargs.values() if type(value) is int)


def autotune(configs, key, **options):
    """Declare choices of a kernel's parameters, which all give the same values.

    An interpreted kernel takes that with the largest blocks, because it has the fewest programs; of equal ones the first.
    """
    largest = max(configs, key=_size_of_blocks, default=Config({}))
    return _choosing(lambda given: largest.kwargs)


def heuristics(values):
    """Declare parameters that are computed from others, which each function of `values` receives by name."""
    return _choosing(lambda given: {name: function(given) for name, function in values.items()})


def _choosing(function):
    """A decorator that adds a function from arguments to arguments to a kernel."""

    def decorate(kernel):
        if isinstance(kernel, JITFunction):
            kernel.chosen.append(function)
        return kernel

    return decorate


type_canonicalisation_dict: dict = {}  # MindSpore adds its own dtype names to this dict
