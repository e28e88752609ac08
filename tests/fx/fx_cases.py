"""torch.fx: tracing, the text and code of graphs, and running, changing, copying and replacing them."""

from tests.golden.answers import expressions

SETUP = """
import collections, copy, inspect, math, operator, pickle, types, typing
import torch.fx as fx
from torch.fx import operator_schemas, traceback
tree = torch.utils._pytree.tree_structure
Pair = collections.namedtuple("Pair", "one two")
F = torch.nn.functional
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(3, 4)
        self.p = torch.nn.Parameter(torch.ones(4))
        self.seq = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))
        self.register_buffer("b", torch.ones(4))
    def forward(self, x, y=2, *, z=None):
        a = self.l(x) + self.p * self.b
        u, v = a.chunk(2, dim=-1)
        w = torch.cat([u, v], -1).relu().view(a.shape[0], -1)
        q = torch.relu(w)[:, 1:]
        k = {"a": q, "b": [q.size(0), -q]}
        return self.seq(w), k, w.sum()
m = M()
with torch.no_grad():
    for p in m.parameters():
        p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.1 - 0.3)
x = torch.arange(6.0).reshape(2, 3)
g = fx.symbolic_trace(m)
trace = fx.symbolic_trace
class Minus(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        return super().call_function(operator.sub if target is operator.add else target, args, kwargs)
class ToMinus(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(operator.sub if target is operator.add else target, args, kwargs)
class Through(fx.Tracer):
    def is_leaf_module(self, module, name):
        return isinstance(module, torch.nn.Linear)
def typed(x: torch.Tensor, y: int = 2) -> torch.Tensor:
    return x * y
def older(x, y, z):
    return x
older.__annotations__ = {  # those of this text would be strings
    "x": typing.List[str], "y": typing.Dict[str, typing.Tuple[int, torch.Tensor]], "z": list[int], "return": typing.List[str]
}
class Listed(fx.CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return f"def forward(self, args_list{maybe_return_annotation}):\\n    {', '.join(free_vars)}, = args_list"
    def process_inputs(self, *inputs):
        return inputs[0]
class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.ReLU())
    def forward(self, x):
        return self.inner(self.inner(x))
def nodes(graph):
    return [(n.op, n.name, str(n.args), str(n.kwargs), len(n.users), str(n.all_input_nodes)) for n in graph.nodes]
def summed(x, w):
    return torch.relu(x + w).sum() + torch.relu(x * 2 + w)
def inplace(x):
    y = x.clone()
    y += 1
    return y
def edited():
    gm = trace(lambda x: torch.sin(x) + torch.cos(x))
    for n in gm.graph.nodes:
        if n.target is torch.sin:
            with gm.graph.inserting_after(n):
                new = gm.graph.call_function(torch.exp, (n.args[0],))
            n.replace_all_uses_with(new)
            gm.graph.erase_node(n)
    gm.graph.lint()
    gm.recompile()
    return gm
def small():
    graph = fx.Graph()
    a = graph.placeholder("x")
    b = graph.call_function(torch.add, (a, 1))
    graph.output(b)
    return graph
def replaced(f, pattern, replacement):
    gm = trace(f)
    found = fx.replace_pattern(gm, pattern, replacement)
    return len(found), gm.code
def dead():
    graph = small()
    first = next(iter(graph.nodes))
    with graph.inserting_after(first):
        graph.call_function(torch.sin, (first,))
    return graph.eliminate_dead_code(), str(graph)
"""


def ordinary_model(torch):
    """A mix of layers, functionals and tensor methods. The names of nodes and the results are compared."""
    from torch import nn

    F = nn.functional

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.b, self.p = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2)
            self.e, self.att, self.fc = (
                nn.Embedding(5, 4),
                nn.MultiheadAttention(4, 2, batch_first=True),
                nn.Linear(4, 2),
            )

        def forward(self, x, i):
            h = self.p(F.relu(self.b(self.c(x)), inplace=True))
            h = F.adaptive_avg_pool2d(h, 1).flatten(1)
            h = F.interpolate(x, scale_factor=2).mean((2, 3)).sum(1, keepdim=True) + h
            k = F.layer_norm(self.e(i) + h.unsqueeze(1), (4,))
            a, _ = self.att(k, k, k)
            k = F.softmax(a @ k.transpose(1, 2) / 2.0, dim=-1) @ k
            q = torch.einsum("bik,bjk->bij", k, k)
            q = q.masked_fill(torch.triu(torch.ones(2, 2), 1).bool(), float("-inf")).softmax(-1)
            k = torch.stack([k, k]).sum(0)[:, -1]
            b, c = k.shape
            k = k.view(b, -1, c).squeeze(1)
            k = torch.where(k > 0, k, torch.zeros_like(k)).to(torch.float32).contiguous().clone()
            o = F.gelu(F.normalize(k, dim=-1), approximate="tanh") + F.silu(k)
            o = o + torch.sigmoid(k) * F.cosine_similarity(k, k).unsqueeze(-1)
            return {"out": self.fc(F.dropout(o, 0.5, self.training)), "q": q}

    m = Mixed().eval()
    g = torch.fx.symbolic_trace(m)
    x, i = torch.arange(384.0).reshape(2, 3, 8, 8) / 100, torch.tensor([[1, 2], [3, 4]])
    ours, theirs = g(x, i), m(x, i)
    again = torch.fx.Transformer(g).transform()(x, i)
    same = [torch.equal(ours[k], theirs[k]) and torch.equal(again[k], theirs[k]) for k in ("out", "q")]
    ours["out"].sum().backward()
    return [n.name for n in g.graph.nodes], same, g.c.weight is m.c.weight, m.c.weight.grad is not None


CASES = expressions(
    SETUP,
    [
        "str(g.graph)",
        "g.code",
        "nodes(g.graph)",
        "g(x)[0] - m(x)[0]",
        "g(x)[1]",
        "type(g).__name__",
        "sorted(n for n, _ in g.named_modules())",
        "sorted(g.state_dict())",
        "trace(lambda x: x + 1 if x.sum() > 0 else x)",
        "trace(lambda x: [i for i in x])",
        "trace(lambda x: len(x))",
        "trace(lambda x: range(x))",
        "trace(lambda *a, **k: a[0] + k['z']).code",
        "trace(lambda *a, **k: a[0] + k['z'])(x, z=2)",
        "trace(lambda x, y: x + y, concrete_args={'y': 3}).code",
        "trace(lambda x, y: x + y, concrete_args={'y': 3})(x, 3)",
        "trace(lambda x, y: x + y, concrete_args={'y': 3})(x, 4)",
        "Minus(trace(lambda x, y: (x + y) * 2)).run(x, x * 3)",
        "fx.Interpreter(g).run(x)[0]",
        "fx.Interpreter(trace(lambda x: x)).run()",
        "ToMinus(trace(lambda x, y: (x + y) * 2)).transform().code",
        "ToMinus(g).transform()(x)[0]",
        "replaced(summed, lambda a, b: torch.relu(a + b), lambda a, b: torch.tanh(a - b))",
        "replaced(lambda x: torch.relu(x).neg().neg(), lambda a: a.neg().neg(), lambda a: a)",
        "replaced(lambda x: (torch.relu(x), torch.relu(x + 1)), lambda a: torch.relu(a), lambda a: a.clamp(min=0))[0]",
        "replaced(lambda x: torch.sin(x), lambda a: torch.cos(a), lambda a: a)",
        "edited().code",
        "edited()(x)",
        "h = copy.deepcopy(g); [h(x)[0], h.l is g.l]",
        "h = pickle.loads(pickle.dumps(trace(lambda x: x + 1))); h(x)",
        "str(small())",
        "fx.GraphModule({}, small())(x)",
        "dead()",
        "graph = small(); graph.erase_node(list(graph.nodes)[1])",
        "graph = small(); list(graph.nodes)[1].args",
        "[n.name for n in reversed(small().nodes)]",
        "len(small().nodes)",
        "graph = small(); copy.deepcopy(graph).lint()",
        "str(Through().trace(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.Linear(2, 2)))))",
        "trace(inplace).code",
        "trace(inplace)(x)",
        "trace(lambda x: x.to(torch.float64).sum(dim=(0, 1), dtype=torch.float32) + float('inf')).code",
        "trace(lambda x: x.T[0] + abs(x) // 2 + (x > 0) * 2 - 1 / x + 2 ** x + (-x) % 3 + ~(x == 1)).code",
        "trace(lambda x: torch.max(x, 1)[0] + x[..., None, 1:2, ::2].sum()).code",
        "trace(lambda x: x.shape[0] + x.size(-1)).code",
        "trace(lambda x: x * torch.ones(3)).code.count('_tensor_constant0')",
        "trace(torch.nn.Linear(3, 2)).code.count('self.weight')",
        "fx.GraphModule({}, small(), 'Own').__class__.__name__",
        "fx.GraphModule({}, g.graph)",
        "fx.Node(small(), 'a', 'nothing', 'b', (), {})",
        "small().call_function('a')",
        "fx.map_arg((1, {'a': [2]}), 3)",
        "gm = trace(m); [gm.add_submodule('new.inner', torch.nn.ReLU()), gm.delete_submodule('new.inner'), "
        "hasattr(gm, 'new')]",
        "gm = trace(lambda x: F.relu(x, inplace=False)); gm(x - 3)",
        "g = small(); n = list(g.nodes)[1]; _ = g.inserting_after(n); g.call_function(torch.sigmoid, (n,)); "
        "[x.name for x in g.nodes]",
        "g = small(); n = list(g.nodes)[1]; _ = g.inserting_before(n); g.call_function(torch.sigmoid, (list(g.nodes)[0],)); "
        "[x.name for x in g.nodes]",
        "fx._pytree.tree_flatten_spec({'b': [1, (2, 3)], 'a': 4}, tree({'a': 0, 'b': [0, (0, 0)]}))",
        "fx._pytree.tree_flatten_spec([1, 2, 3], tree([0, 0]))",
        "fx._pytree.tree_flatten_spec(Pair(1, [2]), tree(Pair(0, [0])))",
        "fx._pytree.tree_flatten_spec({'b': 1}, tree({'a': 0}))",
        "fx._pytree.tree_flatten_spec(collections.deque([1]), tree(collections.deque([0])))",
        "!fx._pytree.tree_flatten_spec(collections.deque([1]), tree(collections.deque([0, 0])))",
        "fx._pytree.register_pytree_flatten_spec(collections.deque, lambda d, spec: list(d)[::-1]); "
        "[fx._pytree.tree_flatten_spec(collections.deque([1, 2]), tree(collections.deque([0, 0]))), "
        "fx._pytree.SUPPORTED_NODES.pop(collections.deque) is not None]",
        "p = torch.utils._pytree; [p.Context is p.PyTree is p.DumpableContext, str(p.FlattenFunc), str(p.UnflattenFunc)]",
        "gm = trace(lambda x: x + 1); gm.meta['a'], gm.meta['own'] = [1], gm; c = copy.deepcopy(gm); "
        "[c.meta['a'], c.meta['a'] is gm.meta['a'], c.meta['own'] is c, copy.copy(gm).meta is gm.meta]",
        "T = type('T', (fx.Tracer,), {'check_mutable_operations': True}); [n.op for n in T().trace(lambda x: torch.relu(x)).nodes]",
        "!type('T', (fx.Tracer,), {'check_mutable_operations': True})().trace(lambda x: torch.relu_(x))",
        "!type('T', (fx.Tracer,), {'check_mutable_operations': True})().trace(lambda x: torch.add(x, x, out=x))",
        "fx.Tracer.check_mutable_operations, [n.op for n in trace(lambda x: torch.relu_(x)).graph.nodes]",
        # immutable arguments, order of nodes, hooks
        "trace(lambda x: torch.cat([x, x])).graph.find_nodes(op='call_function', target=torch.cat)[0].args[0].append(1)",
        "n = list(small().nodes); [n[0] < n[1], n[1] < n[0], n[1] <= n[1], sorted(n[::-1]) == n]",
        "fx.map_arg([1, {'a': [2]}], lambda n: n).__class__.__name__",
        "fx.immutable_collections.immutable_dict(a=1).update(b=2)",
        "i = fx.immutable_collections; [hash(i.immutable_list([1, 2])) == hash((1, 2)), "
        "torch.utils._pytree.tree_map(lambda v: v + 1, i.immutable_list([1, i.immutable_dict(a=2)]))]",
        "gm = trace(lambda x: x + 1); seen = []; gm._register_create_node_hook(lambda n: seen.append(n.name)); "
        "gm._register_erase_node_hook(lambda n: seen.append('-' + n.name)); p = list(gm.graph.nodes)[0]; "
        "f = gm.graph.inserting_after(p); gm.graph.erase_node(gm.graph.call_function(torch.sin, (p,))); seen",
        "g = small(); n = list(g.nodes)[1]; _ = g.inserting_after(n); [g.call_function(f, (n,)) for f in (torch.sin, torch.cos)]; "
        "[x.name for x in g.nodes]",
        # generated code
        "trace(older).code",
        "trace(typed).code",
        "trace(lambda x: x + 1).graph.python_code('self')._lineno_map",
        "trace(lambda x, k: x + k['a'], concrete_args={'k': {'a': fx.PH}}).code",
        "trace(lambda x, k: {'s': x + k['a']}, concrete_args={'x': fx.PH, 'k': {'a': fx.PH}})(x, {'a': 2})['s']",
        "fx.Interpreter(trace(lambda k: k['a'] + 1, concrete_args={'k': {'a': fx.PH}})).run({'a': x})",
        "trace(lambda x, y: x, concrete_args={'y': None})(x, 3)",
        "gm = trace(lambda x: x + 1); _ = gm.graph.on_generate_code(lambda _: lambda body: ['y = 5\\n', *body]); "
        "gm.recompile(); gm.code",
        "gm = trace(lambda x: x + 1); gm.graph.set_codegen(Listed()); gm.recompile(); "
        "[gm.code, gm([x]), fx.Interpreter(gm).run([x])]",
        "trace(lambda x: Pair(x, 1.5)).code",
        "trace(lambda x: fx.node._format_arg(([x.node], {'a': (1,)}, 'b'))).graph.output_node().args[0]",
        "fx.node._format_arg(list(range(9)), 3)",
        "gm = trace(lambda a, *b, c=5, **d: a + b[0] + c + d['e']); [gm.code, gm(x, 1, c=2, e=3)]",
        # names
        "fx.graph._snake_case('aPascalCase_of')",
        "n = fx.graph._Namespace(); [n.create_name(c, None) for c in ('a', 'a', 'a_1', 'len', 'x_2', 'x', '3 b', '', 'inf')]",
        "torch.typename(3), torch.typename(torch.ones(1)), torch.typename(len)",
        # what tracing refuses, and what it records
        "trace(lambda x: x[{'a': x}[x]])",
        "trace(lambda x: torch._assert(x.sum() > 0, 'no') or x).code",
        "trace(torch.add)",
        "[n.op for n in trace(F.relu6).graph.nodes]",
        "trace(F.max_pool2d)",
        "trace(lambda x: torch.ops.aten.add.Tensor(x, x)).graph.find_nodes(op='call_function', target=torch.ops.aten.add.Tensor)",
        "trace(lambda x: math.sqrt(x.size(0))).code",
        "fx.Interpreter(trace(lambda x: x + torch.ones(7))).run(x)",
        "fx.Interpreter(trace(lambda x: x)).boxed_run([x, x])",
        "[(n.name, list(n.meta.get('nn_module_stack', {}))) for n in trace(Twice()).graph.nodes]",
        "g = fx.Graph(); p = g.placeholder('x'); other = small(); g.call_function(torch.sin, (list(other.nodes)[1],)); g.lint()",
        # operator_schemas
        "s = operator_schemas.get_signature_for_torch_op(torch.sigmoid); [list(s[0].parameters), len(s)]",
        "operator_schemas.get_signature_for_torch_op(F.relu)",
        "operator_schemas.check_for_mutable_operation(torch.sigmoid, (x,), {})",
        "!operator_schemas.check_for_mutable_operation(torch.sigmoid, (x,), {'out': x})",
        "operator_schemas.normalize_function(F.relu, (x,), {}, normalize_to_only_use_kwargs=True).kwargs['inplace']",
        "operator_schemas.normalize_module(m, 'l', (3,), normalize_to_only_use_kwargs=True)",
        "operator_schemas.normalize_module(m, 'none', (3,))",
        "[str(operator_schemas.create_type_hint(v)) for v in ([int, bool], (int, str), [], int)]",
        "[operator_schemas.type_matches(*v) for v in ((int, bool), (list[int], int), (list[int], list[int]), (int, torch.dtype), "
        "(str, int))]",
        "list(inspect.signature(F.cross_entropy).parameters)",
        "!inspect.signature(torch.add)",
        "[isinstance(f, types.BuiltinFunctionType) for f in (torch.add, F.conv2d, torch.linalg.inv)]",
        # traceback
        "t = fx.traceback; c = t.annotate({'a': 1}); c.__enter__(); s = dict(t.get_current_meta()); c.__exit__(None, None, None); "
        "[s, dict(t.get_current_meta())]",
        "t = fx.traceback; n = list(small().nodes)[1]; s = t.NodeSource(n, 'p', t.NodeSourceAction.CREATE); "
        "[s.name, s.pass_name, s.to_dict()['action'], t.NodeSource._from_dict(s.to_dict()) == s]",
        "gm = trace(lambda x: x + 1); n = list(gm.graph.nodes)[1]; n.meta['custom'] = {'k': 2}; "
        "[list(v.meta.get('custom', {})) for v in ToMinus(gm).transform().graph.nodes]",
        # passes
        "from torch.fx.passes.shape_prop import ShapeProp; gm = trace(lambda x: (x + 1, x.sum())); ShapeProp(gm).propagate(x); "
        "[tuple(n.meta['tensor_meta'].shape) for n in gm.graph.nodes if n.op == 'call_function']",
        "from torch.fx.passes.dialect.common.cse_pass import CSEPass; r = CSEPass()(trace(lambda x: (x + 1) * (x + 1))); "
        "[r.modified, r.graph_module.code]",
        "from torch.fx.passes.utils.fuser_utils import fuse_by_partitions; gm = trace(lambda x: torch.sin(x + 1) * 2); "
        "n = list(gm.graph.nodes); fuse_by_partitions(gm, [dict.fromkeys(n[1:3])]).code",
        "from torch.fx.passes.infra.pass_manager import PassManager, this_before_that_pass_constraint as order; "
        "a, b = (lambda g: g), (lambda g: g); p = PassManager([a, b], [order(b, a)]); p.solve_constraints(); p.passes == [b, a]",
        "replaced(lambda x: torch.sin(x) + torch.cos(x), lambda a: (torch.sin(a), torch.cos(a)), lambda a: (a.exp(), a.log()))",
        "from torch.fx.tensor_type import Dyn, TensorType, is_consistent as c, is_more_precise as p; "
        "[c(TensorType((1, Dyn)), TensorType((1, 2))), p(TensorType((1, Dyn)), TensorType((1, 2))), p(TensorType((1, 2)), Dyn)]",
    ],
)
