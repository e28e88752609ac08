"""torch.nn: modules, parameters, initialisers, functions."""

from . import _reduction, attention, common_types, functional, grad, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs):
    """The ``device``, ``dtype`` and ``memory_format`` entries of ``kwargs`` (and of its "factory_kwargs")."""
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unknown = set(kwargs) - names - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in names & set(kwargs):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


__all__ = [
    *modules.__all__,
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
