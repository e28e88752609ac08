"""DTensor: a tensor that is distributed over the processes of a mesh.

The object has the global tensor's shape, strides and dtype. Its addresses are reserved without memory, like a meta tensor's,
so code that bypasses this class fails instead of reading wrong data. `_local_tensor` is this process's part. It carries the
autograd graph, and each transfer between processes is a node of that graph. A gradient has the placements of its tensor.
"""

from __future__ import annotations

import copy

from ... import autograd, ops
from ..._errors import unsupported, unsupported_function
from ..._host.native import load
from ...autograd import is_grad_enabled, no_grad
from ...tensor import Tensor
from ...tensor._arguments import parse_to
from .. import collectives
from ..device_mesh import _mesh_resources
from ._redistribute import average_parts, moved, with_gradient_from
from ._spec import DTensorSpec, TensorMeta, checked_placements, gradient_placements
from ._utils import compute_global_tensor_info
from .placement_types import Replicate

_C = load()


def _of_local(name: str):
    return property(lambda self: getattr(self._local_tensor, name))


class DTensor(Tensor):
    """A distributed tensor; see the module's docstring. _dispatch.py runs its operators."""

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad=None):
        made = _shell(spec.tensor_meta, cls)
        made.__dict__["_local_tensor"], made.__dict__["_spec"] = local_tensor, spec
        if requires_grad is not None:
            local_tensor.requires_grad_(requires_grad)
        return made

    # ---------------------------------------------------------------- making and leaving
    @staticmethod
    def from_local(
        local_tensor,
        device_mesh=None,
        placements=None,
        *,
        run_check=False,
        shape=None,
        stride=None,
        grad_placements=None,
    ):
        """Makes a DTensor whose local part is ``local_tensor``. Gradients flow to it.

        placements: default Replicate on every mesh dimension. shape, stride: those of the global tensor, needed if local sizes
        differ. run_check: broadcast replicas from the first process. grad_placements: placements of the incoming gradient.
        """
        mesh = device_mesh if device_mesh is not None else _current_mesh()
        placements = checked_placements(placements, mesh, local_tensor.ndim)
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        elif run_check:
            _equalize(local_tensor, mesh, placements)
        if shape is None:
            shape, stride = compute_global_tensor_info(local_tensor, mesh, placements)
        if is_grad_enabled() and local_tensor.requires_grad:
            arrives = gradient_placements(placements)
            asked = (
                arrives
                if grad_placements is None
                else checked_placements(grad_placements, mesh, local_tensor.ndim)
            )
            own = local_tensor.view_as(local_tensor)
            local_tensor = with_gradient_from(own, mesh, tuple(shape), arrives, gradient_placements(asked))
        else:
            local_tensor = local_tensor.view_as(local_tensor)
        return wrap(local_tensor, mesh, placements, shape, stride)

    def to_local(self, *, grad_placements=None):
        """The local tensor. grad_placements: the placements of its gradient (default: those of this tensor)."""
        local = self._local_tensor
        if not (is_grad_enabled() and local.requires_grad):
            return local
        wanted, parts = gradient_placements(self.placements), average_parts(self.placements, self.device_mesh)
        arriving = wanted
        if grad_placements is not None:
            arriving = checked_placements(grad_placements, self.device_mesh, self.ndim)
        if arriving == wanted and parts == 1:
            return local.view_as(local)
        return with_gradient_from(local, self.device_mesh, self.shape, arriving, wanted, parts)

    def redistribute(
        self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None
    ):
        """The same tensor with other placements, by collectives. Backward redistributes the gradient in reverse."""
        if forward_dtype is not None or backward_dtype is not None:
            raise unsupported(
                "torch.distributed.tensor.DTensor.redistribute",
                "forward_dtype and backward_dtype are not supported",
            )
        mesh = self.device_mesh if device_mesh is None else device_mesh
        if mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placements = checked_placements(placements, mesh, self.ndim)
        for i, (old, new) in enumerate(zip(self.placements, placements, strict=True)):
            if new.is_partial() and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old} to {new}, redistributing to Partial is for internal use only! "
                    f"(mesh dimension {i})"
                )
        return placed(self, placements)

    def full_tensor(self, *, grad_placements=None):
        """The complete tensor on every process."""
        whole = placed(self, (Replicate(),) * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    @property
    def device_mesh(self):
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple:
        """The placements, one for each mesh dimension."""
        return self._spec.placements

    # ---------------------------------------------------------------- description
    device = _of_local("device")
    is_cuda, is_npu, is_cpu, is_meta = (
        _of_local(name) for name in ("is_cuda", "is_npu", "is_cpu", "is_meta")
    )
    grad_fn, is_leaf, _version, retains_grad = (
        _of_local(n) for n in ("grad_fn", "is_leaf", "_version", "retains_grad")
    )

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records operations on this tensor."""
        return self._local_tensor.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._local_tensor.requires_grad = value

    def get_device(self) -> int:
        """The device index of the local tensor."""
        return self._local_tensor.get_device()

    def data_ptr(self) -> int:
        """0, because the global tensor has no memory."""
        return 0

    def untyped_storage(self):
        """A storage of the global tensor's size, without memory."""
        return ops.empty_strided(
            tuple(self.shape), self.stride(), dtype=self.dtype, device="meta"
        ).untyped_storage()

    def __repr__(self, *, tensor_contents=None):
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"

    __str__ = __repr__

    def __format__(self, spec):
        return repr(self)

    # ---------------------------------------------------------------- gradients
    @property
    def grad(self):
        """The gradient, a DTensor with the placements of this tensor."""
        local = self._local_tensor.grad
        if local is None:
            return None
        kept = self.__dict__.get("_grad_kept")
        if kept is None or kept[0] is not local:
            kept = local, rewrapped(local, self, gradient_placements(self.placements))
            self.__dict__["_grad_kept"] = kept
        return kept[1]

    @grad.setter
    def grad(self, value):
        if value is None:
            self._local_tensor.grad = None
            self.__dict__.pop("_grad_kept", None)
            return
        if not isinstance(value, DTensor):
            raise TypeError(
                f"assigned grad expected to be a DTensor or None but got grad of type {type(value).__name__}"
            )
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        value = placed(value, gradient_placements(self.placements))
        self._local_tensor.grad = value._local_tensor
        self.__dict__["_grad_kept"] = self._local_tensor.grad, value

    @grad.deleter
    def grad(self):
        self.grad = None

    _grad = grad

    def requires_grad_(self, requires_grad=True):
        """Sets whether autograd records operations on this tensor."""
        self._local_tensor.requires_grad_(requires_grad)
        return self

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Computes the gradients of the graph's leaves."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def _hook(self, hook):
        """Converts a hook on DTensors to a hook on local tensors."""
        wanted = gradient_placements(self.placements)

        def on_local(grad):
            made = hook(rewrapped(grad, self, wanted))
            return placed(made, wanted)._local_tensor if isinstance(made, DTensor) else made

        return on_local

    def register_hook(self, hook):
        """Registers hook(gradient), which returns None or a new gradient."""
        return self._local_tensor.register_hook(self._hook(hook))

    def register_post_accumulate_grad_hook(self, hook):
        """Registers hook(self), which is called when `.grad` is complete."""
        return self._local_tensor.register_post_accumulate_grad_hook(lambda local: hook(self))

    def retain_grad(self) -> None:
        """Keeps `.grad` of this tensor although it is not a leaf."""
        self._local_tensor.retain_grad()

    def detach(self):
        """A DTensor with the same local tensor and without autograd history."""
        return rewrapped(self._local_tensor.detach(), self, self.placements)

    def detach_(self):
        """Removes the autograd history in place."""
        self._local_tensor.detach_()
        return self

    @property
    def data(self):
        """A DTensor with the same local tensor, without autograd history and with a separate version counter."""
        return rewrapped(self._local_tensor.data, self, self.placements)

    @data.setter
    def data(self, other):
        if not isinstance(other, DTensor):
            raise TypeError(f"Variable data has to be a DTensor, but got {type(other).__name__}")
        self._local_tensor.data = other._local_tensor
        if other.shape != self.shape or other.dtype is not self.dtype:
            meta = other._spec.tensor_meta
            # not a _shell, because MindSpore compares the new shape with the size of the memory
            made = ops.empty_strided(tuple(meta.shape), tuple(meta.stride), dtype=meta.dtype, device="meta")
            _C.set_data(self, made)
        self.__dict__["_spec"] = other._spec

    # ---------------------------------------------------------------- conversion
    def to(self, *args, **kwargs):
        """Converts the dtype or moves the local tensors to another device."""
        device, dtype, copy_, memory_format, non_blocking = parse_to(*args, **kwargs)
        out = self
        if dtype is not None and dtype is not self.dtype:
            out = ops._to_dtype(out, dtype)
        if device is not None:
            local = out._local_tensor.to(device, non_blocking=non_blocking)
            out = out if local is out._local_tensor else rewrapped(local, out, out.placements)
        return ops.clone(out) if copy_ and out is self else out

    def cpu(self, memory_format=None):
        """Moves the local tensors to host memory."""
        return self.to("cpu")

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        """A DTensor with the local tensor on the accelerator."""
        return self.to("cuda" if device is None else device)

    def npu(self, device=None, non_blocking=False):
        """A DTensor with the local tensor on the accelerator."""
        return self.to("npu" if device is None else device)

    def item(self):
        """The value of a tensor with one element, as a Python number."""
        return self.full_tensor().item()

    def tolist(self):
        """The values of the complete tensor as nested lists."""
        return self.full_tensor().tolist()

    def __bool__(self):
        return bool(self.full_tensor())

    def __int__(self):
        return int(self.full_tensor())

    def __float__(self):
        return float(self.full_tensor())

    def __complex__(self):
        return complex(self.full_tensor())

    def __index__(self):
        return self.full_tensor().__index__()

    # ---------------------------------------------------------------- copies
    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        made = rewrapped(copy.deepcopy(self._local_tensor, memo), self, self.placements)
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            if key not in ("_local_tensor", "_spec", "_grad_kept"):
                made.__dict__[key] = copy.deepcopy(value, memo)
        return made

    def __reduce_ex__(self, protocol):
        with no_grad():
            local = self._local_tensor.detach()
        # save only this part of a larger storage
        local = (
            local
            if local.is_contiguous() and local.untyped_storage().nbytes() == local.nbytes
            else local.clone()
        )
        meta = self._spec.tensor_meta
        state = (
            local,
            self.device_mesh,
            self.placements,
            tuple(meta.shape),
            tuple(meta.stride),
            self.requires_grad,
        )
        return _rebuild, (*state, getattr(self, "_is_param", False))

    # ---------------------------------------------------------------- checkpoints
    def __create_write_items__(self, fqn: str, object):
        # here: the package of checkpoints imports this one
        from ..checkpoint.planner_helpers import _create_write_items_for_dtensor

        return _create_write_items_for_dtensor(fqn, object)

    def __create_chunk_list__(self):
        # here: the package of checkpoints imports this one
        from ..checkpoint.planner_helpers import _create_chunk_from_dtensor

        return [_create_chunk_from_dtensor(self)]

    def __get_tensor_shard__(self, index):
        return self.to_local()


for _name in ("numpy", "set_", "resize_", "storage", "apply_", "map_", "__array__"):
    setattr(DTensor, _name, unsupported_function(f"torch.distributed.tensor.DTensor.{_name}"))


_nowhere = ops.empty(1, device="meta")


def _shell(meta: TensorMeta, cls):
    """A tensor of the given shape at an address without memory."""
    made = _C.raw_view(_nowhere, tuple(meta.shape), tuple(meta.stride), 0, meta.dtype)
    made.__class__ = cls
    return made


def wrap(local, mesh, placements, shape, stride) -> DTensor:
    """Makes a DTensor from a local tensor, which keeps its autograd history."""
    return DTensor(
        local, DTensorSpec(mesh, tuple(placements), TensorMeta(tuple(shape), tuple(stride), local.dtype))
    )


def rewrapped(local, like: DTensor, placements) -> DTensor:
    """Makes a DTensor of the shape of ``like`` from a local tensor."""
    return wrap(local, like._spec.mesh, placements, like.shape, like.stride())


def placed(x: DTensor, placements) -> DTensor:
    """``x`` redistributed to other placements, which may include Partial."""
    placements = tuple(placements)
    if placements == x.placements:
        return x
    local = moved(x._local_tensor, x._spec.mesh, tuple(x.shape), x.placements, placements)
    return rewrapped(local, x, placements)


def _rebuild(local, mesh, placements, shape, stride, requires_grad, is_param):
    made = wrap(local, mesh, placements, shape, stride).requires_grad_(requires_grad)
    if is_param:
        made._is_param = True
    return made


def _current_mesh():
    return _mesh_resources.get_current_mesh()


def _equalize(local, mesh, placements) -> None:
    """Broadcasts the first process's values along the mesh dimensions on which the tensor is replicated."""
    with no_grad():
        for mesh_dim, placement in enumerate(placements):
            if placement.is_replicate():
                collectives.broadcast(local.detach(), group=mesh.get_group(mesh_dim), group_src=0)


# ---- backward passes, which run on the graph of the local tensors
def _local_of(x):
    return x._local_tensor if isinstance(x, DTensor) else x


def _local_gradient(output, grad):
    if not isinstance(output, DTensor):
        return _local_of(grad)
    if grad is None:
        return None
    if not isinstance(grad, DTensor):
        raise RuntimeError("the gradient of a DTensor must be a DTensor")
    return placed(grad, gradient_placements(output.placements))._local_tensor


def local_pass(tensors, grads, inputs):
    """Converts outputs, gradients and inputs of a backward pass to local tensors.

    Also returns a function that converts the results to DTensors.
    """
    made = []
    for x, g in zip(tensors, grads, strict=True):
        if isinstance(x, DTensor) and g is None and x.requires_grad:
            if x.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = ops.ones_like(x._local_tensor.detach())
        else:
            g = _local_gradient(x, g)
        shared = average_parts(x.placements, x.device_mesh) if isinstance(x, DTensor) and g is not None else 1
        made.append(g if shared == 1 else g / shared)

    def results(found):
        return tuple(
            rewrapped(g, x, gradient_placements(x.placements))
            if isinstance(x, DTensor) and g is not None
            else g
            for x, g in zip(inputs, found, strict=True)
        )

    return [_local_of(x) for x in tensors], made, [_local_of(x) for x in inputs], results
