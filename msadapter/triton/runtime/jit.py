"""Kernels that can be declared, but not launched."""

import functools


class JITFunction:
    """A declared kernel."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __getitem__(self, grid):
        return self

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(
            f"triton: launching the kernel {self.fn.__name__} is not supported (docs/coverage.md)"
        )

    run = __call__


def jit(fn=None, **options):
    """Declare a kernel, with or without options."""
    return JITFunction if fn is None else JITFunction(fn)


class Config:
    """One choice of a kernel's parameters."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, **options):
        self.kwargs, self.num_warps, self.num_stages, self.options = kwargs, num_warps, num_stages, options


def autotune(configs, key, **options):
    """Declare choices of a kernel's parameters."""
    return lambda fn: fn


def heuristics(values):
    """Declare parameters that are computed from others."""
    return lambda fn: fn


type_canonicalisation_dict: dict = {}  # MindSpore adds its own dtype names to this dict
