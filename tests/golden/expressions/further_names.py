"""Names beside the operators: optimizers, pruning, recurrent networks by weights, counts of operations, overrides."""

SETUP = """
import copy, io, pickle, warnings
import functorch
import torch.nn.utils.prune as prune
from functorch.experimental import chunk_vmap, control_flow
from torch.func import functional_call
from torch.nn.utils._expanded_weights import ExpandedWeight
from torch.nn.utils._per_sample_grad import call_for_per_sample_grads
from torch.utils.weak import WeakIdKeyDictionary
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula
def r(*shape):
    n = 1
    for d in shape:
        n *= d
    return torch.tensor([((i * 7919 + 13 * len(shape)) % 101) / 37.0 - 1.3 for i in range(n)]).reshape(shape)
def layer(rows=3, columns=4):
    m = torch.nn.Linear(columns, rows)
    with torch.no_grad():
        m.weight.copy_(r(rows, columns))
        m.bias.copy_(r(rows))
    return m
def trained(steps=3, **options):
    p = torch.nn.Parameter(r(4, 6))
    o = torch.optim.Muon([p], **options)
    for _ in range(steps):
        o.zero_grad()
        (p * r(4, 6).flip(0)).sum().backward()
        o.step()
    return p
def bound(space, names):  # those that are bound to the instances of a class which has them as an attribute
    found = {name: getattr(space, name) for name in names.split()}
    return [name for name, f in found.items() if getattr(type("A", (), {"f": f})(), "f") is not f]
class Biased(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.number = layer(), 0.5
        self.register_buffer("offset", r(3))
    def forward(self, x):
        return self.inner(x) + self.offset
def answered(given, module=None, **options):
    module = module or Biased()
    return functional_call(module, given, r(2, 4), **options), sorted(dict(module.named_parameters()))
def fixed(module):
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(r(*p.shape))
    return module
def first(result):
    return result[0] if isinstance(result, tuple) else result
def samples(module, x, dim=0, scaled=False, **options):
    # whether the gradients of the samples are those of the samples one by one, and what else the backward pass has left
    fixed(module)
    out = first(call_for_per_sample_grads(module, batch_size=x.shape[dim], **options)(x)).sin()
    (out.mean() * out[0].numel() if scaled else out.sum()).backward()
    rows = [
        torch.autograd.grad(first(module(x.narrow(dim, i, 1))).sin().sum(), list(module.parameters()))
        for i in range(x.shape[dim])
    ]
    one_by_one = [torch.stack(g) for g in zip(*rows)]
    found = [p.grad_sample for p in module.parameters()]
    same = [torch.allclose(a, b, atol=1e-4) for a, b in zip(found, one_by_one)]
    return same, [tuple(g.shape) for g in found], [p.grad is None for p in module.parameters()], x.grad is None
def packed_samples(module):
    rows = [r(5, 3), r(3, 3), r(2, 3)]
    packed = torch.nn.utils.rnn.pack_sequence(rows)
    call_for_per_sample_grads(fixed(module), batch_size=3)(packed)[0].data.sin().sum().backward()
    single = [torch.autograd.grad(module(x.unsqueeze(1))[0].sin().sum(), list(module.parameters())) for x in rows]
    return [torch.allclose(p.grad_sample, torch.stack(g), atol=1e-4) for p, g in zip(module.parameters(), zip(*single))]
def expanded(batch=2, reduction="sum", n=1):
    return [ExpandedWeight(torch.nn.Parameter(r(3, 4)), batch, reduction) for _ in range(n)]
class Key:
    pass
KEYS = [Key(), Key(), Key()]
class Slots(torch.Tensor):
    __slots__ = ["elem", "__own"]
    def put(self, value):
        self.__own = value
        return self
    def got(self):
        return self.__own
class Wrapper(torch.Tensor):
    __slots__ = ["elem"]
    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), strides=elem.stride(), dtype=elem.dtype)
        made.elem = elem
        return made
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*(a.elem if isinstance(a, cls) else a for a in args), **(kwargs or {}))
        return cls(out) if isinstance(out, torch.Tensor) else out
def again(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)
def marked(tensor):
    tensor._own, tensor.plain = 1, 2
    return tensor
def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()
def counted(f, *inputs):
    with FlopCounterMode(display=False) as c:
        out = f(*inputs)
        if out.requires_grad:
            out.sum().backward()
    return {str(k): v for k, v in sorted(c.get_flop_counts().get("Global", {}).items(), key=str)}
def weights(gates, layers=2, directions=2, size=3, hidden=4):
    out = []
    for n in range(layers):
        for _ in range(directions):
            width = size if n == 0 else hidden * directions
            out += [r(gates * hidden, width) / 3, r(gates * hidden, hidden) / 3, r(gates * hidden), r(gates * hidden) / 2]
    return out
x, h = r(5, 2, 3), r(4, 2, 4)
"""

_OF_ATEN = [
    "x = torch.tensor([3.0, 1.0, 3.0]); torch._unique(x), torch._unique(x, True, True), torch._VF.unique_dim(x, 0)",
    "torch._VF.unique_dim(torch.tensor([[1, 2], [1, 2], [0, 5]]), dim=0, sorted=True, return_counts=True)",
    "torch._VF.relu is torch.relu, torch._VF.lstm is torch.lstm",
    "!torch._VF.nothing",
    "x = torch.arange(54.0).reshape(1, 2, 3, 3, 3); w = torch.ones(1, 2, 2, 2, 2); torch._C._nn.slow_conv3d(x, w, 2), "
    "torch.ops.aten.slow_conv3d(x, w, [2, 2, 2], torch.ones(1), [2, 2, 2], [1, 1, 1])",
    "x = torch.eye(4); [x.to_sparse_bsr(2).values(), x.to_sparse_bsc(blocksize=(2, 4)).values()]",
    "import warnings; warnings.simplefilter('ignore'); torch.jit.script(torch.nn.LazyLinear(3))",
]

CASES = [
    *_OF_ATEN,
    "!trained(lr=-1)",
    "torch.optim.Muon([torch.nn.Parameter(torch.ones(3))])",
    "torch.optim.Muon([torch.nn.Parameter(torch.ones(3, 3))], momentum=-1)",
    "torch.optim.Muon([torch.nn.Parameter(torch.ones(3, 3))], adjust_lr_fn='x')",
    "p = torch.nn.Parameter(r(4, 6)); o = torch.optim.Muon([p]); (p * p).sum().backward(); o.step(); list(o.state[p])",
    "sorted(torch.optim.Muon([torch.nn.Parameter(torch.ones(3, 3))]).param_groups[0])",
    "m = layer(); prune.l1_unstructured(m, 'weight', 5); m.weight, m.weight_mask, m.weight_orig, "
    "sorted(dict(m.named_parameters()))",
    "m = layer(); prune.l1_unstructured(m, 'weight', 0.4); m(torch.ones(1, 4)), sorted(m.state_dict())",
    "m = layer(); prune.ln_structured(m, 'weight', 1, n=2, dim=0); m.weight_mask",
    "m = layer(); prune.l1_unstructured(m, 'weight', 3); prune.ln_structured(m, 'weight', 0.3, n=1, dim=1); "
    "m.weight_mask, len(m._forward_pre_hooks)",
    "m = layer(); prune.l1_unstructured(m, 'weight', 3); prune.l1_unstructured(m, 'weight', 4); m.weight_mask",
    "m = layer(); prune.custom_from_mask(m, 'bias', torch.tensor([1, 0, 1])); m.bias, prune.is_pruned(m)",
    "m = layer(); prune.l1_unstructured(m, 'weight', 5); prune.remove(m, 'weight'); m.weight, "
    "sorted(m.state_dict()), prune.is_pruned(m)",
    "m = layer(); prune.identity(m, 'weight'); m.weight_mask",
    "m = layer(); prune.random_unstructured(m, 'weight', 5); m.weight_mask.sum()",
    "m = layer(); prune.random_structured(m, 'weight', 2, 1); m.weight_mask.sum()",
    "m, n = layer(), layer(2, 2); prune.global_unstructured([(m, 'weight'), (n, 'weight')], "
    "prune.L1Unstructured, amount=6); m.weight_mask, n.weight_mask",
    "m = layer(); prune.l1_unstructured(m, 'weight', 5, importance_scores=r(3, 4).flip(0)); m.weight_mask",
    "m = layer(); prune.l1_unstructured(m, 'weight', 5); m(torch.ones(1, 4)).sum().backward(); m.weight_orig.grad",
    "prune.L1Unstructured(3).prune(r(3, 4))",
    "prune.l1_unstructured(layer(), 'weight', 50)",
    "prune.l1_unstructured(layer(), 'weight', 1.5)",
    "prune.l1_unstructured(layer(), 'weight', 'x')",
    "prune.ln_structured(layer(), 'bias', 1, n=2, dim=0)",
    "prune.is_pruned(layer())",
    "!prune.remove(layer(), 'weight')",
    "torch.lstm(x, (h, h / 2), weights(4), True, 2, 0.0, False, True, False)",
    "torch.gru(x, h, weights(3), True, 2, 0.0, False, True, False)",
    "torch.rnn_tanh(x, h, weights(1), True, 2, 0.0, False, True, False)",
    "torch.rnn_relu(x.transpose(0, 1), h, weights(1), True, 2, 0.0, False, True, True)",
    "torch.gru(r(7, 3), torch.tensor([2, 2, 2, 1]), h, weights(3), True, 2, 0.0, False, True)",
    "torch.embedding_bag(r(4, 5), torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2]))[0]",
    "torch.embedding_bag(r(4, 5), torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2]), False, 1)[0]",
    "o = torch.embedding_bag(r(4, 5), torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2]), False, 2); o[0], o[1], o[2], o[3]",
    "torch.embedding_bag(r(4, 5), torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2, 4]), include_last_offset=True)[0]",
    "w = r(4, 5).requires_grad_(); F.embedding_bag(torch.tensor([[1, 2], [1, 3]]), w, "
    "mode='mean').pow(2).sum().backward(); w.grad",
    "F.embedding_bag(torch.tensor([[1, 2]]), r(4, 5), mode='max', sparse=True)",
    "torch.native_channel_shuffle(r(1, 4, 2, 2), 2)",
    "a = r(9, 9); a = a @ a.t() + torch.eye(9); torch.lobpcg(a, 1)[0] / 100, torch.lobpcg(torch.eye(2), 1)[0]",
    "torch.lobpcg(torch.eye(2), 1)",
    "counted(layer(), torch.ones(2, 4, requires_grad=True))",
    "counted(layer(), torch.ones(5, 4))",
    "counted(torch.matmul, r(2, 3, 4), r(2, 4, 5))",
    "counted(torch.nn.Conv2d(2, 3, 3), r(1, 2, 6, 6).requires_grad_())",
    "counted(torch.nn.ConvTranspose2d(2, 3, 3, stride=2), r(1, 2, 4, 4).requires_grad_())",
    "counted(lambda a, b: torch.einsum('bij,bjk->bik', a, b), r(2, 3, 4).requires_grad_(), r(2, 4, 5))",
    "counted(lambda a: torch.relu(a + 1), r(3))",
    "counted(lambda a: torch.addmm(a, a, a), r(3, 3).requires_grad_())",
    "F.grouped_mm(r(6, 4), r(2, 4, 8), offs=torch.tensor([2, 6], dtype=torch.int32)).shape",
    "torch.overrides.resolve_name(torch.add), torch.overrides.resolve_name(F.gelu), torch.overrides.resolve_name(len)",
    "torch.overrides.resolve_name(torch.linalg.inv), torch.overrides.resolve_name(torch.Tensor.view)",
    "torch.overrides.get_testing_overrides()[torch.add](1, 2)",
    "torch.add in torch.overrides.get_overridable_functions()[torch], "
    "F.gelu in torch.overrides.get_overridable_functions()[F]",
    "torch.zeros in torch.overrides.get_ignored_functions(), torch.add in torch.overrides.get_ignored_functions()",
    "torch.OutOfMemoryError is torch.cuda.OutOfMemoryError, issubclass(torch.OutOfMemoryError, RuntimeError), "
    "torch.AcceleratorError",
    "torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.memory_allocated()",
    "torch.xpu.get_device_properties(0)",
    "torch.xpu.current_device()",
    # names that packages import or call
    "torch.ops.aten._to_copy(r(2, 3)), torch.ops.aten._to_copy(r(2, 3), dtype=torch.float64)",
    "(lambda a: torch.ops.aten._to_copy(a).data_ptr() == a.data_ptr())(r(3))",
    "torch.ops.aten.index(r(3, 4), [None, torch.tensor([0, 2])])",
    "torch.ops.aten.index(r(3, 4), [torch.tensor([2, 1]), torch.tensor([0, 2])])",
    "torch.ops.aten.index(r(3, 4), [torch.tensor([True, False, True])])",
    "torch.ops.aten._sparse_addmm(r(3, 2), r(3, 4).to_sparse(), r(4, 2), beta=2, alpha=0.5)",
    "torch.ops.load_library('/nowhere/_C.so')",
    "any('nowhere' in path for path in torch.ops.loaded_libraries)",
    "torch.ao.quantization.QuantStub()(r(2)), torch.ao.quantization.DeQuantStub()(r(2)), torch.ao.quantization.QuantStub()",
    "torch.ao.quantization.QuantStub('a').qconfig, hasattr(torch.ao.quantization.DeQuantStub(), 'qconfig')",
    "torch._C._get_tracing_state()",
    "torch.jit._overload_method.__name__, torch.jit._overload.__name__, torch.jit._script_if_tracing.__name__",
    "torch.onnx.unregister_custom_op_symbolic('ours::op', 11)",
    "torch.onnx.register_custom_op_symbolic('no name', len, 11)",
    "torch.onnx.register_custom_op_symbolic('ours::9', len, 11)",
    "__import__('torch.onnx.symbolic_helper') and torch.onnx.symbolic_helper.parse_args('v', 'i')(len)",
    # what libraries ask for: kornia, pyro
    "seen = []; ask = lambda q: (seen.append(torch._C._are_functorch_transforms_active()), q.sum())[1]; ask(x); "
    "torch.func.grad(ask)(x); torch.func.vmap(ask)(x); torch.func.jvp(ask, (x,), (x,)); torch.func.vjp(ask, x); ask(x); seen",
    "from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx; seen = [get_proxy_mode() is None]; "
    "make_fx(lambda q: (seen.append(get_proxy_mode() is None), q + 1)[1])(x); (seen, get_proxy_mode() is None)",
    "from torch.serialization import MAP_LOCATION, STORAGE; MAP_LOCATION is None",
    "y = x.clone(); (x._cdata == x._cdata, x._cdata == y._cdata, isinstance(x._cdata, int))",
    "D = torch.distributions; A = type('A', (), {}); D.register_kl(A, A)(lambda p, q: 7.0); D.kl_divergence(A(), A())",
    "!torch.distributions.register_kl(3, int)",
    "q = torch.distributions.transforms.ExpTransform(cache_size=1); y = q(x); (q._cached_x_y[0] is x, q._cached_x_y[1] is y)",
    # operators as attributes of a class
    "A = type('A', (), {'add': torch.add, 'conv': torch.conv2d}); (A().add(x, x), A().conv(r(1, 1, 3, 3), r(1, 1, 2, 2)))",
    "A = type('A', (torch.Tensor,), {'swish': torch.nn.functional.silu}); r(3).as_subclass(A).swish()",
    "bound(torch, 'abs add relu sigmoid matmul einsum stack cat where conv2d conv_transpose3d dropout layer_norm embedding sum max "
    "norm unique unique_consecutive unravel_index split tensordot lu cdist svd_lowrank pca_lowrank stft istft lobpcg')",
    "bound(F, 'relu silu mish elu dropout layer_norm rms_norm cross_entropy mse_loss interpolate pad embedding max_pool2d "
    "adaptive_avg_pool2d batch_norm normalize softmax log_softmax grid_sample hardtanh leaky_relu')",
    "bound(F, 'linear bilinear prelu hardshrink softshrink gelu softplus logsigmoid conv1d conv2d conv3d conv_transpose2d "
    "pixel_shuffle pixel_unshuffle channel_shuffle avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d one_hot "
    "scaled_dot_product_attention pairwise_distance cosine_similarity conv_tbc')",
    "bound(torch.fft, 'fft rfft fftn'), bound(torch.linalg, 'inv norm svd'), bound(torch.special, 'erf zeta softmax')",
    "bound(torch.signal.windows, 'hann kaiser gaussian'), __import__('inspect').isroutine(torch.add)",
    # attributes of tensors, whatever their names
    "w = Wrapper(r(3)); ((w + 1).elem, type(w * w).__name__, Wrapper.__slots__)",
    "a, b = r(2).as_subclass(Slots).put(1), r(3).as_subclass(Slots).put(2); torch.utils.swap_tensors(a, b); "
    "(a.got(), b.got(), a.shape)",
    "again(marked(r(2))).__dict__, again(marked(torch.nn.Parameter(r(2)))).__dict__, again([marked(r(2))])[0].__dict__",
    "pickle.loads(pickle.dumps(marked(r(2)))).__dict__, pickle.loads(pickle.dumps(marked(torch.nn.Parameter(r(2))))).__dict__",
    "copy.deepcopy(marked(r(2))).__dict__",
    "b = again(torch.nn.Buffer(r(2))); (b.__dict__, isinstance(b, torch.nn.Buffer))",
    "p = r(2).requires_grad_(); p.register_hook(print); (p * 2).retain_grad(); (p * 2).sum().backward(); again(p).__dict__",
    # functorch, as PyTorch brings it along
    "m = layer(); f, p = quietly(lambda: functorch.make_functional(m)); "
    "(f(p, r(2, 4)), f.param_names, [tuple(q.shape) for q in f.parameters()], "
    "next(f.parameters()).device.type, [q.requires_grad for q in p])",
    "m = torch.nn.BatchNorm1d(4); f, p, b = quietly(lambda: functorch.make_functional_with_buffers(m.eval())); "
    "(f(p, b, r(3, 4)), f.buffer_names)",
    "m = layer(); f, p = quietly(lambda: functorch.make_functional(m, disable_autograd_tracking=True)); "
    "[q.requires_grad for q in p]",
    "!quietly(lambda: functorch.make_functional(torch.nn.BatchNorm1d(4)))",
    "f, p, b = quietly(lambda: functorch.combine_state_for_ensemble([layer(), layer(), layer()])); "
    "(torch.vmap(f, (0, 0, None))(p, b, r(2, 4)), p[0].requires_grad)",
    "!quietly(lambda: functorch.combine_state_for_ensemble([]))",
    "!quietly(lambda: functorch.combine_state_for_ensemble([layer(), torch.nn.ReLU()]))",
    "quietly(lambda: functorch.grad(lambda v: (v**3).sum())(r(3))), quietly(lambda: functorch.vmap(torch.dot)(r(2, 3), r(2, 3)))",
    "chunk_vmap(lambda v: v * 2, chunks=3)(torch.arange(7.0))",
    "control_flow.cond(torch.tensor(True), torch.sin, torch.cos, [r(3)]), control_flow.map(torch.add, r(2, 3), r(3))",
    "samples(layer(), r(2, 4))",
    "samples(layer(), r(2, 5, 4).requires_grad_())",
    "samples(layer(), r(4, 4), loss_reduction='mean', scaled=True)",
    "samples(torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1, groups=2), torch.nn.ReLU(inplace=True), "
    "torch.nn.GroupNorm(2, 4), torch.nn.LayerNorm(5)), r(3, 2, 5, 5).requires_grad_())",
    "samples(torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3, stride=2, dilation=2, bias=False), "
    "torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)), r(2, 2, 11))",
    "m = fixed(torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)); "
    "call_for_per_sample_grads(m)(r(2, 3, 5)).sum().backward(); m.running_mean",
    "samples(torch.nn.Conv3d(1, 2, 2, padding='same'), r(2, 1, 3, 3, 3))",
    "samples(torch.nn.Embedding(7, 3), torch.arange(8).reshape(2, 4) % 5)",
    "samples(torch.nn.LSTM(3, 4, 2), r(5, 2, 3).requires_grad_(), dim=1)",
    "samples(torch.nn.GRU(3, 4, batch_first=True, bidirectional=True), r(2, 5, 3))",
    "packed_samples(torch.nn.RNN(3, 4, nonlinearity='relu'))",
    "packed_samples(torch.nn.LSTM(3, 4, bidirectional=True))",
    "x = r(2, 4).requires_grad_(); call_for_per_sample_grads(layer())(x).sin().sum().backward(); x.grad",
    "m = layer(); f = call_for_per_sample_grads(m); (f(r(2, 4)) + f(r(2, 4))).sum().backward(); "
    "m.weight.grad_sample.contiguous()",
    "m = layer(); m.bias.requires_grad_(False); call_for_per_sample_grads(m)(r(2, 4)).sum().backward(); "
    "(m.weight.grad_sample.contiguous(), hasattr(m.bias, 'grad_sample'))",
    "m = layer(); call_for_per_sample_grads(m)(r(2, 4)).sum().backward(); call_for_per_sample_grads(m)",
    "call_for_per_sample_grads(layer(), batch_size=3)(r(2, 4))",
    "call_for_per_sample_grads(layer())(r(4))",
    "call_for_per_sample_grads(layer(), loss_reduction='none')",
    "call_for_per_sample_grads(layer(), batch_size=0)",
    "call_for_per_sample_grads(3)",
    "call_for_per_sample_grads(torch.nn.BatchNorm1d(4))(r(2, 4))",
    "call_for_per_sample_grads(torch.nn.LayerNorm(4))(r(4))",
    "!call_for_per_sample_grads(torch.nn.Conv1d(2, 3, 1))(r(2, 5))",
    "torch.add(r(3, 4), expanded()[0])",
    "ExpandedWeight(r(3), 2, 'sum')",
    "ExpandedWeight(3, 2, 'sum')",
    "F.linear(r(2, 4), expanded()[0], torch.nn.Parameter(r(3))).sum().backward()",
    "w = expanded()[0]; (w.shape, w.dtype, w.data_ptr() == w.orig_weight.data_ptr(), F.linear(r(2, 4), w).requires_grad)",
    "answered({'inner.weight': r(3, 4) * 2})",
    "answered({'inner.bias': None})",
    "answered({'inner.weight': 3})",
    "answered({'number': r(3)})",
    "answered({'inner.other.weight': r(3)})",
    "answered({'': r(3)})",
    "m = Biased(); [answered({'inner.extra': torch.nn.Parameter(r(3))}, m)[1] for _ in range(2)]",
    "m = Biased(); m.inner.outer = m; answered({'inner.outer.inner.weight': r(3, 4) * 2}, m, tie_weights=False)",
    "d = WeakIdKeyDictionary({k: [i] for i, k in enumerate(KEYS)}); c = d.copy(); "
    "(len(c), c[KEYS[1]] is d[KEYS[1]], type(c).__name__, len(d.keyrefs()))",
    "d = WeakIdKeyDictionary({k: [i] for i, k in enumerate(KEYS)}); c = copy.deepcopy(d); "
    "(list(c.values()), c[KEYS[1]] is d[KEYS[1]])",
    "d = WeakIdKeyDictionary(); d.update([(KEYS[0], 1)]); e = d | {KEYS[1]: 2}; e |= {KEYS[0]: 3}; "
    "(list(d.values()), list(e.values()), list(({KEYS[2]: 5} | d).values()))",
    "repr(WeakIdKeyDictionary()).split(' at ')[0]",
    "WeakIdKeyDictionary() | 3",
    "torch._refs.view(r(2, 3), 3, 2), torch._refs.contiguous(r(2, 3).t()), torch._refs.abs_(r(2))",
    "torch._refs.acos(r(3)), torch._refs.nn.functional.celu(r(3)), torch._refs.special.i0e(r(3)), "
    "torch._refs._conversions.char(r(3))",
    "torch._addmm_activation(r(2, 4), r(2, 3), r(3, 4)), torch._addmm_activation(r(4), r(2, 3), r(3, 4), beta=2, alpha=0.5, "
    "use_gelu=True)",
    "[torch.margin_ranking_loss(r(2, 3), r(2, 3).flip(0), r(3).sign(), 0.5, how) for how in range(3)]",
    "torch._C._nn.reflection_pad1d(r(1, 6), (2, 3)), torch.ops.aten.replication_pad2d(r(1, 3, 3), [1, 0, 2, 1])",
    "torch._C._nn.reflection_pad1d(r(1, 6), (2, 3, 1, 1))",
    "torch.autocast('cpu')(lambda: [torch._C._nn.reflection_pad1d(r(1, 6).bfloat16(), (2, 3)).dtype, "
    "torch._addmm_activation(r(2, 4), r(2, 3), r(3, 4), use_gelu=True).dtype])()",
    *(
        f"torch.device({text!r})"
        for text in ("not a device", "cpu:01", "cpu:1:2", "", "c-u", "a1", "nope", "nope:1")
    ),
    "torch.autocast('not a real device')",
    "torch.amp.is_autocast_available('not a real device')",
    *(
        f"o = torch.optim.SGD([r(1)], lr=0.1, momentum=0.9); s = torch.optim.lr_scheduler.CyclicLR(o, 0.1, 1.0, mode={mode!r}, "
        "gamma=0.9); (type(s._scale_fn_ref).__name__, s._scale_fn_ref(3.0), '_scale_fn_ref' in s.state_dict())"
        for mode in ("triangular", "triangular2", "exp_range")
    ),
]
