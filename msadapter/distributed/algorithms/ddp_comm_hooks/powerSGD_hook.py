"""PowerSGD (Vogels et al., 2019): approximates gradients by low-rank products, with one power iteration per step."""

from __future__ import annotations

from .... import ops
from ....futures import Future
from ....ops._generator import Generator
from ... import collectives
from ...process_group import resolve
from ...reduce_op import ReduceOp
from .default_hooks import allreduce_hook


class PowerSGDState:
    """State of the hook.

    matrix_approximation_rank: the rank. start_powerSGD_iter: before this step, gradients are averaged without compression.
    min_compression_rate: tensors that would shrink by less are not compressed. use_error_feedback: add the approximation
    error to the gradients of the next step. warm_start: start the power iteration from the matrices of the last step.
    """

    def __init__(
        self,
        process_group,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = Generator().manual_seed(random_seed)
        self.errors: dict = {}
        self.qs: dict = {}
        self.iter = 0

    def maybe_increase_iter(self, bucket) -> None:
        """Increments the step counter at the last bucket of a step."""
        if bucket.is_last():
            self.iter += 1


def _orthogonalized(matrix, epsilon: float):
    """Orthonormalizes the columns by QR, or, if epsilon is not 0, by Gram-Schmidt, which tolerates dependent columns."""
    if epsilon == 0:
        return ops.linalg_qr(matrix)[0]
    columns: list = []
    for column in matrix.unbind(1):
        for other in columns:
            column = column - (column @ other) * other
        columns.append(column / (column.norm() + epsilon))
    return ops.stack(columns, 1)


def _average(tensor, pg) -> None:
    collectives.all_reduce(tensor, ReduceOp.SUM, pg)
    tensor.div_(pg.size())


def _rank_of(state, gradient) -> int:
    """The rank for a gradient; 0 if compression would not save enough."""
    if gradient.ndim < 2:
        return 0
    n, m = gradient.shape[0], gradient.numel() // gradient.shape[0]
    rank = min(n, m, state.matrix_approximation_rank)
    return rank if (n + m) * rank * state.min_compression_rate < n * m else 0


def _compressed(state, key, gradient, rank: int, pg):
    """The low-rank approximation of the average of a gradient."""
    matrix = gradient.reshape(gradient.shape[0], -1)
    q = state.qs.get(key) if state.warm_start else None
    if q is None:
        q = _orthogonalized(
            ops.randn(matrix.shape[1], rank, generator=state.rng, dtype=matrix.dtype),
            state.orthogonalization_epsilon,
        )
    p = matrix @ q
    _average(p, pg)
    p = _orthogonalized(p, state.orthogonalization_epsilon)
    q = matrix.t() @ p
    _average(q, pg)
    if state.warm_start:
        state.qs[key] = q
    return (p @ q.t()).reshape(gradient.shape)


def powerSGD_hook(state: PowerSGDState, bucket):
    """The communication hook. `state` is the first argument of register_comm_hook."""
    pg = resolve(state.process_group)
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(pg, bucket)
    buffer, key = bucket.buffer(), bucket.index()
    if state.use_error_feedback and key in state.errors:
        buffer.add_(state.errors[key])
    before = buffer.clone()
    plain = []
    for i, gradient in enumerate(bucket.gradients()):
        rank = _rank_of(state, gradient)
        if rank:
            gradient.copy_(_compressed(state, (key, i), gradient, rank, pg))
        else:
            plain.append(gradient)
    if state.use_error_feedback:
        state.errors[key] = before - buffer  # zero for uncompressed gradients
    if plain:
        flat = ops.cat([g.reshape(-1) for g in plain])
        _average(flat, pg)
        for gradient, part in zip(plain, flat.split([g.numel() for g in plain]), strict=True):
            gradient.copy_(part.view(gradient.shape))
    state.maybe_increase_iter(bucket)
    future = Future()
    future.set_result(buffer)
    return future
