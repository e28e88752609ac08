"""The order in which the stages of a rank work on the microbatches of a step.

A schedule is a list of forward and backward passes. Messages are buffered by the sender, so the order decides how much memory a
rank holds and how long it waits, and never whether the ranks wait for each other forever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import is_grad_enabled, ops
from ..._errors import unsupported
from .microbatch import merge_chunks, split_args_kwargs_into_chunks
from .stage import _PipelineStageBase

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]


class _Action(NamedTuple):
    """One pass of a stage over a microbatch; kind: ``F`` or ``B``."""

    stage_index: int
    computation_type: str
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type}{self.microbatch_index}"


#: The kind of a pass in which a stage works forward while another works backward. The schedules here have none.
OVERLAP_F_B = "OVERLAP_F_B"


def _wait_batch_p2p(work: list) -> None:
    """Wait until each of several messages is complete."""
    for one in work:
        one.wait()


class _PipelineSchedule:
    """What all schedules have: splitting, running in order, losses and results."""

    def __init__(
        self, stages, n_microbatches: int, loss_fn: Callable | None = None, args_chunk_spec=None,
        kwargs_chunk_spec=None, output_merge_spec=None, scale_grads: bool = True,
    ):  # fmt: skip
        stages = list(stages)
        for stage in stages:
            if not isinstance(stage, _PipelineStageBase):
                raise TypeError(f"{type(self).__name__} needs stages, got {type(stage).__name__}")
        if n_microbatches < 1:
            raise ValueError(f"n_microbatches must be at least 1, got {n_microbatches}")
        self._stages = stages
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._internal_losses: list = []
        self._num_stages = stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        own = {stage.stage_index: stage for stage in stages}
        for stage in stages:
            stage.chunks, stage._neighbours = n_microbatches, own

    def _orders(self, rank: int) -> list[_Action]:
        """Return the passes of a rank in their order."""
        raise NotImplementedError

    @property
    def pipeline_order(self) -> dict[int, list[_Action]]:
        """The passes of every rank, in their order. Times at which a rank waits have no entry."""
        return {rank: self._orders(rank) for rank in range(self.pp_group_size)}

    # ---- a step
    def step(self, *args, target=None, losses: list | None = None, return_outputs: bool = True, **kwargs):
        """Run one step with a whole batch. Return the results on the rank of the last stage, None on others.

        args: of the first stage; target: for the loss, on the rank of the last stage; losses: filled with the loss of each
        microbatch there.
        """
        if self._has_backward and not is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; "
                "it should not be used under torch.no_grad() context. "
                "Please call eval() instead."
            )
        return self._whole_step(self._has_backward, args, kwargs, target, losses, return_outputs)

    def eval(self, *args, target=None, losses: list | None = None, **kwargs):
        """Run the forward passes of a whole batch, and the losses if there is a target."""
        return self._whole_step(False, args, kwargs, target, losses, True)

    def _whole_step(self, backward, args, kwargs, target, losses, return_outputs):
        for stage in self._stages:
            stage.clear_runtime_states()
            stage.has_backward = backward
        args_parts, kwargs_parts = self._split_inputs(args, kwargs)
        targets = None if target is None else list(ops.tensor_split(target, self._n_microbatches))
        try:
            self._step_microbatches(args_parts, kwargs_parts, targets, losses, return_outputs)
            last = next((stage for stage in self._stages if stage.is_last), None)
            merged = self._merge_outputs(last.output_chunks) if last is not None and return_outputs else None
        finally:
            for stage in self._stages:
                stage.has_backward = self._has_backward
        return merged

    def _split_inputs(self, args, kwargs=None):
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        return split_args_kwargs_into_chunks(
            args, kwargs, self._n_microbatches, self._args_chunk_spec, self._kwargs_chunk_spec
        )

    def _merge_outputs(self, output_chunks: list):
        return merge_chunks(output_chunks, self._output_merge_spec)

    def _check_inputs(self, arg_mbs=None, kwarg_mbs=None, target_mbs=None, losses=None):
        given = {"arg_mbs": arg_mbs, "kwarg_mbs": kwarg_mbs, "target_mbs": target_mbs}
        for name, values in given.items():
            if values is not None and len(values) != self._n_microbatches:
                raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(values)}")
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        count = self._n_microbatches
        return arg_mbs or [()] * count, kwarg_mbs or [{}] * count

    def _step_microbatches(
        self, arg_mbs=None, kwarg_mbs=None, target_mbs=None, losses=None, return_outputs=True
    ) -> None:
        """Run the passes of this rank on a batch that is split already."""
        arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
        own = {stage.stage_index: stage for stage in self._stages}
        found: dict[int, Any] = {}
        for index, kind, microbatch in self._orders(self.rank):
            stage = own[index]
            if kind == "F":
                output = stage.forward_one_chunk(
                    microbatch, arg_mbs[microbatch], kwarg_mbs[microbatch], save_forward_output=return_outputs
                )
                if stage.is_last and self._loss_fn is not None:
                    if target_mbs is not None:
                        found[microbatch] = self._loss_fn(output, target_mbs[microbatch])
                    elif stage.has_backward:
                        raise ValueError("the last stage needs a target to compute the loss")
            elif stage.has_backward:
                loss = found[microbatch] if stage.is_last else None
                stage.backward_one_chunk(microbatch, loss, last_backward=stage.count_backward())
        for stage in self._stages:
            stage.finish_sending()
            if stage.has_backward and self.scale_grads:
                stage.scale_grads(self._n_microbatches)
        if losses is not None and any(stage.is_last for stage in self._stages):
            losses[:] = [found[i] for i in sorted(found)]


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule with one stage for each rank."""

    def __init__(self, stage, n_microbatches: int, *args, **kwargs):
        if not isinstance(stage, _PipelineStageBase):
            raise TypeError(f"{type(self).__name__} needs one stage, got {type(stage).__name__}")
        super().__init__([stage], n_microbatches, *args, **kwargs)
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"{type(self).__name__} has one stage for each rank, but there are {stage.num_stages} stages and "
                f"{stage.group_size} ranks"
            )
        self._stage = stage


class ScheduleGPipe(PipelineScheduleSingle):
    """All forward passes, then all backward passes."""

    def _orders(self, rank: int) -> list[_Action]:
        return [_Action(rank, kind, i) for kind in "FB" for i in range(self._n_microbatches)]


class Schedule1F1B(PipelineScheduleSingle):
    """Forward and backward passes in turn, as soon as the first microbatch has reached the last stage."""

    def __init__(self, stage, n_microbatches: int, *args, **kwargs):
        super().__init__(stage, n_microbatches, *args, **kwargs)
        if n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages "
                f"({self._num_stages})."
            )

    def _orders(self, rank: int) -> list[_Action]:
        ahead = min(self._n_microbatches, self._num_stages - rank)
        forward = [_Action(rank, "F", i) for i in range(self._n_microbatches)]
        backward = [_Action(rank, "B", i) for i in range(self._n_microbatches)]
        order = forward[:ahead]
        for i, passed in enumerate(backward):
            order += [passed, *forward[ahead + i : ahead + i + 1]]
        return order


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule with several stages for each rank."""

    def __init__(
        self, stages, n_microbatches: int, loss_fn: Callable | None = None, args_chunk_spec=None,
        kwargs_chunk_spec=None, output_merge_spec=None, use_full_backward: bool | None = None,
        scale_grads: bool = True, backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ):  # fmt: skip
        if not backward_requires_autograd:
            raise unsupported(
                f"torch.distributed.pipelining.{type(self).__name__}",
                "backward_requires_autograd=False is not supported",
            )
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self.n_local_stages = len(self._stages)
        wanted = {s for s, r in self._stages[0].stage_index_to_group_rank.items() if r == self.rank}
        if wanted != {stage.stage_index for stage in self._stages}:
            raise ValueError(
                f"rank {self.rank} was given the stages {[s.stage_index for s in self._stages]}, but it must have "
                f"{sorted(wanted)}: that is its part of {self._num_stages} stages on {self.pp_group_size} ranks"
            )


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches go through a stage before the rank turns to its next stage; backward in the opposite order."""

    def __init__(
        self, stages, n_microbatches: int, loss_fn: Callable | None = None, output_merge_spec=None,
        scale_grads: bool = True, backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ):  # fmt: skip
        super().__init__(
            stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec, scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd, defer_pp_recv=defer_pp_recv,
        )  # fmt: skip

    def _orders(self, rank: int) -> list[_Action]:
        stages = range(rank, self._num_stages, self.pp_group_size)
        forward = [_Action(stage, "F", i) for stage in stages for i in range(self._n_microbatches)]
        return forward + [_Action(stage, "B", i) for stage, _, i in reversed(forward)]


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """Forward and backward passes in turn, in rounds: some microbatches go through all stages of a rank before the next ones."""

    def __init__(
        self, stages, n_microbatches: int, loss_fn: Callable | None = None, args_chunk_spec=None,
        kwargs_chunk_spec=None, output_merge_spec=None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ):  # fmt: skip
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, None, scale_grads,
            backward_requires_autograd, defer_pp_recv,
        )  # fmt: skip
        self.number_of_rounds = max(1, n_microbatches // self.pp_group_size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.number_of_rounds}), but got {n_microbatches}."
            )

    def _orders(self, rank: int) -> list[_Action]:
        stages = list(range(rank, self._num_stages, self.pp_group_size))
        rounds = [
            range(first, first + self.microbatches_per_round)
            for first in range(0, self._n_microbatches, self.microbatches_per_round)
        ]
        forward = [_Action(stage, "F", i) for part in rounds for stage in stages for i in part]
        backward = [_Action(stage, "B", i) for part in rounds for stage in reversed(stages) for i in part]
        # A microbatch passes the rank's other stages, and goes to the last rank and back, before its first backward pass.
        ahead = (len(stages) - 1) * self.microbatches_per_round + 2 * (self.pp_group_size - 1 - rank)
        ahead = min(ahead, len(forward))
        order = forward[:ahead]
        for i, passed in enumerate(backward):
            order += [*forward[ahead + i : ahead + i + 1], passed]
        return order


class ScheduleInterleavedZeroBubble:
    """Not supported: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise unsupported(
            "torch.distributed.pipelining.ScheduleInterleavedZeroBubble",
            "a backward pass in two parts is not supported",
        )


class ScheduleZBVZeroBubble:
    """Not supported: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise unsupported(
            "torch.distributed.pipelining.ScheduleZBVZeroBubble",
            "a backward pass in two parts is not supported",
        )


class ScheduleDualPipeV:
    """Not supported: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise unsupported(
            "torch.distributed.pipelining.ScheduleDualPipeV", "a backward pass in two parts is not supported"
        )


class _PipelineContext(NamedTuple):
    """What PyTorch passes to the functions of a program that takes over a kind of pass. No schedule here calls such a function."""

    schedule_ref: Any
    arg_mbs: list | None = None
    kwarg_mbs: list | None = None
    target_mbs: list | None = None
    losses: list | None = None


class _PipelineScheduleRuntime:
    """Not supported: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise unsupported(
            "torch.distributed.pipelining.schedules._PipelineScheduleRuntime",
            "a schedule from a list of passes is not supported",
        )


def get_schedule_class(schedule_name: str) -> type:
    """Return the class of a schedule by name, such as ``"1F1B"``; capital and small letters are the same."""
    classes = {
        "1F1B": Schedule1F1B,
        "Interleaved1F1B": ScheduleInterleaved1F1B,
        "GPipe": ScheduleGPipe,
        "LoopedBFS": ScheduleLoopedBFS,
        "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
        "PipelineScheduleSingle": PipelineScheduleSingle,
        "PipelineScheduleMulti": PipelineScheduleMulti,
        "ZBVZeroBubble": ScheduleZBVZeroBubble,
        "DualPipeV": ScheduleDualPipeV,
    }
    for name, found in classes.items():
        if name.lower() == schedule_name.lower():
            return found
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(classes)}")
