"""Creates DTensors from ordinary tensors, from the parameters of modules, and by factory functions."""

from __future__ import annotations

from ... import ops
from ...autograd import no_grad
from ...nn import Module, Parameter
from .. import collectives
from ._dtensor import DTensor, _current_mesh, wrap
from ._redistribute import move
from ._spec import checked_placements, local_shape_and_offset
from ._special import same_state
from .placement_types import Replicate


def _same_everywhere(tensor, mesh, group_src: int):
    """Broadcasts the tensor of process ``group_src`` along every mesh dimension."""
    out = tensor.detach().clone().contiguous()
    for mesh_dim in range(mesh.ndim):
        collectives.broadcast(out, group=mesh.get_group(mesh_dim), group_src=group_src)
    return out


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """Makes a leaf DTensor from a complete tensor.

    placements: default Replicate. src_data_rank: the process along each mesh dimension whose values are used; None means that
    all processes have equal values already.
    """
    mesh = device_mesh if device_mesh is not None else _current_mesh()
    placements = checked_placements(placements, mesh, tensor.ndim)
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!"
        )
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != placements:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placements}. "
                "do you want to call `redistribute` instead?"
            )
        return tensor
    if any(p.is_partial() for p in placements):
        raise RuntimeError(
            f"Trying to distribute tensor with unsupported placements on device mesh dimension "
            f"{[p.is_partial() for p in placements].index(True)}!"
        )
    with no_grad():
        local = tensor.detach()
        if mesh.get_coordinate() is None:
            local = ops.empty(0, dtype=tensor.dtype, device=tensor.device)
        elif src_data_rank is not None and not local.is_meta:
            local = _same_everywhere(local, mesh, src_data_rank)
        local = move(local, mesh, tuple(tensor.shape), (Replicate(),) * mesh.ndim, placements)
        if local.untyped_storage()._cdata == tensor.untyped_storage()._cdata:
            local = local.clone() if any(p.is_shard() for p in placements) else local.detach()
    return wrap(local, mesh, placements, tensor.shape, tensor.stride()).requires_grad_(tensor.requires_grad)


def _replicated(name, module, mesh) -> None:
    """Makes the remaining parameters and buffers of a module replicated DTensors."""
    for key, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            made = distribute_tensor(parameter.detach(), mesh, [Replicate()] * mesh.ndim)
            module.register_parameter(key, Parameter(made, parameter.requires_grad))
    for key, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, mesh, [Replicate()] * mesh.ndim)


def distribute_module(
    module: Module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None
) -> Module:
    """Makes a module's parameters DTensors, in place.

    partition_fn(name, submodule, mesh) shards parameters; the others are replicated. input_fn(module, inputs, mesh) and
    output_fn(module, outputs, mesh) run before and after forward.
    """
    mesh = device_mesh if device_mesh is not None else _current_mesh()
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    for name, sub in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, sub, mesh)
        _replicated(name, sub, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    module._distribute_module_applied = True
    return module


# ---- factories
def _size(size) -> tuple:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _made(fill, size, dtype, layout, requires_grad, device_mesh, placements, whole=False):
    mesh = device_mesh if device_mesh is not None else _current_mesh()
    placements = checked_placements(placements, mesh, len(size))
    if any(p.is_partial() for p in placements):
        raise RuntimeError(
            "placements must not contain Partial, because a factory creates no partial tensors"
        )
    device = None if mesh.device_type == "cpu" else mesh.device_type
    shape, _ = local_shape_and_offset(size, mesh, placements)
    with no_grad():
        local = fill(size if whole else shape, dtype=dtype, device=device)
        if whole:
            local = move(local, mesh, size, (Replicate(),) * mesh.ndim, placements)
    stride = ops.empty(size, device="meta").stride()
    return wrap(local, mesh, placements, size, stride).requires_grad_(requires_grad)


def zeros(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """A DTensor of zeros."""
    return _made(ops.zeros, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def ones(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None) -> DTensor:
    """A DTensor of ones."""
    return _made(ops.ones, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def empty(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None) -> DTensor:
    """An uninitialised DTensor."""
    return _made(ops.empty, _size(size), dtype, layout, requires_grad, device_mesh, placements)


def full(
    size, fill_value, *, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None
) -> DTensor:
    """A DTensor filled with one value."""
    fill = lambda shape, **options: ops.full(shape, fill_value, **options)  # noqa: E731
    return _made(fill, tuple(size), dtype, layout, requires_grad, device_mesh, placements)


def rand(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Uniform random numbers, equal to those of one process with the random state of the mesh's first process."""
    return _random(ops.rand, size, dtype, layout, requires_grad, device_mesh, placements)


def randn(*size, requires_grad=False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
    """Normal random numbers, equal to those of one process with the random state of the mesh's first process."""
    return _random(ops.randn, size, dtype, layout, requires_grad, device_mesh, placements)


def _random(draw, size, dtype, layout, requires_grad, device_mesh, placements):
    mesh = device_mesh if device_mesh is not None else _current_mesh()
    same_state(mesh)
    return _made(draw, _size(size), dtype, layout, requires_grad, mesh, placements, whole=True)
