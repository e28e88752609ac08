"""Nested containers as a list of leaves and a description of the structure."""

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..ops._declare import namespaces

__all__ = [
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
]
# Names for annotations of other projects.
PyTree = Context = DumpableContext = Any
FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]


class NodeDef(NamedTuple):
    """The functions that flatten and unflatten one type of container, and those that name its members."""

    flatten_fn: Any
    unflatten_fn: Any
    flatten_with_keys_fn: Any = None


@dataclass(frozen=True)
class SequenceKey:
    """The index of a member of a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """Return this member of a container."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key of a member of a mapping."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """Return this member of a container."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute of a container."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """Return this member of a container."""
        return getattr(obj, self.name)


SUPPORTED_NODES: dict = {}
_NAMES: dict = {}


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Register a type of container: flatten_fn(x) -> (members, context), unflatten_fn(members, context) -> x."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, flatten_with_keys_fn)
    _NAMES[serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"] = cls


_register_pytree_node = register_pytree_node


def _mapping(make):
    return (
        _dict_flatten,
        lambda values, keys: make(zip(keys, values, strict=True)),
        _dict_flatten_with_keys,
    )


def _dict_flatten(d):
    """Return (values, keys) of a mapping."""
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d):
    """Return (pairs of a key entry and a value, keys) of a mapping."""
    return [(MappingKey(k), v) for k, v in d.items()], list(d.keys())


def _dict_unflatten(values, context):
    """Return the dict that has these keys and values."""
    return dict(zip(context, values, strict=True))


def _sequence(make):
    return (
        lambda s: (list(s), None),
        lambda values, _: make(values),
        lambda s: ([(SequenceKey(i), v) for i, v in enumerate(s)], None),
    )


for _type, _functions in (
    (dict, _mapping(dict)),
    (OrderedDict, _mapping(OrderedDict)),
    (list, _sequence(list)),
    (tuple, _sequence(tuple)),
    *((named, _sequence(named)) for named in namespaces["return_types"].values()),
):
    register_pytree_node(_type, _functions[0], _functions[1], flatten_with_keys_fn=_functions[2])
register_pytree_node(
    namedtuple,
    lambda t: (list(t), type(t)),
    lambda values, kind: kind._make(values),
    serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=lambda t: ([(GetAttrKey(f), getattr(t, f)) for f in t._fields], type(t)),
)
register_pytree_node(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d.keys())]),
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    flatten_with_keys_fn=lambda d: ([(MappingKey(k), v) for k, v in d.items()], [d.default_factory, list(d)]),
)
register_pytree_node(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda values, maxlen: deque(values, maxlen=maxlen),
    flatten_with_keys_fn=lambda d: ([(SequenceKey(i), v) for i, v in enumerate(d)], d.maxlen),
)


def _is_namedtuple(value) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def _get_node_type(value):
    return namedtuple if _is_namedtuple(value) and type(value) not in SUPPORTED_NODES else type(value)


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Return whether a value is a leaf: `is_leaf` accepts it, or its type is not a registered container."""
    return bool(is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


@dataclass
class TreeSpec:
    """The structure of a container: its type, its context and the structures of its members."""

    type: Any
    context: Any
    children_specs: list
    num_nodes: int = field(init=False)
    num_leaves: int = field(init=False)
    num_children: int = field(init=False)

    def __post_init__(self):
        self.num_children = len(self.children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in self.children_specs)
        self.num_leaves = (
            sum(child.num_leaves for child in self.children_specs) if self.type is not None else 1
        )

    def is_leaf(self) -> bool:
        """Return whether this is the structure of a single value."""
        return self.type is None

    def unflatten(self, leaves):
        """Return the tree that has this structure and these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                "refers to a "
                f"pytree that holds {self.num_leaves} items ({self})."
            )
        return self._fill(iter(leaves))

    def _fill(self, leaves):
        if self.type is None:
            return next(leaves)
        members = [child._fill(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(members, self.context)

    def flatten_up_to(self, tree) -> list:
        """Return the parts of `tree` at the places where this structure has leaves."""
        if self.type is None:
            return [tree]
        if _get_node_type(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        members, context = SUPPORTED_NODES[self.type].flatten_fn(tree)
        if len(members) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(members)}.")
        if self.type in (dict, OrderedDict) and context != self.context:
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {self.context}, but got {context}.")
            members = [tree[key] for key in self.context]
        parts = []
        for child, member in zip(self.children_specs, members, strict=True):
            parts.extend(child.flatten_up_to(member))
        return parts

    def __hash__(self):
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self):
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The structure of a single value."""

    def __init__(self):
        super().__init__(None, None, [])

    def __hash__(self):
        return 1


def tree_flatten(tree, is_leaf=None):
    """Return (leaves, structure) of a tree. The structure is a TreeSpec."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LeafSpec()
    kind = _get_node_type(tree)
    members, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(member, leaves, is_leaf) for member in members])


def tree_unflatten(leaves, treespec):
    """Return the tree that has this structure and these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec "
            "but got "
            f"item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterate over the leaves of a tree."""
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree, is_leaf=None) -> list:
    """Return the leaves of a tree as a list."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs) -> list:
    """Return the leaves of the arguments of a call as a list: first those of `args`, then those of `kwargs`."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_leaves(value)]


def tree_structure(tree, is_leaf=None) -> TreeSpec:
    """Return the structure of a tree, a TreeSpec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """Return a tree in which func(leaf, leaves of the other trees at the same places) replaces each leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, *columns))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call func for every leaf, and return the unchanged tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    for _ in map(func, *columns):
        pass
    return tree


def map_only(type_or_types_or_pred, /):
    """Return a decorator that applies a function only to leaves of some types, or to leaves that a predicate accepts."""
    if isinstance(type_or_types_or_pred, (type, tuple)) or hasattr(type_or_types_or_pred, "__args__"):
        chosen = lambda x: isinstance(x, type_or_types_or_pred)  # noqa: E731
    elif callable(type_or_types_or_pred):
        chosen = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return lambda x: func(x) if chosen(x) else x

    return decorate


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    """Like tree_map, but only for leaves of some types. The other leaves stay as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, func, tree, is_leaf=None):
    """Like tree_map_, but only for leaves of some types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    """Return whether pred is true for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    """Return whether pred is true for at least one leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, pred, tree, is_leaf=None) -> bool:
    """Return whether pred is true for all leaves of some types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, pred, tree, is_leaf=None) -> bool:
    """Return whether pred is true for at least one leaf of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _paths(tree, path, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    named = SUPPORTED_NODES[_get_node_type(tree)].flatten_with_keys_fn
    if named is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, member in named(tree)[0]:
        yield from _paths(member, (*path, key), is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """Return ([(path, leaf)], structure) of a tree."""
    return list(_paths(tree, (), is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None) -> list:
    """Return [(path, leaf)] of a tree."""
    return list(_paths(tree, (), is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """Like tree_map, but func also gets the path of the leaf: func(path, leaf, ...)."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [list(column) for column in zip(*pairs, strict=True)] or [[], []]
    return spec.unflatten(map(func, *columns, *(spec.flatten_up_to(rest) for rest in rests)))


def keystr(path) -> str:
    """Return a path as text, for example ['a'][0].name."""
    return "".join(str(key) for key in path)


def key_get(obj, path):
    """Return the part of a tree at a path."""
    for key in path:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """Return the leaves of `tree`, each repeated for all leaves of `treespec` below it, or None if they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    members, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if context != treespec.context or len(members) != treespec.num_children:
        return None
    result = []
    for member, child in zip(members, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(member, child, is_leaf)
        if part is None:
            return None
        result += part
    return result


def treespec_dumps(treespec, protocol=None) -> str:
    """Return a structure as JSON. Its contexts must be JSON values."""
    names = {kind: name for name, kind in _NAMES.items()}

    def plain(spec):
        if spec.is_leaf():
            return {"type": None, "context": None, "children_spec": []}
        return {
            "type": names[spec.type],
            "context": json.dumps(spec.context),
            "children_spec": [plain(child) for child in spec.children_specs],
        }

    return json.dumps([1 if protocol is None else protocol, plain(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the structure that treespec_dumps has written."""

    def build(plain):
        if plain["type"] is None:
            return LeafSpec()
        return TreeSpec(
            _NAMES[plain["type"]],
            json.loads(plain["context"]),
            [build(child) for child in plain["children_spec"]],
        )

    return build(json.loads(serialized)[1])


def instances_in(tree, kind: type) -> list:
    """Return every instance of ``kind`` in nested tuples, lists, dicts and slices, in their order."""
    if isinstance(tree, kind):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif isinstance(tree, slice):
        tree = (tree.start, tree.stop, tree.step)
    elif not isinstance(tree, (tuple, list)):
        return []
    return [x for part in tree for x in instances_in(part, kind)]
