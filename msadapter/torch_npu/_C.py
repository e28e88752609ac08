"""The part of torch_npu._C that programs use: options of a communicator."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace


class _Options:
    """Options of a process group on the NPU: a time limit and `hccl_config`."""

    def __init__(self, is_high_priority_stream: bool = False):
        self.is_high_priority_stream = is_high_priority_stream
        self.op_timeout = timedelta(minutes=30)
        self.hccl_config: dict = {}
        self.global_ranks_in_group: list[int] = []
        self.group_id = ""

    @property
    def _timeout(self) -> timedelta:
        return self.op_timeout

    @_timeout.setter
    def _timeout(self, value: timedelta) -> None:
        self.op_timeout = value


# Programs also read this attribute from the class, before they create options.
_Options.hccl_config = {}


class ProcessGroupHCCL:
    """The class of communicators, which exists for its Options. torch.distributed creates the groups."""

    Options = _Options


_distributed_c10d = SimpleNamespace(ProcessGroupHCCL=ProcessGroupHCCL)
