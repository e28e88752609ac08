"""The suite surface: the public names of PyTorch's namespaces, and the parameters of its functions.

A module's public names are its __all__, or else what it defines without a leading underscore. Parameters come from
inspect.signature where a function has one, and from the schemas of the dispatcher (overloads kept apart) where not.
"""

from __future__ import annotations

import importlib
import inspect
import types
import warnings

from tests.golden import surface

_MODULES = """
torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrize
torch.nn.utils.parametrizations torch.nn.utils.stateless torch.nn.utils.prune torch.nn.attention torch.nn.parallel
torch.nn.parameter torch.linalg torch.fft torch.special torch.signal.windows torch.optim torch.optim.lr_scheduler
torch.optim.swa_utils torch.utils torch.utils.data torch.utils.checkpoint torch.utils.dlpack torch.utils.hooks
torch.utils.tensorboard torch.utils.cpp_extension torch.utils.benchmark torch.utils.flop_counter torch.autograd
torch.autograd.functional torch.autograd.graph torch.autograd.forward_ad torch.autograd.profiler torch.amp torch.cuda
torch.cuda.amp torch.cuda.nvtx torch.random torch.accelerator torch.cpu torch.mps torch.xpu torch.mtia
torch.distributed torch.distributed.checkpoint torch.distributed.algorithms.join torch.distributed.device_mesh
torch.distributed.elastic.multiprocessing.errors torch.distributed.fsdp torch.distributed.tensor
torch.distributed.tensor.parallel torch.distributed.pipelining torch.distributed.optim torch.distributed.rpc
torch.distributions torch.func torch.jit torch.compiler torch.library torch.testing torch.sparse torch.nested
torch.masked torch.futures torch.hub torch.profiler torch.serialization torch.overrides torch.multiprocessing
torch.backends torch.backends.cuda torch.backends.cudnn torch.backends.mkldnn torch.types torch.export torch.onnx
torch.fx torch.package torch.ao.quantization torch.monitor
"""


def public_names(module: types.ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and not isinstance(value, types.ModuleType)
            and (
                inspect.isbuiltin(value) or str(getattr(value, "__module__", "")).startswith(module.__name__)
            )
        ]
    return sorted({name for name in names if not name.startswith("_")})


def written(parameter: inspect.Parameter) -> str:
    """A parameter as text; see `surface.Parameter`."""
    mark = surface.MARKS[parameter.kind.name]
    default = "" if parameter.default is inspect.Parameter.empty else f"={parameter.default!r}"
    return f"{mark}{parameter.name}{default}"


def inspected(function: object) -> list[str] | None:
    """Every parameter as text; None if Python cannot find the signature."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    generic = [str(p) for p in parameters] == ["*args", "**kwargs"]
    return None if generic else [written(p) for p in parameters]


def overloads(torch) -> dict[str, list[str]]:
    """Operator -> its overloads, each as one text of its parameters. Overloads with out=, names or symbols are left out."""
    found: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or "out" in schema.overload_name:
            continue
        text = str(schema)
        if "Dimname" in text or "Tensor" not in text:
            continue
        arguments = [
            ("~" if a.kwarg_only else "") + a.name + ("=" if a.has_default_value() else "")
            for a in schema.arguments
            if not a.is_out
        ]
        found.setdefault(schema.name.removeprefix("aten::"), []).append(" ".join(arguments))
    return found


def golden_answers(torch) -> dict:
    warnings.simplefilter("ignore")
    names, signatures = {}, {}
    for path in _MODULES.split():
        module = importlib.import_module(path)
        names[path] = public_names(module)
        for name in names[path]:
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, type) and (found := inspected(value)) is not None:
                signatures[f"{path}.{name}"] = found
    names["torch.Tensor"] = sorted(name for name in dir(torch.Tensor) if not name.startswith("_"))
    return {
        **{f"names {path}": names[path] for path in sorted(names)},
        **{f"signature {name}": signatures[name] for name in sorted(signatures)},
        **{f"schemas {name}": v for name, v in sorted(overloads(torch).items()) if not name.startswith("_")},
    }
