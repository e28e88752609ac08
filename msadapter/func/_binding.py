"""Binding of a call's arguments to the parameters in the schema of a table operator."""

from __future__ import annotations

from ..ops._declare import declaration_of  # noqa: F401


def decorator_of(rules: dict):
    """Return a decorator ``rule(*names)``, which registers a rule in ``rules`` for operators by the names in their schemas."""

    def rule(*names):
        def decorate(function):
            for name in names:
                rules[name] = function
            return function

        return decorate

    return rule


def bind(declaration, args, kwargs) -> dict:
    """Return the value of every parameter, in the schema's order. TypeError if the arguments do not fit."""
    parameters = declaration.schema.parameters
    positional = [p for p in parameters if not p.keyword_only]
    args = list(args)
    if len(args) > len(positional) or _has_trailing_sizes(positional, args):
        args = _gathered(positional, args)
    bound = dict(zip((p.name for p in positional), args, strict=False))
    rest = dict(kwargs)
    for p in parameters:
        if p.name in bound:
            continue
        for name in (p.name, *p.aliases):
            if name in rest:
                bound[p.name] = rest.pop(name)
                break
        else:
            if p.required:
                raise TypeError(f"{declaration.schema.name}(): missing argument '{p.name}'")
            bound[p.name] = p.default
    if rest:
        raise TypeError(f"{declaration.schema.name}(): unexpected argument '{next(iter(rest))}'")
    return {p.name: bound[p.name] for p in parameters}


def _has_trailing_sizes(positional, args) -> bool:
    """Return whether several ints stand for one list, as in ``x.permute(1, 0)``. The list is the last parameter then."""
    for i, p in enumerate(positional[:2]):
        if p.type == "int[]" and p is positional[-1]:
            return len(args) > i + 1 and all(isinstance(a, int) and not isinstance(a, bool) for a in args[i:])
    return False


def _gathered(positional, args) -> list:
    for i, p in enumerate(positional[:2]):
        if p.type == "int[]":
            return [*args[:i], list(args[i:])]
    raise TypeError(f"takes {len(positional)} positional arguments but {len(args)} were given")
