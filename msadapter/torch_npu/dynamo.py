"""torch_npu.dynamo and torchair: what programs name to register operators for graph compilation.

`import torchair` gives this module's `torchair`. Registrations are kept; compiling is not supported and says so.
"""

from __future__ import annotations

import sys
from types import ModuleType

converters: dict = {}


def register_fx_node_ge_converter(target):
    """Keep the converter of an operator."""

    def decorate(function):
        converters[target] = function
        return function

    return decorate


def _refuse(name: str):
    def refused(*args, **kwargs):
        raise NotImplementedError(f"torchair.{name}: compiling graphs is not supported (docs/coverage.md)")

    refused.__name__ = name
    return refused


class CompilerConfig:
    """Options of the graph compiler: kept, and read by nobody."""


def get_npu_backend(*, compiler_config=None, custom_decompositions=None):
    """The backend for torch.compile; compiling with it says that it cannot."""
    return _refuse("get_npu_backend()")


class _Named:
    """A name for annotations: torchair.ge.Tensor and its like."""


def _module(name: str, **content) -> ModuleType:
    module = ModuleType(name, f"{name}, as far as programs name it at import.")
    module.__dict__.update(content)
    sys.modules.setdefault(name, module)
    return sys.modules[name]


def _make() -> ModuleType:
    tensor = type("Tensor", (_Named,), {})
    spec = type("TensorSpec", (_Named,), {})
    types = type(
        "DataType",
        (_Named,),
        {name: name for name in ("DT_BF16", "DT_FLOAT", "DT_FLOAT16", "DT_INT8", "DT_INT32")},
    )
    refused = {name: _refuse(f"ge.{name}") for name in ("custom_op", "Const", "Cast", "Fill")}
    attributes = _module(
        "torchair.ge.attr",
        **{n: _refuse(f"ge.attr.{n}") for n in ("Int", "Str", "Bool", "Float", "DataType")},
    )
    ge = _module("torchair.ge", Tensor=tensor, TensorSpec=spec, DataType=types, attr=attributes, **refused)
    found = _module(
        "torchair",
        ge=ge,
        register_fx_node_ge_converter=register_fx_node_ge_converter,
        get_npu_backend=get_npu_backend,
        CompilerConfig=CompilerConfig,
    )
    configuration = _module("torchair.configs.compiler_config", CompilerConfig=CompilerConfig)
    found.configs = _module("torchair.configs", compiler_config=configuration)
    ge.__path__, found.__path__, found.configs.__path__ = [], [], []
    return found


torchair = _make()
