"""ZeroRedundancyOptimizer: each process has the optimizer state of some parameters and broadcasts their new values."""

from __future__ import annotations

import copy
from itertools import chain

from ... import ops
from ..._errors import unsupported
from ...autograd import enable_grad, no_grad
from ...optim import Optimizer
from ...tensor import Tensor
from ...utils._pytree import tree_map
from .. import collectives, objects
from ..algorithms.join import Join, Joinable, JoinHook
from ..process_group import resolve
from ..setup import get_global_rank

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeROJoinHook(JoinHook):
    """The hook of a process without inputs: it takes part in the broadcasts of parameters."""

    def __init__(self, zero):
        self.zero = zero

    def main_hook(self) -> None:
        """One step."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Distributes the parameters over the processes of a group, largest first, each to the process with the least load.

    Each process runs optimizer_class(params, **defaults) on its parameters. Gradients must already be reduced, as by
    DistributedDataParallel. `parameters_as_bucket_view` stores each process's parameters contiguously, to send one message.
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults,
    ):
        if overlap_with_ddp:
            raise unsupported(
                "torch.distributed.optim.ZeroRedundancyOptimizer", "overlap_with_ddp is not supported"
            )
        params = self._checked(params)
        self.initialized = False
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self.process_group = resolve(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._optim_defaults, self._optim_constructor = defaults, optimizer_class
        self._all_state_dicts: list = []
        self._build()
        self.initialized = True

    @staticmethod
    def _checked(params) -> list:
        if isinstance(params, Tensor):
            raise TypeError(f"`params` argument should be an iterable of Tensors, but got {params.type()}")
        params = list(params)
        if not params:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        for p in params:
            if not isinstance(p, (Tensor, dict)):
                raise TypeError(
                    f"`params` argument should be an iterable of Tensors or dicts, but got an iterable containing {type(p)}"
                )
        return params

    # ---- distribution of the parameters
    def _build(self) -> None:
        """Distributes the parameters and creates this process's optimizer."""
        self._parts = self._partition_parameters()
        self._owner = {
            p: rank for rank, groups in enumerate(self._parts) for group in groups for p in group["params"]
        }
        own = self._parts[self.rank]
        state = self.optim.state if self.initialized else None
        self.optim = self._optim_constructor(own, **self._optim_defaults)
        if state is not None:
            self.optim.state.update(state)
        self._buckets = self._joined() if self.parameters_as_bucket_view else []

    def _partition_parameters(self) -> list:
        """The parameter groups of each process."""
        parts: list = [[] for _ in range(self.world_size)]
        loads = [0] * self.world_size
        for group in self.param_groups:
            members: list = [[] for _ in range(self.world_size)]
            for p in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = loads.index(min(loads))
                members[rank].append(p)
                loads[rank] += p.numel()
            for rank, chosen in enumerate(members):
                parts[rank].append({**group, "params": chosen})
        return parts

    def _joined(self) -> list:
        """(flat tensor, owner) for each process and dtype. The parameters become views of the flat tensors."""
        made = []
        for rank, groups in enumerate(self._parts):
            by_type: dict = {}
            for p in chain.from_iterable(group["params"] for group in groups):
                by_type.setdefault((p.dtype, str(p.device)), []).append(p)
            for same in by_type.values():
                flat = ops.cat([p.detach().reshape(-1) for p in same])
                start = 0
                for p in same:
                    p.data = flat.narrow(0, start, p.numel()).view(p.shape)
                    start += p.numel()
                made.append((flat, rank))
        return made

    @property
    def _order(self) -> list:
        return list(chain.from_iterable(group["params"] for group in self.param_groups))

    def add_param_group(self, param_group: dict) -> None:
        """Adds a parameter group and redistributes all parameters. Each process keeps its existing state."""
        super().add_param_group(param_group)
        if self.initialized:
            self._build()

    # ---- steps
    def step(self, closure=None, **kwargs):
        """Steps this process's parameters, then broadcasts all new values. Returns the closure's loss."""
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._sync(self.param_groups, self.optim.param_groups)
        if any(group["params"] for group in self.optim.param_groups):
            self.optim.step(**kwargs)
        self._sync(self.optim.param_groups, self.param_groups)
        self._give()
        return loss

    @staticmethod
    def _sync(source, target) -> None:
        """Copies the hyper-parameters, which a scheduler may have changed."""
        for one, other in zip(source, target, strict=True):
            for key, value in one.items():
                if key != "params":
                    other[key] = value

    def _give(self) -> None:
        with no_grad():
            if self.parameters_as_bucket_view:
                works = [collectives.broadcast(flat, group=self.process_group, group_src=rank, async_op=True)
                         for flat, rank in self._buckets]  # fmt: skip
            else:
                works = [collectives.broadcast(p.detach(), group=self.process_group, group_src=self._owner[p], async_op=True)
                         for p in self._order]  # fmt: skip
            for work in works:
                work.wait()

    # ---- joining
    def join_hook(self, **kwargs):
        """The hook that follows the steps of the other processes."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self):
        """The device of the parameters."""
        return self._order[0].device

    @property
    def join_process_group(self):
        """The group."""
        return self.process_group

    # ---- state
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers the state of all processes on process `to`, in host memory. All processes must call this."""
        own = tree_map(lambda x: x.detach().cpu() if isinstance(x, Tensor) else x, self.optim.state_dict())
        gathered = [None] * self.world_size if self.rank == to else None
        objects.gather_object(own, gathered, group=self.process_group, group_dst=to)
        self._all_state_dicts = gathered or []

    def state_dict(self) -> dict:
        """The complete state in the optimizer's usual form, on the process where it was consolidated."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        self._sync(self.optim.param_groups, self.param_groups)
        whole = {"state": {}, "param_groups": super().state_dict()["param_groups"]}
        number = {p: i for i, p in enumerate(self._order)}
        for groups, part in zip(self._parts, self._all_state_dicts, strict=True):
            own = list(chain.from_iterable(group["params"] for group in groups))
            for i, value in part["state"].items():
                whole["state"][number[own[i]]] = value
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict: dict) -> None:
        """Loads this process's part of a complete state dict."""
        order = self._order
        own = {
            p: i
            for i, p in enumerate(chain.from_iterable(group["params"] for group in self._parts[self.rank]))
        }
        state = {own[order[i]]: copy.deepcopy(v) for i, v in state_dict["state"].items() if order[i] in own}
        groups = self.optim.state_dict()["param_groups"]
        self._sync(state_dict["param_groups"], groups)
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self._sync(self.optim.param_groups, self.param_groups)
