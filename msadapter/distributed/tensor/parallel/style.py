"""Parallel styles, which shard a module's parameters, inputs and outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .... import nn
from ....nn import Module, Parameter
from ....tensor import Tensor
from .._api import distribute_module, distribute_tensor
from .._dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard


class ParallelStyle(ABC):
    """Base class of the styles, which are applied to one module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh) -> Module:
        """Shards the module over the mesh, in place."""


def _as_dtensor(x, mesh, layouts):
    return x if isinstance(x, DTensor) else DTensor.from_local(x, mesh, layouts, run_check=False)


def _placed(x, layouts):
    return x if x.placements == tuple(layouts) else x.redistribute(placements=layouts)


def _given(x, local: bool):
    return x.to_local() if local else x


class _Layered(ParallelStyle):
    """Base class of styles with one input and one output."""

    def __init__(self, input_layouts, output_layouts, use_local_output):
        self.input_layouts, self.output_layouts = (input_layouts,), (output_layouts,)
        self.use_local_output = use_local_output
        self.desired_input_layouts: tuple[Placement, ...] = (Replicate(),)

    def _input(self, module, inputs, mesh):
        x = _as_dtensor(inputs[0], mesh, self.input_layouts)
        return (_placed(x, _counted(self.desired_input_layouts, x.ndim)), *inputs[1:])

    def _output(self, module, outputs, mesh):
        return _given(_placed(outputs, _counted(self.output_layouts, outputs.ndim)), self.use_local_output)

    def _spread(self, module, mesh, layouts: dict) -> None:
        for name, parameter in list(module.named_parameters(recurse=False)):
            placed = [layouts.get(name, layouts.get("*", Replicate()))]
            made = distribute_tensor(parameter.detach(), mesh, placed, src_data_rank=self.src_data_rank)
            module.register_parameter(name, Parameter(made, parameter.requires_grad))

    def _distribute(self, module, device_mesh, layouts: dict) -> Module:
        return distribute_module(
            module,
            device_mesh,
            lambda name, mod, mesh: self._spread(mod, mesh, layouts),
            self._input,
            self._output,
        )

    def __repr__(self):
        layouts = f"input_layouts={self.input_layouts}, output_layouts={self.output_layouts}"
        return f"{type(self).__name__}({layouts})"


def _counted(layouts, rank: int) -> tuple:
    """The placements with non-negative dimensions."""
    return tuple(Shard(p.dim % rank) if p.is_shard() else p for p in layouts)


class ColwiseParallel(_Layered):
    """Shards the outputs of a Linear, or the columns of an Embedding.

    input_layouts: the input's placement, default Replicate. output_layouts: the output's placement, default Shard(-1).
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _apply(self, module, device_mesh):
        if isinstance(module, nn.Linear):
            layouts = {"*": Shard(0)}
        elif isinstance(module, nn.Embedding):
            layouts = {"*": Shard(1)}
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")
        return self._distribute(module, device_mesh, layouts)


class RowwiseParallel(_Layered):
    """Shards the inputs of a Linear, or the rows of an Embedding.

    input_layouts: the input's placement, default Shard(-1). output_layouts: the output's placement, default Replicate.
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output: bool = True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _apply(self, module, device_mesh):
        if isinstance(module, nn.Linear):
            layouts, self.desired_input_layouts = {"weight": Shard(1)}, (Shard(-1),)
        elif isinstance(module, nn.Embedding):
            layouts, self.desired_input_layouts = {"*": Shard(0)}, (Replicate(),)
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        return self._distribute(module, device_mesh, layouts)


class SequenceParallel(_Layered):
    """A LayerNorm, RMSNorm or Dropout with replicated parameters on a sequence that is sharded along ``sequence_dim``."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        super().__init__(Shard(sequence_dim), Shard(sequence_dim), use_local_output)
        self.sequence_sharding = self.desired_input_layouts = (Shard(sequence_dim),)

    def _input(self, module, inputs, mesh):
        x = inputs[0]
        if not isinstance(x, Tensor):
            raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {x}")
        return (_placed(_as_dtensor(x, mesh, self.sequence_sharding), self.sequence_sharding), *inputs[1:])

    def _output(self, module, outputs, mesh):
        return _given(outputs, self.use_local_output)

    def _apply(self, module, device_mesh):
        def spread(name, mod, mesh):
            for key, parameter in list(mod.named_parameters(recurse=False)):
                made = DTensor.from_local(parameter.detach(), mesh, [Replicate()], run_check=False)
                mod.register_parameter(key, Parameter(made, parameter.requires_grad))

        return distribute_module(module, device_mesh, spread, self._input, self._output)

    def __repr__(self):
        return f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"


def _tuple(x) -> tuple:
    return x if isinstance(x, tuple) else (x,)


class PrepareModuleInput(ParallelStyle):
    """Converts a module's inputs to DTensors with ``input_layouts`` and redistributes them to ``desired_input_layouts``.

    An input with the layout None stays unchanged.
    """

    def __init__(self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
            desired_input_kwarg_layouts=None, use_local_output: bool=False):  # fmt: skip
        self.input_layouts = None if input_layouts is None else _tuple(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.input_kwarg_layouts.keys() != self.desired_input_kwarg_layouts.keys():
            raise AssertionError(
                "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"
            )

    def _one(self, x, mesh, layout, desired):
        if layout is None or not isinstance(x, Tensor):
            return x
        x = _as_dtensor(x, mesh, (layout,))
        if desired is not None:
            x = _placed(x, _counted((desired,), x.ndim))
        return _given(x, self.use_local_output)

    def _inputs(self, inputs, mesh):
        if self.input_layouts is None:
            return inputs
        inputs = _tuple(inputs)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        return tuple(
            self._one(x, mesh, a, b)
            for x, a, b in zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
        )

    def _keywords(self, kwargs, mesh) -> dict:
        return {
            k: self._one(v, mesh, self.input_kwarg_layouts.get(k), self.desired_input_kwarg_layouts.get(k))
            for k, v in kwargs.items()
        }

    def _apply(self, module, device_mesh):
        module.register_forward_pre_hook(
            lambda mod, inputs, kwargs: (
                self._inputs(inputs, device_mesh),
                self._keywords(kwargs, device_mesh),
            ),
            with_kwargs=True,
        )
        return module

    def __repr__(self):
        return f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts})"


class PrepareModuleOutput(ParallelStyle):
    """Converts a module's outputs to DTensors with ``output_layouts`` and redistributes them to ``desired_output_layouts``."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: bool = True):
        self.output_layouts, self.desired_output_layouts = (
            _tuple(output_layouts),
            _tuple(desired_output_layouts),
        )
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _outputs(self, outputs, mesh):
        several = isinstance(outputs, tuple)
        outputs = _tuple(outputs)
        if len(outputs) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for x, layout, desired in zip(outputs, self.output_layouts, self.desired_output_layouts, strict=True):
            if layout is not None:
                x = _as_dtensor(x, mesh, (layout,))
                x = _given(_placed(x, _counted((desired,), x.ndim)), self.use_local_output)
            made.append(x)
        return tuple(made) if several else made[0]

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda mod, inputs, outputs: self._outputs(outputs, device_mesh))
        return module

    def __repr__(self):
        return f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts={self.desired_output_layouts})"


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput together."""

    def __init__(self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
            desired_input_kwarg_layouts=None, use_local_input: bool=False, output_layouts,
            desired_output_layouts, use_local_output: bool=True):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        return self.prepare_module_output._apply(
            self.prepare_module_input._apply(module, device_mesh), device_mesh
        )
