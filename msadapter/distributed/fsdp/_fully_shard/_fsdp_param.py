"""A parameter of a fully sharded module: its sharded form, a DTensor, and its unsharded form while it is used."""

from __future__ import annotations

from .... import ops
from ....autograd import no_grad
from ....nn import Parameter
from ...tensor import DTensor, Shard
from ...tensor._dtensor import wrap
from ...tensor._spec import part
from ...tensor.placement_types import Replicate, _StridedShard


class FSDPParam:
    """`sharded` and `unsharded` are the two Parameters, one of which is registered in the module.

    In messages, shards are padded to equal length.
    """

    def __init__(self, parameter, places, info, policy, offload, placement=None):
        self.places, self.info, self.policy, self.offload = places, info, policy, offload
        self.dim = (placement.dim % parameter.ndim) if placement is not None and parameter.ndim else 0
        self.tensor_parallel = parameter._spec if isinstance(parameter, DTensor) else None
        local = parameter._local_tensor if self.tensor_parallel else parameter
        self.shape, self.dtype, self.device = tuple(local.shape), local.dtype, local.device
        self.global_shape, self.global_stride = tuple(parameter.shape), parameter.stride()
        self.mesh, self.placements = self._layout()
        self.requires_grad = parameter.requires_grad
        self.sharded = self._cut(local)
        self.unsharded = None
        self.attributes = {k: v for k, v in parameter.__dict__.items() if not k.startswith("_")}
        self.sharded.__dict__.update(self.attributes)
        self.register(self.sharded)

    def _layout(self):
        """(mesh, placements) of the sharded parameter, over data and tensor parallelism."""
        mesh = self.info.mesh
        ours = [Replicate()] * (mesh.ndim - 1) + [Shard(self.dim)]
        if self.tensor_parallel is None:
            return mesh, tuple(ours)
        other = self.tensor_parallel.mesh
        root = mesh._get_root_mesh()
        if root is not other._get_root_mesh() or root is mesh:
            raise ValueError(
                "FSDP requires the DP and model parallel TP mesh to have the same parent mesh but got different parents"
            )
        both = root[(*mesh.mesh_dim_names, *other.mesh_dim_names)]
        theirs = self.tensor_parallel.placements[0]
        if theirs.is_shard(self.dim):
            ours[-1] = _StridedShard(self.dim, split_factor=other.size())
        return both, (*ours, theirs)

    @property
    def each(self) -> int:
        """The length of a padded shard."""
        return -(-self.shape[self.dim] // self.info.shard_size) if self.shape else 1

    def _cut(self, local):
        """The sharded parameter made from an unsharded one."""
        with no_grad():
            if self.shape:
                length, start = part(self.shape[self.dim], self.info.shard_size, self.info.shard_rank)
                own = local.detach().narrow(self.dim, start, length).clone().contiguous()
            else:
                raise ValueError(
                    "fully_shard doesn't support scalar parameters. Change to a 1D tensor with numel equal to 1."
                )
            own = own.to("cpu") if self.offload else own
            return self._as_parameter(own, self.requires_grad)

    def _as_parameter(self, own, requires_grad):
        return Parameter(
            wrap(own, self.mesh, self.placements, self.global_shape, self.global_stride), requires_grad
        )

    def register(self, parameter) -> None:
        """Registers a parameter in the modules."""
        for module, name in self.places:
            module._parameters[name] = parameter

    def reread(self) -> None:
        """Takes over the module's parameter after it was moved or loaded."""
        module, name = self.places[0]
        held = module._parameters[name]
        if held is not self.sharded and isinstance(held, DTensor) and held is not self.unsharded:
            self.sharded = held
            self.register(held)
        local = self.sharded._local_tensor
        self.dtype, self.requires_grad = local.dtype, self.sharded.requires_grad
        if not self.offload and local.device != self.device:
            self.device, self.unsharded = local.device, None

    # ---------------------------------------------------------------- gathering
    @property
    def gathered_dtype(self):
        """The dtype of the unsharded parameter."""
        wanted = self.policy.param_dtype
        return wanted if wanted is not None and self.dtype.is_floating_point else self.dtype

    def message(self):
        """This process's shard, padded, flattened, in the dtype of the unsharded parameter."""
        local = self.sharded._local_tensor.detach().to(self.device).to(self.gathered_dtype)
        return _padded(local, self.dim, self.each).reshape(-1)

    def _padded_shape(self) -> list:
        shape = list(self.shape)
        shape[self.dim] = self.each
        return shape

    def receive(self, parts) -> None:
        """Fills the unsharded parameter from the messages of all processes, which are the rows of a matrix.

        The version counter does not increase, because autograd may have saved the parameter.
        """
        shape = self._padded_shape()
        pieces = [row.reshape(shape) for row in parts.unbind(0)]
        whole = ops.cat(pieces, self.dim).narrow(self.dim, 0, self.shape[self.dim])
        if self.unsharded is None or self.unsharded.dtype is not self.gathered_dtype:
            self._make_unsharded(whole.contiguous())
        else:
            target = self._whole_local()
            storage = target.untyped_storage()
            if storage.nbytes() == 0:
                storage.resize_(target.numel() * target.itemsize)
            target.data.copy_(whole)
        if self.unsharded.requires_grad != self.sharded.requires_grad:
            self.unsharded.requires_grad_(self.sharded.requires_grad)
        self.register(self.unsharded)

    def _make_unsharded(self, whole):
        spec = self.tensor_parallel
        if spec is not None:
            whole = wrap(whole, spec.mesh, spec.placements, self.global_shape, self.global_stride)
        self.unsharded = Parameter(whole, self.sharded.requires_grad)
        self.unsharded.__dict__.update(self.attributes)

    def _whole_local(self):
        return self.unsharded._local_tensor if self.tensor_parallel is not None else self.unsharded

    def release(self) -> None:
        """Registers the sharded parameter and frees the memory of the unsharded one.

        The unsharded tensor object is kept, because autograd may need it again with its memory refilled.
        """
        self.register(self.sharded)
        if self.unsharded is not None:
            self._whole_local().untyped_storage().resize_(0)

    # ---------------------------------------------------------------- gradients
    def take_gradient(self):
        """Removes the unsharded gradient from the parameter and returns it; None if there is none."""
        if self.unsharded is None or self.unsharded.grad is None:
            return None
        grad = self.unsharded.grad
        self.unsharded.grad = None
        return grad._local_tensor if isinstance(grad, DTensor) else grad

    def rows(self, grad, dtype):
        """An unsharded gradient as a matrix with one padded flat row per process."""
        count = self.info.shard_size
        padded = _padded(grad.detach().to(dtype), self.dim, self.each * count)
        return ops.stack([p.reshape(-1) for p in padded.chunk(count, self.dim)])

    def give_gradient(self, row) -> None:
        """Adds this process's reduced gradient, a padded flat row, to the gradient of the sharded parameter."""
        local = self.sharded._local_tensor
        own = row.reshape(self._padded_shape()).narrow(self.dim, 0, local.shape[self.dim])
        own = own.to(self.dtype).to(local.device).contiguous()
        if local.grad is not None:
            local.grad += own
        else:
            local.grad = own.clone() if own.untyped_storage()._cdata == row.untyped_storage()._cdata else own


def _padded(x, dim: int, length: int):
    missing = length - x.shape[dim]
    if not missing:
        return x
    shape = list(x.shape)
    shape[dim] = missing
    return ops.cat([x, x.new_zeros(shape)], dim)
