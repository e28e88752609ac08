"""The parameters of one fully_shard call, which are gathered, released and reduced together."""

from __future__ import annotations

from .... import ops
from ....autograd import no_grad
from ... import collectives
from ...reduce_op import ReduceOp


class FSDPGroup:
    """Gathers all parameters with one message per dtype, and reduces all gradients with one message per dtype."""

    def __init__(self, params, info, policy):
        self.params, self.info, self.policy = params, info, policy
        self.gathered = False
        self.reduces, self.all_reduces, self.resharding = True, True, True
        self.divide_factor = None
        self.all_reduce_hook = None

    # ---------------------------------------------------------------- parameters
    def reread(self) -> None:
        """Takes over the modules' parameters after they were moved or loaded."""
        for param in self.params:
            param.reread()

    def unshard(self) -> None:
        """Gathers every parameter and registers the unsharded parameters in the modules."""
        if self.gathered:
            return
        with no_grad():
            by_type: dict = {}
            for param in self.params:
                by_type.setdefault((param.gathered_dtype, str(param.device)), []).append(param)
            for params in by_type.values():
                self._gather(params)
        self.gathered = True

    def _gather(self, params) -> None:
        messages = [p.message() for p in params]
        flat = ops.cat(messages)
        count = self.info.shard_size
        parts = ops.empty((count, flat.numel()), dtype=flat.dtype, device=flat.device)
        collectives.all_gather_single(parts.view(-1), flat, self.info.shard_group)
        start = 0
        for param, message in zip(params, messages, strict=True):
            param.receive(parts.narrow(1, start, message.numel()))
            start += message.numel()

    def reshard(self) -> None:
        """Releases the unsharded parameters and registers the sharded ones in the modules."""
        if not self.gathered:
            return
        for param in self.params:
            param.release()
        self.gathered = False

    # ---------------------------------------------------------------- gradients
    def reduce(self) -> None:
        """Reduce-scatters the gradients: averages them over all processes, and each process keeps its shard."""
        if not self.reduces:
            return
        with no_grad():
            by_type: dict = {}
            for param in self.params:
                grad = param.take_gradient()
                if grad is not None:
                    dtype = self.policy.reduce_dtype or grad.dtype
                    by_type.setdefault((dtype, str(grad.device)), []).append((param, grad))
            for (dtype, _), pairs in by_type.items():
                self._reduce(pairs, dtype)

    def _reduce(self, pairs, dtype) -> None:
        rows = [param.rows(grad, dtype) for param, grad in pairs]
        flat = ops.cat(rows, 1)
        out = ops.empty((flat.shape[1],), dtype=dtype, device=flat.device)
        collectives.reduce_scatter_single(out, flat.view(-1), ReduceOp.SUM, self.info.shard_group)
        if self.info.replicate_group is not None and self.all_reduces:
            collectives.all_reduce(out, ReduceOp.SUM, self.info.replicate_group)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(out)
        out = out / (self.divide_factor or self.info.mesh.size())
        start = 0
        for (param, _), row in zip(pairs, rows, strict=True):
            param.give_gradient(out.narrow(0, start, row.shape[1]))
            start += row.shape[1]
