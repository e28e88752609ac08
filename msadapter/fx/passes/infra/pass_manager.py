"""torch.fx.passes.infra.pass_manager: runs passes in an order that fits conditions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from .... import nn
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable) -> Callable:
    """Return a pass that returns a PassResult, made of one that changes the module or returns another one."""
    if fn is None:
        return None

    @functools.wraps(fn, assigned=("__name__", "__doc__", "__module__") if inspect.isfunction(fn) else ())
    def wrapped(gm):
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, nn.Module) else gm, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(constraint: Callable, passes: list[Callable]) -> None:
    """RuntimeError for two passes whose order a condition does not allow."""
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :]):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at index "
                    f"{j} in pass list."
                )


def _topological_sort_passes(passes: list[Callable], constraints: list[Callable]) -> list[Callable]:
    """Return passes in an order that all conditions allow. RuntimeError if there is none."""
    if not constraints:
        return passes
    # pass -> those that have to run before it: the conditions refuse the other order
    before = {a: [b for b in passes if b != a and not all(c(a, b) for c in constraints)] for a in passes}
    made: list[Callable] = []
    left = list(passes)
    while left:
        ready = [p for p in left if all(b in made for b in before[p])]
        if not ready:
            raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
        made += ready
        left = [p for p in left if p not in ready]
    return made


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """Return the condition that one pass runs before another one."""
    return lambda a, b: a != that or b != this


def _name(fn) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


class PassManager:
    """Runs passes.

    Args:
        passes: functions of a module that return a PassResult.
        constraints: conditions: functions of two passes, true if the first may run before the second.
        steps: how often all passes run at most. They end when nothing changes any more.
        run_checks_after_each_pass: whether the check runs after each pass, and not only before the first.
        suppress_check_failures: kept for what PyTorch's class has; its checks raise errors too.
    """

    def __init__(self, passes=None, constraints=None, steps=None, run_checks_after_each_pass: bool = False,
                 suppress_check_failures: bool = False):  # fmt: skip
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        """Add a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Add a condition."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError if the passes are in an order that a condition does not allow."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that all conditions allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Set the function of a module that raises an error for one that is not right."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module) -> None:
        """Raise an error for a module that is not right. `add_checks` sets another function."""

    def __call__(self, module) -> PassResult:
        """Run the passes."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                try:
                    result = self._run(fn, module)
                except Exception as error:
                    done = list(map(_name, self.passes[:i]))
                    text = f"An error occurred when running the '{_name(fn)}' pass after the following passes: {done}"
                    raise Exception(text) from error  # noqa: TRY002 (PyTorch's class)
                module, modified = result.graph_module, modified or result.modified
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run(self, fn, module) -> PassResult:
        result = fn(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name(fn)} should be type PassResult.Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result
