"""torch.utils: trees of containers, handles of hooks, DLPack, weak dictionaries, exchanged tensors, counted operations."""

from collections import OrderedDict, namedtuple

import numpy as np

_Point = namedtuple("_Point", "x y")


def _tree(torch):
    return {"a": [1, (2, None)], "b": OrderedDict(z=3, y=_Point(4, torch.ones(2)))}


def tree_order_and_rebuilding(torch):
    p = torch.utils._pytree
    leaves, spec = p.tree_flatten(_tree(torch))
    again = p.tree_unflatten(leaves, spec)
    return [leaves, spec.num_leaves, again, type(again["b"]["y"]).__name__, type(again["a"][1]).__name__]


def tree_maps(torch):
    p = torch.utils._pytree
    doubled = p.tree_map(lambda v: None if v is None else v * 2, _tree(torch))
    only = p.tree_map_only(int, lambda v: -v, _tree(torch))
    two = p.tree_map(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)])
    return [doubled, only, two]


def tree_questions(torch):
    p = torch.utils._pytree
    return [
        p.tree_all(lambda v: v > 0, [1, [2, 3]]),
        p.tree_any(lambda v: v > 2, [1, [2, 3]]),
        p.tree_all_only(int, lambda v: v > 0, [1, "a"]),
        p.tree_any_only(str, lambda v: v == "b", [1, "a"]),
        p.tree_leaves([[], {}, (1,)]),
        p.tree_structure([1, 2]) == p.tree_structure([3, 4]),
        p.tree_structure([1, 2]) == p.tree_structure((3, 4)),
    ]


def tree_paths(torch):
    p = torch.utils._pytree
    found, _ = p.tree_flatten_with_path({"a": [1, (2,)], "b": _Point(3, 4)})
    return [[p.keystr(path), leaf] for path, leaf in found]


def tree_with_own_leaves(torch):
    p = torch.utils._pytree
    return p.tree_leaves({"a": (1, 2), "b": [(3, 4)]}, is_leaf=lambda v: isinstance(v, tuple))


def tree_of_a_registered_class(torch):
    class Pair:
        def __init__(self, one, two):
            self.one, self.two = one, two

    p = torch.utils._pytree
    p.register_pytree_node(Pair, lambda v: ([v.one, v.two], "kept"), lambda values, kept: Pair(*values))
    again = p.tree_map(lambda v: v + 1, Pair(1, [2, 3]))
    return [p.tree_leaves(Pair(5, {"k": 6})), again.one, again.two]


def wrong_number_of_leaves(torch):
    p = torch.utils._pytree
    p.tree_unflatten([1], p.tree_structure([1, 2]))


def trees_that_do_not_match(torch):
    torch.utils._pytree.tree_map(lambda a, b: a, [1, 2], [1])


def structure_as_text(torch):
    p = torch.utils._pytree
    spec = p.tree_structure({"a": [1, (2, 3)]})
    return p.treespec_loads(p.treespec_dumps(spec)) == spec


def handles_of_hooks(torch):
    hooks = OrderedDict()
    handle = torch.utils.hooks.RemovableHandle(hooks)
    hooks[handle.id] = "hook"
    handle.remove()
    handle.remove()
    with torch.utils.hooks.RemovableHandle(hooks) as second:
        hooks[second.id] = "second"
        inside = len(hooks)
    return [second.id - handle.id, inside, len(hooks)]


def shared_memory_through_dlpack(torch):
    x = torch.arange(6.0).reshape(2, 3)
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x.t()))
    y[0, 0] = 9
    n = np.from_dlpack(x)  # which numpy 1 does not let anybody write to
    x[1, 2] = -1
    back = torch.from_dlpack(np.arange(4, dtype=np.int16))
    return [x, y, list(y.stride()), n.tolist(), back]


def dlpack_and_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    return [torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)), x.__dlpack__()]


def a_capsule_is_used_once(torch):
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    torch.utils.dlpack.from_dlpack(capsule)
    torch.utils.dlpack.from_dlpack(capsule)


def copies_and_devices_of_dlpack(torch):
    dlpack = torch.utils.dlpack
    x = torch.arange(4.0)
    found = [torch.from_dlpack is dlpack.from_dlpack]
    for options in ({}, {"copy": None}, {"copy": True}, {"copy": False}, {"device": "cpu"}, {"device": torch.device("cpu")},
                    {"device": "cpu", "copy": True}, {"device": "cpu", "copy": False}, {"device": None}):  # fmt: skip
        y = torch.from_dlpack(x, **options)
        found.append([y, y.data_ptr() == x.data_ptr()])
    for source, options in (
        (dlpack.to_dlpack(x), {"copy": True}),
        (dlpack.to_dlpack(x), {"device": "cpu"}),
        (x, {"device": 0}),
        (x, {"surprise": 1}),
    ):
        try:
            found.append(torch.from_dlpack(source, **options))
        except (AssertionError, TypeError, ValueError, RuntimeError, BufferError) as error:
            found.append([type(error).__name__, " ".join(str(error).split()[:5])])
    return found


def handles_of_tensors_and_nodes(torch):
    """All hooks have handles of one class, with ascending numbers."""
    kind = torch.utils.hooks.RemovableHandle
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    handles = [
        x.register_hook(lambda g: seen.append("tensor")),
        y.grad_fn.register_hook(lambda a, b: seen.append("node")),
        y.grad_fn.register_prehook(lambda g: seen.append("before")),
        x.register_post_accumulate_grad_hook(lambda t: seen.append("after")),
        torch.nn.Linear(1, 1).register_forward_hook(lambda *a: None),
        torch.autograd.graph.register_multi_grad_hook((x, y), lambda g: seen.append("both")),
    ]
    found = [[isinstance(h, kind) for h in handles], [type(h) is kind for h in handles[:5]]]
    y.sum().backward(retain_graph=True)
    found.append(list(seen))
    for handle in handles:
        handle.remove()
        handle.remove()
    seen.clear()
    y.sum().backward()
    numbers = [h.id for h in handles[:5]]
    return [*found, list(seen), numbers == sorted(set(numbers))]


def dictionary_by_identity(torch):
    from torch.utils.weak import WeakIdKeyDictionary

    kept, x, y = WeakIdKeyDictionary(), torch.ones(2), torch.ones(2)
    kept[x], kept[y] = "x", "y"
    before = [len(kept), kept[x], kept[y], torch.ones(2) in kept, x in kept]
    del y
    return [before, len(kept), [v for _, v in kept.items()], kept.pop(x), len(kept)]


def exchanged_tensors(torch):
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3))
    first = id(a)
    torch.utils.swap_tensors(a, b)
    return [a, b, id(a) == first]


def counted_operations(torch):
    from torch.utils.flop_counter import FlopCounterMode

    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Conv1d(2, 3, 2))
    with FlopCounterMode(display=False) as counted:
        net(torch.ones(2, 2, 4)).sum().backward()
    return counted.get_total_flops()


def recomputed_parts(torch):
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    torch.manual_seed(5)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2), torch.nn.Tanh()
    )
    found = []
    for run in (
        lambda x: net(x),
        lambda x: checkpoint(net, x, use_reentrant=False),
        lambda x: checkpoint(net, x, use_reentrant=True),
        lambda x: checkpoint_sequential(net, 2, x, use_reentrant=False),
    ):
        net.zero_grad()
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        torch.manual_seed(9)
        run(x).sum().backward()
        found.append([x.grad, net[0].weight.grad])
    return found
