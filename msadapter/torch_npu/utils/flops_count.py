"""torch_npu.utils.flops_count: counts floating point operations of matrix products.

A multiplication and an addition count as two operations.
"""

from __future__ import annotations

from ...overrides import TorchFunctionMode


def _of_matmul(a, b) -> int:
    rows = a.numel() // a.shape[-1] if a.dim() else 0
    columns = b.shape[-1] if b.dim() > 1 else 1
    batch = 1
    if b.dim() > 2 and b.dim() > a.dim():
        batch = b.shape[:-2].numel()
    return 2 * batch * rows * a.shape[-1] * columns


def _flops(name: str, args) -> int:
    # torch_npu counts these functions alone; other operators have no count, so this is not a fact of theirs.
    if name in ("matmul", "mm", "bmm", "__matmul__", "mv", "dot"):
        return _of_matmul(args[0], args[1])
    if name in ("addmm", "baddbmm", "addbmm"):
        return _of_matmul(args[1], args[2])
    if name == "linear":
        return 2 * args[0].numel() * args[1].shape[0]
    return 0


class _Counting(TorchFunctionMode):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_function__(self, func, types, args=(), kwargs=None):
        flops = _flops(getattr(func, "__name__", ""), args)
        self.counter._traversed += flops
        if not self.counter._paused:
            self.counter._recorded += flops
        return func(*args, **(kwargs or {}))


class FlopsCounter:
    """Counts between start() and stop(). get_flops() returns [without pauses, with pauses]."""

    def __init__(self):
        self._recorded = self._traversed = 0
        self._paused = False
        self._mode = None

    def start(self) -> None:
        """Start counting from zero."""
        self.stop()
        self._recorded = self._traversed = 0
        self._mode = _Counting(self)
        self._mode.__enter__()

    def stop(self) -> None:
        """Stop counting."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
        self._paused = False

    def pause(self) -> None:
        """Begin a pause for recomputation, in which only the second number grows."""
        self._paused = True

    def resume(self) -> None:
        """End the pause."""
        self._paused = False

    def get_flops(self) -> list[int]:
        """Return [operations outside of pauses, all operations]."""
        return [self._recorded, self._traversed]
