"""The part of torch_npu._C that programs use: options of a communicator."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

from ..distributed.process_group import ProcessGroup


class _Options(ProcessGroup.Options):
    """Options of a process group on the NPU: a time limit and `hccl_config`."""

    def __init__(self, is_high_priority_stream: bool = False):
        super().__init__("hccl", timedelta(minutes=30))
        self.is_high_priority_stream = is_high_priority_stream
        self.hccl_config: dict = {}
        self.group_id = ""

    @property
    def op_timeout(self) -> timedelta:
        """The time limit under torch_npu's name."""
        return self._timeout

    @op_timeout.setter
    def op_timeout(self, value: timedelta) -> None:
        self._timeout = value


# Programs also read this attribute from the class, before they create options.
_Options.hccl_config = {}


class ProcessGroupHCCL:
    """The class of communicators, which exists for its Options. torch.distributed creates the groups."""

    Options = _Options


_distributed_c10d = SimpleNamespace(ProcessGroupHCCL=ProcessGroupHCCL)
