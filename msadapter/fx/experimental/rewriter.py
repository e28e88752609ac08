"""torch.fx.experimental.rewriter: programs of which statements are changed before they are traced."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
import types

from ... import nn
from .._symbolic_trace import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Changes the statements of a function: `assert` calls torch._assert, and a variable with a type calls `annotate`."""

    def rewrite(self, fn: types.FunctionType) -> types.FunctionType:
        """Return the changed function, with the globals of the other."""
        source = textwrap.dedent("".join(inspect.getsourcelines(fn)[0]))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        space: dict = {}
        exec(compile(tree, "", "exec"), {**fn.__globals__}, space)
        (made,) = space.values()
        changed = types.FunctionType(
            made.__code__, fn.__globals__, made.__name__, made.__defaults__, made.__closure__
        )
        changed = functools.update_wrapper(changed, made)
        changed.__kwdefaults__ = copy.copy(made.__kwdefaults__)
        return changed

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Return a call of torch._assert, which can be recorded, for an `assert`."""
        call = ast.parse("torch._assert()", mode="eval").body
        call.args = [node.test, node.msg or ast.Constant(value="")]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.Assign:
        """Return a call of `annotate`, which gives the node its type, for an assignment with a type."""
        function = ast.Name(id="annotate", ctx=ast.Load())
        value = ast.Call(func=function, args=[node.value, node.annotation], keywords=[])
        return ast.Assign(targets=[node.target], value=value)


class RewritingTracer(Tracer):
    """A tracer of changed programs, which records also their assertions and the types of their variables."""

    def trace(self, root, concrete_args=None):
        return super().trace(_rewritten(root), concrete_args)


def _rewritten(program):
    """Return a function, or a module with all modules in it, with changed statements."""
    if not isinstance(program, nn.Module):
        return AST_Rewriter().rewrite(program)

    class RewrittenModule(nn.Module):
        """The module with another forward."""

        def __init__(self, original):
            super().__init__()
            for name, value in original.__dict__.items():
                changed = _rewritten(value) if isinstance(value, nn.Module) else value
                self.__dict__[name] = copy.copy(changed)

    forward = program.forward
    RewrittenModule.forward = AST_Rewriter().rewrite(getattr(forward, "__func__", forward))
    return RewrittenModule(program)
