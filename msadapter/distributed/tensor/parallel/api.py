"""parallelize_module: applies parallel styles to the submodules of a module."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from .._dtensor import _current_mesh
from .style import ParallelStyle


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Applies a style to a module, or styles to its submodules by name, in place. Each part of a name may be a pattern."""
    mesh = device_mesh if device_mesh is not None else _current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! Please use a slice of the mesh."
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module "
            "call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        _apply_at(module, path.split("."), style, mesh, src_data_rank, path)
    return module


def _apply_at(module, names, style, mesh, src_data_rank, path) -> None:
    if names == [""]:
        raise ValueError("Expect a submodule's name in the plan, but got an empty one")
    found = [child for name, child in module.named_children() if fnmatch(name, names[0])]
    if not found:
        warnings.warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{names[0]}' in module "
            f"{type(module).__name__}",
            stacklevel=3,
        )
    for child in found:
        if names[1:]:
            _apply_at(child, names[1:], style, mesh, src_data_rank, path)
        else:
            parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
