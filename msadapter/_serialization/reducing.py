"""How a file stores a tensor: as the call of a function of torch._utils that rebuilds it."""

from collections import OrderedDict

from .._host import extensions
from .._values.layout import LAYOUTS
from ..tensor import Tensor
from ..tensor._pickling import is_wrapper, user_attributes, wrapper_facts
from .names import TorchGlobal, has_typed_storage
from .storage_ref import StorageRef, location_tag

_STRIDED = LAYOUTS["strided"]


def reduce_tensor(tensor):
    """Return the (function, arguments) pair with which a file stores a tensor, a Parameter or a subclass."""
    state = user_attributes(tensor)
    hooks = OrderedDict()
    if is_wrapper(tensor):
        rebuild = TorchGlobal("torch._utils", "_rebuild_wrapper_subclass")
        args = rebuild, type(tensor), wrapper_facts(tensor), state
        return TorchGlobal("torch._tensor", "_rebuild_from_type_v2"), args
    if isinstance(tensor, extensions.parameter_class.value):
        inner = tensor.detach()
        if type(inner) is not Tensor and inner.layout == _STRIDED:
            inner = inner.as_subclass(Tensor)
        args = (inner, tensor.requires_grad, hooks)
        if state:
            return TorchGlobal("torch._utils", "_rebuild_parameter_with_state"), (*args, state)
        return TorchGlobal("torch._utils", "_rebuild_parameter"), args
    if tensor.is_nested:
        return _reduce_nested(tensor, state)
    func, args = _reduce_plain(tensor)
    if (type(tensor) is Tensor or tensor.layout != _STRIDED) and not state:
        return func, args
    return TorchGlobal("torch._tensor", "_rebuild_from_type_v2"), (func, type(tensor), args, state)


def _reduce_nested(tensor, state: dict):
    if tensor.layout == _STRIDED:
        return TorchGlobal("torch._utils", "_rebuild_nested_tensor"), tensor._file_parts()
    rebuild = TorchGlobal("torch.nested._internal.nested_tensor", "_rebuild_njt")
    args = rebuild, type(tensor), (tensor._file_parts(),), state
    return TorchGlobal("torch._tensor", "_rebuild_from_type_v2"), args


def _reduce_plain(tensor):
    requires_grad = bool(tensor.requires_grad)
    if tensor.device.type == "meta":
        args = (tensor.dtype, tuple(tensor.size()), tuple(tensor.stride()), requires_grad)
        return TorchGlobal("torch._utils", "_rebuild_meta_tensor_no_storage"), args
    if "sparse" in str(tensor.layout):
        data = (*(part.detach() for _, part in tensor._parts()), tensor.size())
        if tensor.is_sparse:
            data += (tensor.is_coalesced(),)
        return TorchGlobal("torch._utils", "_rebuild_sparse_tensor"), (tensor.layout, data)
    metadata = {
        name: True for name, bit in (("conj", "is_conj"), ("neg", "is_neg")) if getattr(tensor, bit)()
    }
    storage = StorageRef(tensor.untyped_storage(), tensor.dtype, location_tag(tensor.device))
    args = (
        storage,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tuple(tensor.stride()),
        requires_grad,
        OrderedDict(),
    )
    name = "_rebuild_tensor_v2"
    if not has_typed_storage(tensor.dtype):
        name, args = "_rebuild_tensor_v3", (*args, tensor.dtype)
    return TorchGlobal("torch._utils", name), args + ((metadata,) if metadata else ())
