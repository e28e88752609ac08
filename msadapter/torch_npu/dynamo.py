"""torch_npu.dynamo and torchair: names with which programs register operators for graph compilation.

`import torchair` returns this module's `torchair`. Registrations are stored. Compiling raises an error,
because it is not supported.
"""

from __future__ import annotations

import sys
from types import ModuleType

from .._errors import unsupported_function

converters: dict = {}


def register_fx_node_ge_converter(target):
    """Store the converter of an operator."""

    def decorate(function):
        converters[target] = function
        return function

    return decorate


_WHY = "compiling graphs is not supported"


class CompilerConfig:
    """Options of the graph compiler. They are stored, but not used."""


def get_npu_backend(*, compiler_config=None, custom_decompositions=None):
    """Return the backend for torch.compile. Compiling with it raises an error."""
    return unsupported_function("torchair.get_npu_backend", _WHY)


class _Named:
    """A class for annotations, such as torchair.ge.Tensor."""


def _module(name: str, **content) -> ModuleType:
    module = ModuleType(name, f"{name}, as far as programs name it at import.")
    module.__dict__.update(content)
    sys.modules.setdefault(name, module)
    return sys.modules[name]


_TYPES = (
    "BF16 BOOL COMPLEX128 COMPLEX32 COMPLEX64 DOUBLE DUAL DUAL_SUB_INT8 DUAL_SUB_UINT8 FLOAT FLOAT16 INT16 INT2 INT32 INT4 "
    "INT64 INT8 MAX QINT16 QINT32 QINT8 QUINT16 QUINT8 RESOURCE STRING STRING_REF UINT1 UINT16 UINT2 UINT32 UINT64 UINT8 "
    "UNDEFINED VARIANT"
)


def _older(ge: ModuleType, **names) -> ModuleType:
    """Return torchair.ge_concrete_graph, the name of torchair.ge in older versions."""
    parts = {
        "fx2ge_converter": _module(
            "torchair.ge_concrete_graph.fx2ge_converter",
            register_fx_node_ge_converter=register_fx_node_ge_converter,
            declare_supported=unsupported_function(
                "torchair.ge_concrete_graph.fx2ge_converter.declare_supported", _WHY
            ),
        ),
        "ge_graph": _module(
            "torchair.ge_concrete_graph.ge_graph",
            **names,
            **{
                name: unsupported_function(f"torchair.ge_concrete_graph.ge_graph.{name}", _WHY)
                for name in (
                    "compat_as_bytes",
                    "get_default_ge_graph",
                    "get_invalid_desc",
                    "next_unique_name",
                )
            },
        ),
        "ge_apis": sys.modules.setdefault("torchair.ge_concrete_graph.ge_apis", ge),
    }
    older = _module("torchair.ge_concrete_graph", **parts)
    older.__path__ = []
    return older


def _make() -> ModuleType:
    tensor = type("Tensor", (_Named,), {})
    spec = type("TensorSpec", (_Named,), {})
    types = type("DataType", (_Named,), {f"DT_{name}": f"DT_{name}" for name in _TYPES.split()})
    refused = {
        name: unsupported_function(f"torchair.ge.{name}", _WHY)
        for name in ("custom_op", "Const", "Cast", "Fill")
    }
    attributes = _module(
        "torchair.ge.attr",
        **{
            n: unsupported_function(f"torchair.ge.attr.{n}", _WHY)
            for n in ("Int", "Str", "Bool", "Float", "DataType")
        },
    )
    ge = _module("torchair.ge", Tensor=tensor, TensorSpec=spec, DataType=types, attr=attributes, **refused)
    found = _module(
        "torchair",
        ge=ge,
        register_fx_node_ge_converter=register_fx_node_ge_converter,
        get_npu_backend=get_npu_backend,
        CompilerConfig=CompilerConfig,
    )
    found.ge_concrete_graph = _older(ge, Tensor=tensor, TensorSpec=spec, DataType=types)
    configuration = _module("torchair.configs.compiler_config", CompilerConfig=CompilerConfig)
    found.configs = _module("torchair.configs", compiler_config=configuration)
    ge.__path__, found.__path__, found.configs.__path__ = [], [], []
    return found


torchair = _make()
