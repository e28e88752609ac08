"""msadapter: the torch namespace, computed by MindSpore.

Importing this package changes nothing else. ``msadapter.install()``, ``python -m msadapter`` or ``source
build/env.sh`` make ``import torch`` return this package.
"""

from __future__ import annotations

import builtins as _builtins
import importlib as _importlib
import math as _math
import sys as _sys

from ._host import commands as _commands

_commands.run_without_kernels()  # python -m msadapter doctor, and others: they end here, before anything can go wrong
_commands.enable_simulated_npu()  # if the run asks for it; it has to be there before MindSpore is loaded

from ._host.native import load as _load  # noqa: E402
from .torch_version import __version__  # noqa: E402, F401

# torch has modules called random, types and multiprocessing. In this folder they would hide the standard
# library's modules from a Python that is started here, so they are in a folder of their own.
__path__.append(__path__[0] + "/_standard_names")

_C = _load()
_C.__path__ = [__path__[0] + "/_native_names"]  # torch._C._distributed_c10d


def _native_option(name: str):
    """Return an attribute of torch._C that a Python module sets when it is imported."""
    if name in ("DisableTorchFunction", "DisableTorchFunctionSubclass"):
        return getattr(_importlib.import_module("msadapter.overrides"), name)
    if name in _NATIVE_ELSEWHERE:
        return getattr(_importlib.import_module(f"msadapter.{_NATIVE_ELSEWHERE[name]}"), name)
    if name in ("TensorBase", "_TensorBase"):  # the class that torch.Tensor extends
        return Tensor.__base__
    if name == "_TensorMeta":
        return type(Tensor)
    if name == "StorageBase":
        return UntypedStorage
    if name in ("Size", "Stream", "Event", "device", "dtype", "layout", "memory_format"):
        return getattr(_importlib.import_module("msadapter"), name)
    if name.startswith(("_jit_", "_debug_set")):
        # Before Python 3.11 the import alone does not load a waiting module. Its first use does.
        vars(_importlib.import_module("msadapter.jit"))
        if name in vars(_C):
            return vars(_C)[name]
    # torch imports these modules itself, so programs use them without an import
    if name in (
        "_distributed_autograd",
        "_distributed_c10d",
        "_distributed_rpc",
        "_autograd",
        "_dynamo",
        "_functorch",
        "_nn",
        "_linalg",
        "_fft",
        "_special",
    ):
        return _importlib.import_module(f"{_C.__name__}.{name}")
    if name == "_functions":
        return _importlib.import_module("msadapter.autograd._functions")
    if not name.startswith("__"):
        functions = _importlib.import_module("msadapter._native_names._root").FUNCTIONS
        if name in functions:
            return functions[name]
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


# Names of torch._C, and where msadapter has them.
_NATIVE_ELSEWHERE = {
    "Future": "futures",
    "Generator": "ops._generator",
    "default_generator": "random",
    "Graph": "_symbolic",
    "Value": "_symbolic",
    "ScriptModule": "jit",
    "ScriptFunction": "jit",
    "DispatchKey": "_native_names._dispatch",
    "DispatchKeySet": "_native_names._dispatch",
    "PyTorchFileReader": "_native_names._files",
    "PyTorchFileWriter": "_native_names._files",
    "_DisableTorchDispatch": "utils._python_dispatch",
    "_disabled_torch_dispatch_impl": "utils._python_dispatch",
}
_C.__getattr__ = _native_option

from . import ops as _ops_table  # noqa: E402
from . import tensor as _tensor_package  # noqa: E402
from ._host import extensions as _extensions  # noqa: E402
from ._host.warn import warn_once as _warn_once  # noqa: E402
from .tensor import _printing, _tensor  # noqa: E402

_tensor.install()

from ._values.determinism import (  # noqa: E402, F401
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    use_deterministic_algorithms,
)
from ._values.device import default_device as get_default_device  # noqa: E402, F401
from ._values.device import set_default_device  # noqa: E402, F401
from ._values.dtype import ALL as _DTYPES  # noqa: E402
from ._values.dtype import exports as _dtype_exports  # noqa: E402
from ._values.layout import FORMATS as _FORMATS  # noqa: E402
from ._values.layout import LAYOUTS as _LAYOUTS  # noqa: E402
from ._values.limits import finfo, iinfo  # noqa: E402, F401
from .tensor import Size, Tensor, TypedStorage, UntypedStorage, device, dtype, layout, memory_format  # noqa: E402, F401
from .tensor._arguments import dtype_from_type_name as _dtype_from_type_name  # noqa: E402
from .tensor._asarray import asarray  # noqa: E402, F401
from .tensor._construct import frombuffer  # noqa: E402, F401
from .tensor._dlpack import from_dlpack  # noqa: E402, F401
from .tensor._legacy import legacy_new as _legacy_new  # noqa: E402
from .tensor._tensor import as_tensor, from_numpy, tensor  # noqa: E402, F401
from .tensor.typed_storage import storage_class as _storage_class  # noqa: E402

globals().update(_dtype_exports())
globals().update(_LAYOUTS)
globals().update(_FORMATS)
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None

_TABLE = _ops_table.namespaces
for _name, _function in _TABLE["torch"].items():
    if _name not in ("tensor", "device", "dtype"):
        globals()[_name] = _function

from . import autograd  # noqa: E402
from .autograd import (  # noqa: E402, F401
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .tensor._printing import set_printoptions  # noqa: E402, F401

promote_types = _C.promote_types
get_num_threads, set_num_threads = _C.num_threads, _C.set_num_threads
get_default_dtype = _C.default_dtype


def set_default_dtype(d) -> None:
    """Set the dtype of new tensors for which no dtype is given. It must be a floating point dtype."""
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _C.set_default_dtype(d)


def set_default_tensor_type(t) -> None:
    """Set the default dtype by a type such as torch.DoubleTensor, or by its name. Deprecated."""
    _warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    chosen = _dtype_from_type_name(t) if isinstance(t, str) else getattr(t, "dtype", None)
    if chosen is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    set_default_dtype(chosen)


def is_tensor(obj) -> _builtins.bool:
    return isinstance(obj, Tensor)


def is_storage(obj) -> _builtins.bool:
    return isinstance(obj, (UntypedStorage, TypedStorage))


def is_floating_point(input) -> _builtins.bool:
    return input.dtype.is_floating_point


def is_complex(input) -> _builtins.bool:
    return input.dtype.is_complex


def is_conj(input) -> _builtins.bool:
    return False


def numel(input) -> _builtins.int:
    return input.numel()


def is_same_size(input, other) -> _builtins.bool:
    return input.is_same_size(other)


def can_cast(from_, to) -> _builtins.bool:
    return _castable(from_, to)


def result_type(tensor1, tensor2):
    """Return the dtype of the sum of two tensors or numbers, by the rules of type promotion."""
    for x, other in ((tensor1, tensor2), (tensor2, tensor1)):
        if (
            isinstance(x, Tensor)
            and x.dtype.name.startswith("float8")
            and isinstance(other, (_builtins.int, _builtins.float))
        ):
            return x.dtype
    return _ops_table.add(_probe(tensor1), _probe(tensor2)).dtype


def _probe(x):
    if isinstance(x, Tensor):
        return _C.raw_empty((0,) * _builtins.min(x.ndim, 1) if x.ndim else (), None, x.dtype)
    return x


def typename(obj) -> str:
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None)
    return name if module in (None, "", "builtins") else f"{module}.{name}"


def get_num_interop_threads() -> _builtins.int:
    return 1


def set_num_interop_threads(n: _builtins.int) -> None:
    if n <= 0:
        raise RuntimeError("Expected positive number of threads")


def set_flush_denormal(mode) -> _builtins.bool:
    return False


def _assert(condition, message):
    if type(condition) is not Tensor and overrides.has_torch_function((condition,)):
        return overrides.handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)
    return None


def _typed(name: str):
    """Return a legacy constructor such as torch.FloatTensor."""
    d = _dtype_from_type_name(name)

    class _Meta(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, Tensor) and instance.dtype is d and not _C.device_tag(instance)

        def __call__(cls, *args, **kwargs):
            return _legacy_new(args, kwargs, d)

        dtype = d

    return _Meta(name, (), {"__module__": "torch", "dtype": d})


for _d in _DTYPES.values():
    _short = _d.scalar_name
    if not _short.startswith(("UInt", "Complex")):  # PyTorch has no names for these
        globals()[_short + "Tensor"] = _typed(_short + "Tensor")


globals().update(
    {
        _kind.__name__: _kind
        for _kind in map(_storage_class, _DTYPES.values())
        if not _kind.__name__.startswith("UInt")
    }
)
Storage = globals()["FloatStorage"]

from . import (  # noqa: E402, F401
    nn,  # noqa: E402
    overrides,
    random,
)
from .ops._generator import Generator  # noqa: E402, F401
from .ops.internal import _castable  # noqa: E402
from .random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402, F401
from .serialization import load, save  # noqa: E402, F401

_C.bind_parameter(nn.Parameter)

from . import amp, cuda, distributed, library, npu, optim, utils, version  # noqa: E402, F401
from .amp import autocast  # noqa: E402, F401

globals().update(amp.TORCH_NAMES)


# Loaded at the first use: sparse tensors, torch.jit.trace, and modes and classes with a __torch_dispatch__.
_extensions.sparse_gradient.provide_from(f"{__name__}.sparse._embedding", "embedding")
_extensions.sparse_conversion.provide_from(f"{__name__}.sparse", "CONVERSIONS")
_extensions.refused_operand.provide_from(f"{__name__}.utils._python_dispatch", "refuse_mute")
_extensions.vmap.provide_from(f"{__name__}._vmap_internals", "_vmap")
_extensions.mutation_of_saved.provide_from(f"{__name__}.utils._mutation", "allow_mutation_on_saved_tensors")
_extensions.jit_tracer.provide_from(f"{__name__}.fx._jit_trace", "traced")


class _Namespace(type(_importlib)):
    """A module with the table's functions of one namespace, such as torch.linalg, torch.fft or torch.special."""


def _table_module(name: str):
    module = _Namespace(f"{__name__}.{name}")
    module.__dict__.update(_TABLE[name])
    for space, functions in _TABLE.items():
        if space.startswith(name + "."):
            child = _Namespace(f"{__name__}.{space}")
            child.__dict__.update(functions)
            setattr(module, space[len(name) + 1 :].split(".")[0], child)
            _sys.modules[f"{__name__}.{space}"] = child
    module.__path__ = []
    _sys.modules[f"{__name__}.{name}"] = module
    return module


linalg, fft, special = _table_module("linalg"), _table_module("fft"), _table_module("special")
signal = _table_module("signal")
return_types = _table_module("return_types")


_ELSEWHERE = {  # names whose module is imported when the name is first used
    "vmap": "func",
    "compile": "compiler",
    **dict.fromkeys(("is_anomaly_enabled", "is_anomaly_check_nan_enabled"), "autograd"),
    **dict.fromkeys(("Event", "Stream"), "cuda"),
    "Future": "futures",
    **dict.fromkeys(("get_float32_matmul_precision", "set_float32_matmul_precision"), "backends._fp32"),
    **dict.fromkeys(("AcceleratorError", "FatalError", "OutOfMemoryError"), "_errors"),
    "npu_apply_fused_adamw_v2": "torch_npu",
    **dict.fromkeys(("DisableTorchFunction", "DisableTorchFunctionSubclass"), "overrides"),
    **dict.fromkeys(
        (
            "smm",
            "_validate_sparse_bsc_tensor_args",
            "_validate_sparse_bsr_tensor_args",
            "_validate_sparse_compressed_tensor_args",
            "_validate_sparse_coo_tensor_args",
            "_validate_sparse_csc_tensor_args",
            "_validate_sparse_csr_tensor_args",
            "sparse_bsc_tensor",
            "sparse_bsr_tensor",
            "sparse_compressed_tensor",
            "sparse_coo_tensor",
            "sparse_csc_tensor",
            "sparse_csr_tensor",
        ),
        "sparse",
    ),
    "_nested_tensor_from_mask": "nested",
    "_nested_view_from_buffer": "nested",
    **dict.fromkeys(("_assert_async", "from_file"), "_aten.only"),
    **dict.fromkeys(
        (
            "_check",
            "_debug_has_internal_overlap",
            "_check_index",
            "_check_is_size",
            "_check_not_implemented",
            "_check_tensor_all",
            "_check_tensor_all_with",
            "_check_type",
            "_check_value",
            "_check_with",
        ),
        "_checks",
    ),
    "GradScaler": "amp",
    **dict.fromkeys(("DispatchKey", "DispatchKeySet"), "_native_names._dispatch"),
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "_native_names._files"),
    **dict.fromkeys(("ScriptFunction", "ScriptModule"), "jit"),
    **dict.fromkeys(
        (
            "SymBool",
            "SymFloat",
            "SymInt",
            "sym_float",
            "sym_int",
            "sym_ite",
            "sym_max",
            "sym_min",
            "sym_not",
            "sym_sqrt",
            "sym_sum",
        ),
        "_symbolic",
    ),
    **dict.fromkeys(
        (
            "quantize_per_tensor",
            "quantize_per_tensor_dynamic",
            "quantize_per_channel",
            "dequantize",
            "_empty_affine_quantized",
            "qscheme",
            "per_tensor_affine",
            "per_tensor_symmetric",
            "per_channel_affine",
            "per_channel_symmetric",
            "per_channel_affine_float_qparams",
        ),
        "_quantized",
    ),
    "cond": "_higher_order_ops.cond",
    **dict.fromkeys(("get_device_module", "is_warn_always_enabled", "set_warn_always"), "_process"),
    "set_anomaly_enabled": "autograd.anomaly_mode",
}


_LIBRARIES = {
    "has_lapack": True,
    "has_mkl": False,
    "has_openmp": False,
    "has_spectral": True,
}  # the vector instructions that the kernels use on this processor


def __getattr__(name: str):
    if name in ("__config__", "__future__"):
        return _importlib.import_module(f".{name}", __package__)
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _LIBRARIES:
        return _LIBRARIES[name]
    if name == "_VF":
        return _importlib.import_module("._VF", __package__)
    if name in _ELSEWHERE:
        return getattr(_importlib.import_module(f".{_ELSEWHERE[name]}", __package__), name)
    if name.startswith("_foreach_"):
        functions = _importlib.import_module(".ops.foreach", __package__).FUNCTIONS
        if name in functions:
            return functions[name]
    # this package's own functions, which are not names of torch
    if name in ("install", "complete_mindspore"):
        return getattr(_importlib.import_module("._host.entry", __package__), name)
    if name == "torch":  # torch.torch is torch, as in PyTorch
        return _importlib.import_module(__name__)
    if _importlib.util.find_spec(f".{name}", __package__) is not None:
        return _importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module 'torch' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return torch's public names. Our private names are not PyTorch's, so they are left out."""
    own = {"alias", "annotations", "npu_apply_fused_adamw_v2"}  # what this package has beside torch's names
    names = (set(globals()) | set(_ELSEWHERE) | set(_LIBRARIES)) - own
    return sorted(name for name in names if not name.startswith("_") or name in _MODULE_NAMES)


_MODULE_NAMES = {
    "__all__",
    "__builtins__",
    "__doc__",
    "__file__",
    "__name__",
    "__package__",
    "__path__",
    "__version__",
}
