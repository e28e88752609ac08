"""How the members of a container are found by the structure of another one, for containers in the arguments of graphs."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..utils import _pytree

FlattenFuncSpec = Callable[[Any, _pytree.TreeSpec], list]
FlattenFuncExactMatchSpec = Callable[[Any, _pytree.TreeSpec], bool]
SUPPORTED_NODES: dict[Any, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Say how a container is taken apart by a structure, and whether it fits that structure exactly."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: _pytree.TreeSpec) -> list[Any]:
    """Return the leaves of a container, in the order of the structure.

    Raises:
        RuntimeError: the container has another structure, of a type that is not registered.
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        leaves, found = _pytree.tree_flatten(pytree)
        if found != spec:
            raise RuntimeError(
                f"Real spec {found} of object {pytree} is different from expected spec {spec}. Please file an issue at "
                "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml"
            )
        return leaves
    members = SUPPORTED_NODES[spec.type](pytree, spec)
    result: list[Any] = []
    for member, below in zip(members, spec.children_specs, strict=False):
        result += tree_flatten_spec(member, below)
    return result


def _by_key(container: Any, spec: _pytree.TreeSpec) -> list[Any]:
    return [container[key] for key in spec.context]


def _by_number(container: Any, spec: _pytree.TreeSpec) -> list[Any]:
    return [container[number] for number in range(spec.num_children)]


def _same_keys(container: Any, spec: _pytree.TreeSpec) -> bool:
    return list(container) == list(spec.context)


def _same_length(container: Any, spec: _pytree.TreeSpec) -> bool:
    return len(container) == spec.num_children


register_pytree_flatten_spec(dict, _by_key, _same_keys)
register_pytree_flatten_spec(list, _by_number, _same_length)
register_pytree_flatten_spec(tuple, _by_number, _same_length)
register_pytree_flatten_spec(namedtuple, _by_number, _same_length)  # the type that their structures have
