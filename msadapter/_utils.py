"""Functions under the name torch._utils, which PyTorch's files and other libraries call.

They rebuild tensors from files, and convert lists of tensors to flat buffers.
"""

import sys
import threading
import traceback
from inspect import getattr_static

from . import ops
from ._errors import unsupported
from ._host import accelerator, extensions
from ._process import get_device_module
from ._values.base import _C
from ._values.device import device as _device
from ._values.dtype import int32, int64
from ._values.layout import layout as _layout
from .tensor import Tensor, TypedStorage, UntypedStorage
from .tensor._construct import from_numpy
from .tensor._pickling import rebuild_wrapper


# -- rebuilding: what the pickles call ---------------------------------------------------------------------
def _from_storage(storage, dtype, offset, size, stride):
    if not isinstance(storage, (TypedStorage, UntypedStorage)):
        raise TypeError(f"a tensor is rebuilt over a storage, not over {type(storage).__name__}")
    for numbers in (size, stride):  # not over a tensor, whose elements may be many
        if not isinstance(numbers, (tuple, list)):
            raise TypeError(f"sizes and strides are tuples, not {type(numbers).__name__}")
    untyped = getattr(storage, "_untyped_storage", storage)
    untyped._check_byte_order(dtype)
    return Tensor._from_storage(untyped, dtype, offset, size, stride)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a typed storage. RuntimeError if it leaves the storage."""
    return _from_storage(storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """Return a tensor on a typed storage, with its requires_grad and hooks.

    The metadata may say that values are to be conjugated or negated.
    """
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finish(tensor, requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    """Return a tensor of `dtype` on an untyped storage, for dtypes without a storage class."""
    tensor = _from_storage(storage, dtype, storage_offset, size, stride)
    return _finish(tensor, requires_grad, backward_hooks, metadata)


def _finish(tensor, requires_grad, backward_hooks, metadata):
    # our tensors hold no lazy bits: the values are resolved here
    if metadata and metadata.get("conj"):
        tensor = _resolved(tensor, lambda x: x.conj())
    if metadata and metadata.get("neg"):
        tensor = _resolved(tensor, lambda x: x.neg())
    if requires_grad:
        tensor.requires_grad = True
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


def _resolved(tensor, operator):
    """`operator` of every element. An expanded view stays expanded, because a file of a few bytes may contain a huge one."""
    untyped = tensor.untyped_storage()
    if tensor.nbytes <= untyped.nbytes():
        return operator(tensor)
    count = untyped.nbytes() // tensor.dtype.itemsize
    whole = operator(tensor._from_storage(untyped, tensor.dtype, 0, (count,), (1,)))
    return whole.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """Return a Parameter with `data`."""
    parameter = extensions.parameter_class.value(data, requires_grad)
    if backward_hooks:
        parameter._backward_hooks = backward_hooks
    return parameter


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """Return a Parameter with Python attributes of its own."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    """Return a tensor of a subclass, or a tensor with Python attributes."""
    result = func(*args)
    # a sparse tensor has a class of its own here, where PyTorch's is Tensor
    if type(result) is not new_type and not (new_type is Tensor and result.layout._name != "strided"):
        result = result.as_subclass(new_type)
    if getattr(type(result), "__setstate__", None) is not Tensor.__setstate__:
        result.__setstate__(state)
        return result
    return _set_obj_state(result, state)


def _set_obj_state(obj, state):
    """Set attributes from `state`, which is a dict or a pair (dict, slots)."""
    plain, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(plain or {}), **(slots or {})}.items():
        setattr(obj, name, value)
    return obj


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    """Return a tensor that was saved as a numpy array, in older XLA and NPU files."""
    return _rebuild_device_tensor_from_cpu_tensor(from_numpy(data), dtype, device, requires_grad)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    """Return an accelerator's tensor that was saved as a CPU tensor, in NPU files of torch_npu."""
    _require_memory(data, "the values of a tensor on another device")
    tensor = data.to(dtype=dtype, device=device)
    tensor.requires_grad = requires_grad
    return tensor


def _require_memory(tensor, what: str) -> None:
    """RuntimeError unless every element of `tensor` has its own memory, so that work on it is limited by the size of the file."""
    if not isinstance(tensor, Tensor) or tensor.layout._name != "strided":
        raise TypeError(f"{what} are not a dense tensor")
    if tensor.device.type == "meta" or tensor.nbytes > tensor.untyped_storage().nbytes():
        raise RuntimeError(f"{what} have sizes {list(tensor.shape)}, but no storage for so many elements")


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor without data."""
    _C.bytes_reached(size, stride, 0, dtype)  # before address space is taken for it
    return ops.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """Return a tensor without memory, of a class that defines in `__torch_dispatch__` what operators do."""
    none = Tensor.__dict__["__torch_dispatch__"]
    if not (isinstance(cls, type) and issubclass(cls, Tensor)) or getattr_static(cls, none.__name__) is none:
        raise TypeError(f"{cls} is no class of tensors that has __torch_dispatch__")
    _C.bytes_reached(size, stride, storage_offset, dtype)  # before address space is taken for it
    return rebuild_wrapper(cls, dtype, size, stride, storage_offset, layout, device, requires_grad, {})


def _unsupported(what):
    def rebuild(*args):
        raise unsupported("torch.load", f"{what} are not supported")

    return rebuild


_rebuild_qtensor = _unsupported("quantized tensors")


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """Return a nested tensor with the strided layout.

    Args:
        buffer: the numbers of all parts.
        sizes, strides: int64 (B, dims of a part). storage_offsets: int64 (B).
    """
    from .nested import _nested_view_from_buffer  # here: few programs have nested tensors

    for part in (buffer, sizes, strides, storage_offsets):
        _require_memory(part, "the parts of a nested tensor")
    return _nested_view_from_buffer(buffer, sizes, strides, storage_offsets)


# sparse tensors in the file that this thread reads, whose indices are not checked yet
_unchecked = threading.local()


def _rebuild_sparse_tensor(layout, data):
    """Return a sparse tensor, given the parts (indices, values, size, is_coalesced) of a coordinate tensor or
    (compressed indices, plain indices, values, size) of a compressed one.

    In a legacy file the numbers follow after the pickle. `_check_sparse` therefore checks the indices when
    the whole file has been read.
    """
    # here: few programs have sparse tensors, and their package is large
    from .sparse import sparse_compressed_tensor, sparse_coo_tensor

    if not isinstance(layout, _layout) or type(data) is not tuple:
        raise TypeError("a sparse tensor is rebuilt from a layout and a tuple")
    for indices in data[: 1 if layout._name == "sparse_coo" else 2]:
        _require_memory(indices, "the indices of a sparse tensor")
        if indices.dtype not in (int64, int32):
            raise RuntimeError(f"the indices of a sparse tensor are {indices.dtype}")
    if layout._name == "sparse_coo":
        indices, values, size, *coalesced = data
        made = sparse_coo_tensor(
            indices, values, size, check_invariants=False, is_coalesced=bool(coalesced and coalesced[0])
        )
    else:
        made = sparse_compressed_tensor(*data, layout=layout, check_invariants=False)
    _unchecked.__dict__.setdefault("tensors", []).append(made)
    return made


def _check_sparse() -> None:
    """Raise RuntimeError if a sparse tensor that was just read has indices outside of its size."""
    for made in _unchecked.__dict__.pop("tensors", ()):
        made._check()


def _forget_sparse() -> None:
    _unchecked.__dict__.pop("tensors", None)


# -- flat buffers ------------------------------------------------------------------------------------------
def _flatten_dense_tensors(tensors):
    """Return one 1-dimensional tensor with the elements of all tensors, one tensor after the other."""
    tensors = list(tensors)
    if len(tensors) == 1:
        return tensors[0].contiguous().view(-1).clone()
    return ops.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Return views of `flat` with the shapes of `tensors`."""
    outputs, offset = [], 0
    for tensor in tensors:
        count = tensor.numel()
        outputs.append(flat.narrow(0, offset, count).view_as(tensor))
        offset += count
    return tuple(outputs)


def _take_tensors(tensors, size_limit):
    """Yield groups of tensors with the same type and at most `size_limit` bytes.

    A larger tensor forms a group of its own.
    """
    groups = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        group, total = groups.get(tensor.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[tensor.type()] = (group + [tensor], total + size)
    for group, _ in groups.values():
        if group:
            yield group


def _reorder_tensors_as(tensors, ordered_tensors):
    """Return `tensors`, which are grouped by type, in the order in which the types occur in
    `ordered_tensors`.
    """
    waiting = {}
    for tensor in tensors:
        waiting.setdefault(tensor.type(), []).append(tensor)
    queues = {kind: iter(group) for kind, group in waiting.items()}
    return tuple(next(queues[tensor.type()]) for tensor in ordered_tensors)


# -- devices and workers -----------------------------------------------------------------------------------
def _get_device_index(device, optional=False, allow_cpu=False) -> int:
    """Return the index of an accelerator device, given as int, str or torch.device.

    None gives the current device if ``optional`` is set.
    """
    if isinstance(device, str):
        device = _device(device)
    index = None
    if isinstance(device, _device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if isinstance(device, int):
        index = device
    if index is None:
        if not optional:
            raise ValueError(
                f"Expected a torch.device with a specified index or an integer, but got:{device}"
            )
        return accelerator.current_device()
    return index


def _get_current_device_index() -> int:
    return accelerator.current_device() if accelerator.is_available() else -1


def _get_all_device_indices() -> list:
    return list(range(accelerator.device_count()))


def _get_available_device_type():
    return "cuda" if accelerator.is_available() else None


def _element_size(dtype) -> int:
    return dtype.itemsize


class KeyErrorMessage(str):
    """The text of a KeyError. It keeps its newlines when it is printed."""

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception of a worker process, with its traceback as text, that another process raises again."""

    def __init__(self, exc_info=None, where="in background"):
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self):
        """Raise the exception.

        If its class does not take a single message, raise RuntimeError with the text.
        """
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            exception = self.exc_type(text)
        except Exception:  # the class takes other arguments, but the text must reach the user
            raise RuntimeError(text) from None
        raise exception


def classproperty(func):
    """Return a read-only property of the class itself."""

    class Descriptor:
        def __get__(self, instance, owner=None):
            return func(owner or type(instance))

    return Descriptor()


def is_compiling() -> bool:
    """Return False, because nothing is traced."""
    return False


def _get_device_module(device_type: str):
    """Return the module torch.cuda, torch.cpu ... of a kind of device.

    Raises:
        RuntimeError: torch has no such module.
    """
    try:
        return get_device_module(device_type)
    except RuntimeError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        ) from None
