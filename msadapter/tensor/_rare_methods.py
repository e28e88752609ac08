"""Methods of Tensor that few programs call: older names, and methods for other layouts."""

from __future__ import annotations

import itertools
import numbers
import warnings

from .._errors import unsupported
from .._host import extensions
from .._values import dtype as dtypes
from .._values.base import Base
from .._values.layout import FORMATS
from .typed_storage import storage_class

_ABSENT = (
    "Could not run 'aten::{}' with arguments from the '{}' backend. This could be because the operator doesn't exist for "
    "this backend."
)


def layout_title(self) -> str:
    """Return the layout as errors name it: Strided, Sparse or SparseCsr."""
    return self.layout._name.removesuffix("_coo").title().replace("_", "")


def _backend(self) -> str:
    kind = "Meta" if self.is_meta else "CPU" if self.is_cpu else "CUDA"
    if self.is_mkldnn:
        return f"Mkldnn{kind}"
    return (
        kind
        if self.layout._name == "strided"
        else f"Sparse{'Csr' if 'csr' in self.layout._name else ''}{kind}"
    )


def not_for(self, name: str) -> NotImplementedError:
    """Return the error for an operator that does not exist for this kind of tensor."""
    return NotImplementedError(_ABSENT.format(name, _backend(self)))


def _absent(name: str):
    def method(self, *args, **kwargs):
        own = getattr(type(self), name)
        if own is not method:  # Tensor.values(x) of a sparse x calls its own method
            return own(self, *args, **kwargs)
        raise not_for(self, name)

    method.__name__ = name
    method.__doc__ = "NotImplementedError: of tensors of another layout alone."
    return method


def _other_layout(name: str, layout: str):
    def method(self, *args, **kwargs):
        own = getattr(type(self), name)
        if own is not method:
            return own(self, *args, **kwargs)
        raise RuntimeError(f"{name} expected {layout} layout but got {layout_title(self)}")

    method.__name__ = name
    method.__doc__ = "RuntimeError: of sparse tensors alone."
    return method


def chalf(self, *, memory_format=None):
    """Return the tensor as complex32."""
    return self.to(dtypes.STORED["complex32"], memory_format=memory_format or FORMATS["preserve_format"])


def const_data_ptr(self) -> int:
    """Return the address of the first element, for reading only."""
    return self.data_ptr()


def dim_order(self, ambiguity_check: bool | list = False) -> tuple[int, ...]:
    """Return the dims in the order of their strides, the largest first.

    ambiguity_check: whether strides that allow several orders are an error; or memory formats, of which such a tensor
    must have exactly one.

    Raises:
        RuntimeError: the check fails.
        TypeError: ``ambiguity_check`` is something else.
    """
    if self.is_sparse:
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )
    stride, shape = self.stride(), self.shape
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(
        any(f is known for known in FORMATS.values()) for f in formats
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    several = 1 in shape or any(a == b for a, b in itertools.pairwise(stride))
    if (
        ambiguity_check is not False
        and several
        and sum(self.is_contiguous(memory_format=f) for f in formats) != 1
    ):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(self.ndim), key=lambda d: (-stride[d], shape[d] == 1, d)))


def dequantize(self):
    """Return the tensor in float32. Quantized tensors are not supported, so nothing needs a conversion."""
    return self.to(dtypes.ALL["float32"])


def index(self, positions, dims):
    """Index the dims ``positions`` with ``dims``, which are numbers, slices or tensors."""
    found = [slice(None)] * self.ndim
    for place, what in zip(positions, dims, strict=True):
        found[place] = what
    return self[tuple(found)]


def is_distributed(self) -> bool:
    return False


def _by_element(name: str, self, others: dict, function):
    """Replace every element in place by the function of it and of the elements of other tensors at its position."""
    for argument, other in others.items():
        if not isinstance(other, Base):
            place = list(others).index(argument) + 1
            raise TypeError(
                f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(other).__name__}"
            )
    if any(v.requires_grad for v in (self, *others.values())):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )
    for argument, other in others.items():
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
    columns = (v.expand_as(self).flatten().tolist() for v in (self, *others.values()))
    results = [function(*row) for row in zip(*columns, strict=True)]
    for value in results:
        if not isinstance(value, numbers.Complex if self.is_complex() else numbers.Real):
            raise TypeError(f"must be real number, not {type(value).__name__}")
    if not self.is_floating_point() and not self.is_complex():
        results = [int(value) for value in results]
    return self.copy_(self.new_tensor(results).reshape(self.shape))


def apply_(self, function):
    """Replace every element x by ``function(x)``, in place."""
    return _by_element("apply_", self, {}, function)


def map_(self, other, function):
    """Replace every element by the function of it and of the element of ``other``, in place."""
    return _by_element("map_", self, {"other": other}, function)


def map2_(self, x, y, function):
    """Replace every element x of the tensor by ``function(x, element of x, element of y)``, in place."""
    return _by_element("map2_", self, {"x": x, "y": y}, function)


def module_load(self, other, assign=False):
    """Return what Module.load_state_dict stores: ``other`` if ``assign`` is set, else self with its values."""
    return other.detach() if assign else self.copy_(other).detach()


def resize(self, *sizes):
    """Reshape to as many elements. This is a deprecated name of reshape and gives a warning."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    wanted = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    count = 1
    for n in wanted:
        count *= n
    if count != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, wanted))} ({count} elements in total), but the given tensor has a size "
            f"of {'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only change the shape of a "
            "given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(wanted)


def resize_as(self, tensor):
    """Reshape to the shape of ``tensor``. Deprecated."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return resize(self, tuple(tensor.shape))


def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    """Return the tensor with the sizes and strides of ``src`` of which this tensor is a slice.

    It shares memory with this tensor.

    Raises:
        RuntimeError: the memory is too small.
    """
    return self.as_strided(src.shape, src.stride(), src.storage_offset())


def to_dense(self, dtype=None, *, masked_grad=None):
    """Return the tensor itself, because it is dense already."""
    return self if dtype is None else self.to(dtype)


def storage_type(self):
    """Return the storage class of this dtype, such as torch.FloatStorage."""
    return storage_class(self.dtype)


def _grad_dtype(self):
    return self.__dict__.get("_grad_dtype", self.dtype)


def _set_grad_dtype(self, dtype) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if dtype not in (None, self.dtype):
        raise unsupported("torch.Tensor.grad_dtype", "gradients of another dtype are not supported")
    self.__dict__["_grad_dtype"] = dtype


_COO, _ROWS, _COLUMNS = (
    "sparse coordinate tensor",
    "sparse row compressed tensor",
    "sparse column compressed tensor",
)
METHODS = {
    f.__name__: f
    for f in (
        chalf,
        const_data_ptr,
        dim_order,
        dequantize,
        index,
        is_distributed,
        apply_,
        map_,
        map2_,
        module_load,
        resize,
        resize_as,
        slice_inverse,
        storage_type,
        to_dense,
        *map(
            _absent,
            (
                "_nnz",
                "_indices",
                "_values",
                "_dimI",
                "_dimV",
                "int_repr",
                "qscheme",
                "q_scale",
                "q_zero_point",
                "sparse_resize_",
                "sparse_resize_and_clear_",
            ),
        ),
        *map(
            _absent,
            ("q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "_coalesced_"),
        ),
        *(_other_layout(name, _COO) for name in ("indices", "coalesce", "is_coalesced")),
        *(_other_layout(name, _ROWS) for name in ("crow_indices", "col_indices")),
        *(_other_layout(name, _COLUMNS) for name in ("ccol_indices", "row_indices")),
        _other_layout("values", "sparse tensor"),
    )
}


def _to_layout(name: str):
    def method(self, *args, **kwargs):
        return extensions.sparse_conversion.value[name](self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = "Of torch.sparse: the elements that are not zero, or those at the places of a mask."
    return method


for _name in (
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "to_sparse_csc",
    "to_sparse_bsr",
    "to_sparse_bsc",
    "sparse_mask",
):
    METHODS[_name] = _to_layout(_name)
METHODS["to_mkldnn"] = _to_layout("to_mkldnn")
METHODS["to_mkldnn"].__doc__ = "A copy of a dense tensor in the layout torch._mkldnn."
METHODS["grad_dtype"] = property(_grad_dtype, _set_grad_dtype)
METHODS["sparse_dim"] = lambda self: 0
METHODS["dense_dim"] = lambda self: self.ndim
