"""Determines the mesh and the parameters that a fully_shard call manages."""

from __future__ import annotations

from dataclasses import dataclass

from .... import accelerator
from ...._errors import unsupported
from ....tensor import device
from ...device_mesh import DeviceMesh, init_device_mesh
from ...setup import get_world_size, init_process_group, is_initialized
from ...tensor import DTensor


@dataclass(frozen=True)
class MeshInfo:
    """The data parallel mesh. Its last dimension shards; the dimension before it, if any, replicates."""

    mesh: DeviceMesh

    @property
    def shard_group(self):
        """The group over which parameters are sharded."""
        return self.mesh.get_group(self.mesh.ndim - 1)

    @property
    def shard_size(self) -> int:
        """The number of shards."""
        return self.mesh.size(self.mesh.ndim - 1)

    @property
    def shard_rank(self) -> int:
        """The index of this process's shard."""
        return self.mesh.get_local_rank(self.mesh.ndim - 1)

    @property
    def replicate_group(self):
        """The group of processes with equal shards; None without replication."""
        return self.mesh.get_group(0) if self.mesh.ndim == 2 else None


def _default_mesh() -> DeviceMesh:
    if not is_initialized():
        init_process_group()
    return init_device_mesh("cpu", (get_world_size(),))


def mesh_info(mesh) -> MeshInfo:
    """The MeshInfo of a mesh. Raises ValueError for more than two dimensions."""
    mesh = mesh if mesh is not None else _default_mesh()
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    return MeshInfo(mesh)


def _get_device_from_mesh(mesh: DeviceMesh):
    """The device on which this process works."""
    if mesh.device_type == "cpu":
        return device("cpu")
    return device(mesh.device_type, accelerator.current_device_index())


def managed_modules(roots, is_managed) -> list:
    """The submodules of the roots, without those that have their own fully_shard."""
    found, seen = [], set()

    def visit(module, top):
        if module in seen or (not top and is_managed(module)):
            return
        seen.add(module)
        for child in module.children():
            visit(child, child in roots)
        found.append(module)

    for root in roots:
        visit(root, True)
    return found


def managed_parameters(modules, ignored) -> list:
    """(parameter, [(module, name), ...]) for every parameter of the modules. A shared parameter occurs once."""
    where: dict = {}
    for module in modules:
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter not in ignored:
                where.setdefault(parameter, []).append((module, name))
    return list(where.items())


def checked(parameter) -> None:
    """Raises an error for a parameter that cannot be sharded."""
    if isinstance(parameter, DTensor) and parameter.device_mesh.ndim != 1:
        raise unsupported("fully_shard of a DTensor on a mesh of several dims")
    if not parameter.is_contiguous():
        raise NotImplementedError(
            f"FSDP does not support non-contiguous parameters yet: {parameter.shape=} {parameter.stride()=}"
        )


def move_to_device(parameters, modules, target) -> None:
    """Moves parameters and buffers to the mesh's device. Meta tensors stay unchanged."""
    for parameter in parameters:
        local = parameter._local_tensor if isinstance(parameter, DTensor) else parameter
        if not local.is_meta and local.device.type != target.type:
            local.data = local.data.to(target)
    for module in modules:
        for name, buffer in module._buffers.items():
            if buffer is not None and not buffer.is_meta and buffer.device.type != target.type:
                module._buffers[name] = buffer.to(target)
