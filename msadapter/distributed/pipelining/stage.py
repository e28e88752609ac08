"""A stage of a pipeline: the part of a model that a rank computes, and its messages with the neighbours."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ..._errors import unsupported
from ..._values.device import device as Device  # noqa: N812
from ...nn import Module
from ...nn.parallel import DistributedDataParallel
from ...nn.parallel._reducer import unreached
from ...tensor import Tensor
from ...utils import _pytree as pytree
from ..fsdp import FSDPModule
from ..process_group import resolve
from ._messages import receive_tensors, send_tensors, tag_of

__all__ = ["PipelineStage", "build_stage"]


def _as_tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class _PipelineStageBase:
    """What every stage has: its module, its place, and the microbatches that it works on.

    Attributes:
        stage_index_to_group_rank: the rank of each stage within the group; stage i is on rank i modulo the number of ranks.
    """

    def __init__(self, submodule, stage_index: int, num_stages: int, device, group=None, dw_builder=None):
        if stage_index >= num_stages or stage_index < 0:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None:
            raise unsupported(
                "torch.distributed.pipelining",
                "dw_builder is not supported, because no schedule splits the backward pass",
            )
        if not isinstance(submodule, Module):
            raise TypeError(f"a stage needs a module, got {type(submodule).__name__}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = Device(device), group
        self._group = resolve(group)
        self.group_rank, self.group_size = self._group.rank(), self._group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self.chunks: int | None = None
        self._has_backward = False
        self._neighbours: dict[int, Any] = {}  # the other stages of this rank, by index
        self.clear_runtime_states()

    has_backward = property(
        lambda self: self._has_backward,
        lambda self, value: setattr(self, "_has_backward", value),
        doc="Whether the schedule computes gradients.",
    )

    @property
    def is_first(self) -> bool:
        """Whether this stage takes the arguments of the program."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether this stage gives the results of the program."""
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Forget the microbatches of the last step."""
        self.fwd_cache: dict[int, tuple] = {}  # microbatch -> (outputs, the tensors whose gradients go back)
        self.bwd_cache: dict[int, tuple] = {}  # microbatch -> gradients for the stage before
        self.output_chunks: list = []
        self._arrived: dict[
            tuple[int, bool], list
        ] = {}  # from stages of this rank: (microbatch, backward) -> tensors
        self._sending: list = []
        self._backwards = 0

    # ---- messages
    def _deliver(self, to: int, chunk: int, tensors, backward: bool) -> None:
        peer = self.stage_index_to_group_rank[to]
        if peer == self.group_rank:
            passed = [None if t is None else t.detach().requires_grad_(t.requires_grad) for t in tensors]
            self._neighbours[to]._arrived[chunk, backward] = passed
        else:
            self._sending += send_tensors(tensors, peer, self._group, tag_of(to, backward))

    def _collect(self, source: int, chunk: int, backward: bool) -> list:
        peer = self.stage_index_to_group_rank[source]
        if peer == self.group_rank:
            return self._arrived.pop((chunk, backward))
        return receive_tensors(peer, self._group, tag_of(self.stage_index, backward), self.device)

    def finish_sending(self) -> None:
        """Wait until everything that was sent has left."""
        for work in self._sending:
            work.wait()
        self._sending = []

    # ---- one microbatch
    def forward_maybe_with_nosync(self, *args, **kwargs):
        """Run the module. DistributedDataParallel does not prepare to reduce gradients until the last backward pass."""
        if isinstance(self.submod, DistributedDataParallel):
            with self.submod.no_sync():
                return self.submod(*args, **kwargs)
        return self.submod(*args, **kwargs)

    def forward_one_chunk(
        self, fwd_chunk_id: int, args: tuple, kwargs: dict | None = None, save_forward_output=True
    ):
        """Run the module on a microbatch, whose activations come from the stage before, and pass the results on."""
        kwargs = kwargs or {}
        if not self.is_first:
            args = tuple(self._collect(self.stage_index - 1, fwd_chunk_id, backward=False))
        try:
            output = self.forward_maybe_with_nosync(*args, **kwargs)
        except Exception as err:
            raise RuntimeError(
                f"[Stage {self.stage_index}] failed to run forward of microbatch {fwd_chunk_id}, args: "
                f"{pytree.tree_map(_short, args)}, kwargs: {pytree.tree_map(_short, kwargs)}"
            ) from err
        outputs = _as_tuple(output)
        if self.is_last:
            if save_forward_output:
                self.output_chunks.append(output)
        else:
            if not all(isinstance(t, Tensor) for t in outputs):
                kinds = [type(t).__name__ for t in outputs]
                raise TypeError(
                    f"[Stage {self.stage_index}] must return tensors for the next stage, got {kinds}"
                )
            self._deliver(self.stage_index + 1, fwd_chunk_id, outputs, backward=False)
        if self.has_backward:
            self.fwd_cache[fwd_chunk_id] = outputs, [] if self.is_first else list(args)
        return output

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss=None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Compute the gradients of a microbatch, from the loss or from what the next stage sends, and pass them back."""
        if not full_backward:
            raise unsupported("torch.distributed.pipelining", "a backward pass in two parts is not supported")
        outputs, inputs = self.fwd_cache.pop(bwd_chunk_id)
        if self.is_last:
            if loss is None:
                raise RuntimeError(f"[Stage {self.stage_index}] has no loss of microbatch {bwd_chunk_id}")
            roots, gradients = [loss], [None]
        else:
            arrived = self._collect(self.stage_index + 1, bwd_chunk_id, backward=True)
            pairs = [
                (o, g) for o, g in zip(outputs, arrived, strict=True) if g is not None and o.requires_grad
            ]
            roots, gradients = [o for o, _ in pairs], [g for _, g in pairs]
        self._run_backward(roots, gradients, last_backward)
        passed = tuple(t.grad if t.requires_grad else None for t in inputs)
        if not self.is_first:
            self.bwd_cache[bwd_chunk_id] = passed
            self._deliver(self.stage_index - 1, bwd_chunk_id, passed, backward=True)
            del self.bwd_cache[bwd_chunk_id]

    def _run_backward(self, roots, gradients, last: bool) -> None:
        module = self.submod
        if isinstance(module, DistributedDataParallel):
            module.require_backward_grad_sync = last
            if last and module.process_group.size() > 1:
                looks = module.find_unused_parameters or module.static_graph
                module.reducer.start(unreached(roots, module._parameters_to_reduce) if looks else None)
            try:
                if roots:
                    autograd.backward(roots, gradients)
            finally:
                module.require_backward_grad_sync = True
            return
        if isinstance(module, FSDPModule):
            module.set_is_last_backward(last)
            module.set_reshard_after_backward(last)
            module.set_requires_gradient_sync(last)
        if roots:
            autograd.backward(roots, gradients)

    def count_backward(self) -> bool:
        """Count one more backward pass; return whether it is the step's last one of this stage."""
        self._backwards += 1
        return self._backwards == self.chunks

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the parameters' gradients, so that they are those of the mean over the microbatches."""
        if grad_scale_factor != 1:
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)


def _short(value):
    return f"Tensor({tuple(value.shape)}, {value.dtype})" if isinstance(value, Tensor) else value


class PipelineStage(_PipelineStageBase):
    """A stage whose module the program made.

    ``input_args`` and ``output_args`` have no effect: each message describes what a stage receives.
    """

    def __init__(
        self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, output_grads=None,
        input_grads=None, group=None, dw_builder=None, get_mesh=None,
    ):  # fmt: skip
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if get_mesh is not None:
            raise unsupported(
                "torch.distributed.pipelining", "DTensors between stages (get_mesh) are not supported"
            )


def build_stage(stage_module, stage_index, pipe_info, device, group=None) -> _PipelineStageBase:
    """Make the stage of a module that ``pipeline`` split off."""
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
