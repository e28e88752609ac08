"""Averages parameters over processes."""

from __future__ import annotations

from .... import ops
from ....autograd import no_grad
from ....nn import Parameter
from ... import collectives
from ...process_group import resolve


def average_parameters(params, process_group) -> None:
    """Replaces every parameter by its average over a group, in place."""
    pg = resolve(process_group)
    if pg is None:
        return
    params = list(params)
    with no_grad():
        by_type: dict = {}
        for p in params:
            by_type.setdefault(p.dtype, []).append(p)
        for same in by_type.values():
            flat = ops.cat([p.detach().reshape(-1) for p in same]).div_(pg.size())
            collectives.all_reduce(flat, group=pg)
            for p, part in zip(same, flat.split([p.numel() for p in same]), strict=True):
                p.detach().copy_(part.view(p.shape))


def get_params_to_average(params) -> list:
    """The parameters with a gradient, from an iterable of parameters or an optimizer's parameter groups."""
    found = []
    for p in params:
        members = [p] if isinstance(p, Parameter) else p["params"]
        found += [q for q in members if q.grad is not None]
    return found


def average_parameters_or_parameter_groups(params, process_group) -> None:
    """Averages the parameters that have a gradient."""
    average_parameters(iter(get_params_to_average(params)), process_group)
