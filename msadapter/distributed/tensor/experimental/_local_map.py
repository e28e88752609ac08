"""Applies functions of plain tensors to the local tensors of DTensors."""

from __future__ import annotations

import functools

from ....utils._pytree import tree_flatten, tree_unflatten
from .._dtensor import DTensor


def _layouts(given, count: int) -> list:
    """The placements of each of ``count`` values, from one for all or one for each."""
    if given is None or (given and not isinstance(given[0], (list, tuple, type(None)))):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"local_map: got placements for {len(given)} values, but there are {count} values")
    return list(given)


def local_map(
    func=None,
    out_placements=None,
    in_placements=None,
    in_grad_placements=None,
    device_mesh=None,
    *,
    redistribute_inputs: bool = False,
):
    """Calls func on the local tensors of DTensor arguments and makes DTensors with ``out_placements`` from its results.

    in_placements: the required placements of arguments, None for arguments that are not DTensors. Others are redistributed with
    redistribute_inputs; otherwise ValueError is raised. in_grad_placements: the placements in which gradients arrive.
    out_placements: None leaves the results plain.
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            device_mesh=device_mesh,
            in_grad_placements=in_grad_placements,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        mesh, (leaves, spec) = device_mesh, tree_flatten(args)
        wanted, arriving = _layouts(in_placements, len(leaves)), _layouts(in_grad_placements, len(leaves))
        for i, x in enumerate(leaves):
            if not isinstance(x, DTensor):
                continue
            mesh = mesh or x.device_mesh
            if wanted[i] is not None and x.placements != tuple(wanted[i]):
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg {x} in local_map has a mismatched placements: arg placements is {x.placements} but the input "
                        f"placements is {tuple(wanted[i])}! If redistribute_inputs is wanted, set it to True."
                    )
                x = x.redistribute(mesh, wanted[i])
            leaves[i] = x.to_local(grad_placements=arriving[i])
        result = func(*tree_unflatten(leaves, spec), **kwargs)
        if mesh is None or out_placements is None:
            return result
        made, out_spec = tree_flatten(result)
        layouts = _layouts(out_placements, len(made))
        return tree_unflatten(
            [
                x if p is None else DTensor.from_local(x, mesh, p, run_check=False)
                for x, p in zip(made, layouts, strict=True)
            ],
            out_spec,
        )

    return wrapped
