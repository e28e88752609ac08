"""torch.nested: how nested tensors are made, what they are, their operators and gradients, and what is refused."""

from tests.golden.answers import expressions

SETUP = """
import copy, io, pickle
F = torch.nn.functional
J = torch.jagged
def numbers(*shape, start=1.0):
    count = 1
    for n in shape:
        count *= n
    return (((torch.arange(count) * 37 + int(start) * 11) % 23 - 11).float() / 8).reshape(shape)
def parts(*lengths, width=4):
    return [numbers(n, width, start=float(i)) for i, n in enumerate(lengths)]
def jagged(*lengths, width=4):
    return torch.nested.nested_tensor(parts(*lengths, width=width), layout=J)
def strided(*shapes):
    return torch.nested.nested_tensor([numbers(*s, start=float(i)) for i, s in enumerate(shapes)])
def p(x):
    # a nested tensor as its layout, its shape with 'j' for ragged dims, and its parts
    if isinstance(x, (tuple, list)):
        return [p(y) for y in x]
    if not isinstance(x, torch.Tensor) or not x.is_nested:
        return x
    if x.layout is J:
        size = [n if isinstance(n, int) else 'j' for n in x.shape]
    else:
        size = [len(x.unbind())]
    return [str(x.layout), size, [[str(y.dtype), list(y.shape), y.tolist()] for y in x.unbind()]]
def grads(f, *leaves):
    for x in leaves:
        x.requires_grad_()
    out = f(*leaves)
    if out.is_nested:
        out.backward(torch.ones_like(out) * out.detach())
    else:
        (out * (torch.arange(out.numel()).reshape(out.shape) % 5 - 1.5)).sum().backward()
    return [p(x.grad) for x in leaves]
def saved(x):
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f)
nt = jagged(3, 1, 4)
same = torch.ones_like(nt) * 0.5
other = jagged(3, 1, 4)
b2 = torch.nested.nested_tensor([numbers(n) for n in (2, 3)], layout=J)
heads = lambda x, h=2: x.unflatten(-1, [h, -1]).transpose(1, 2)
st = strided((2, 3), (3, 3), (1, 3))
odd = strided((2, 3), (3, 2))
empty = torch.nested.nested_tensor([numbers(2, 4), numbers(0, 4), numbers(1, 4)], layout=J)
v, o = numbers(8, 2), torch.tensor([0, 3, 4, 8])
holes = torch.nested.nested_tensor_from_jagged(v, o, torch.tensor([2, 1, 3]))
wide = torch.nested.nested_tensor([numbers(2, n) for n in (3, 1)], layout=J)
"""

_MADE = [
    "p(nt)",
    "p(wide)",
    "p(empty)",
    "p(holes)",
    "p(torch.nested.nested_tensor([[1, 2], [3]], layout=J))",
    "p(torch.nested.nested_tensor([[1.0, 2.0], [3.0]], dtype=torch.float64))",
    "p(torch.nested.as_nested_tensor(numbers(3, 2, 2), layout=J))",
    "p(torch.nested.as_nested_tensor(numbers(3, 2, 2)))",
    "p(torch.nested.as_nested_tensor(parts(2, 3), dtype=torch.float64, layout=J))",
    "torch.nested.as_nested_tensor(nt, layout=J) is nt",
    "p(torch.nested.nested_tensor_from_jagged(v, o))",
    "p(torch.nested.nested_tensor_from_jagged(v, lengths=torch.tensor([3, 5])))",
    "p(torch.nested.nested_tensor_from_jagged(numbers(2, 8), o, jagged_dim=2))",
    "p(torch.nested.narrow(numbers(3, 4, 2), 1, torch.tensor([0, 1, 2]), torch.tensor([3, 2, 2]), layout=J))",
    "p(torch.nested.narrow(numbers(3, 4), 1, 1, 2, layout=J))",
    "p(torch.nested.narrow(numbers(3, 4), 1, 0, torch.tensor([4, 4, 2]), layout=J))",
    "torch.nested.narrow(numbers(2, 4), 1, 0, torch.tensor([4, 2]), layout=J).is_contiguous()",
    "p(torch.nested.masked_select(numbers(3, 4), numbers(3, 4) > 0))",
    "p(torch._nested_tensor_from_mask(numbers(2, 3, 2), torch.tensor([[True, True, False], [True, False, False]])))",
    "torch.nested.nested_tensor([]).dim(), torch.nested.nested_tensor([]).numel()",
    "nt.dim(), nt.size(0), nt.size(2), nt.size(-1), nt.numel(), len(nt), nt.element_size(), str(nt.layout), nt.is_nested",
    "nt.is_contiguous(), holes.is_contiguous(), nt.transpose(1, 2).is_contiguous(), holes.numel(), nt.storage_offset()",
    "nt.offsets(), nt.lengths(), holes.offsets(), holes.lengths(), nt._get_max_seqlen(), nt._get_min_seqlen()",
    "isinstance(nt.shape[1], torch.SymInt), nt.shape[1] == nt.size(1), nt.shape[1] == other.shape[1], nt.shape[1] == 3",
    "nt.shape[1] >= 2, nt.shape[1] * 2 == 2 * nt.shape[1], nt.shape == same.shape, nt.shape == other.shape",
    "nt.shape[1] > 2",
    "len(nt.stride()), nt.stride()[1:]",
    "st.dim(), st.size(0), st.size(2), st.numel(), str(st.layout), st.is_contiguous(), st.transpose(1, 2).is_contiguous()",
    "st.size(1)",
    "odd.size(2)",
    "st.shape",
    "st._nested_tensor_size(), st._nested_tensor_strides(), st._nested_tensor_storage_offsets(), st.values()",
    "st.transpose(1, 2)._nested_tensor_size(), st.transpose(1, 2)._nested_tensor_strides()",
    "str(st), str(strided((1, 2)).requires_grad_())",
    "nt.is_same_size(same), nt.is_same_size(other), st.is_same_size(strided((2, 3), (3, 3), (1, 3))), st.is_same_size(odd)",
    "nt.is_same_size(v)",
    "v.is_same_size(st)",
    "nt.is_leaf, nt.requires_grad, nt.grad, (nt.clone().requires_grad_() * 2).is_leaf",
    "p(saved(nt)), p(saved(holes)), p(saved(odd)), p(saved(st.transpose(1, 2)))",
    "p(copy.deepcopy(nt)), p(pickle.loads(pickle.dumps(nt))), p(pickle.loads(pickle.dumps(odd)))",
    "p(nt.to(torch.float64)), p(nt.half().float()), nt.to('cpu') is nt, nt.bool().dtype",
    "p(nt.detach()), p(nt.clone()), p(holes.contiguous()), p(nt.data), (nt.to(torch.float64) + same.double()).dtype",
    "p(torch.zeros_like(nt)), p(torch.full_like(nt, 3)), p(torch.empty_like(nt).fill_(2)), torch.rand_like(nt).dtype",
    "p(torch.ones_like(st)), p(torch.zeros_like(odd, dtype=torch.int64))",
]
_POINTWISE = [
    "p(nt + 1)",
    "p(1 - nt)",
    "p(nt * same)",
    "p(nt / torch.arange(1.0, 5))",
    "p(nt + numbers(1, 1, 4))",
    "p(nt * numbers(3, 1, 1))",
    "p(nt * numbers(3, 1, 4))",
    "p(numbers(3, 1, 1) - nt)",
    "p(2 ** nt), p(nt ** 2), p(-nt), p(abs(nt)), p(nt.sin().exp())",
    "p(torch.relu(nt)), p(F.gelu(nt)), p(F.silu(nt)), p(F.leaky_relu(nt, 0.1)), p(torch.sigmoid(nt)), p(F.elu(nt))",
    "p(nt > 0), p(nt >= same), p((nt > 0) & (nt < 0.5)), p(~(nt > 0)), p(nt == nt)",
    "p(torch.maximum(nt, same)), p(torch.clamp(nt, -0.5, 0.5)), p(nt.round()), p(torch.atan2(nt, same))",
    "p(nt.masked_fill(nt > 0, 9.0)), p(torch.where(nt > 0, nt, same)), p(torch.isnan(nt))",
    "p(nt.clone().add_(1)), p(nt.clone().mul_(same)), p(nt.clone().zero_()), p(nt.clone().copy_(other))",
    "p(nt.transpose(1, 2) * 2), p(wide + 1), p(wide * wide), p(empty * 2), p(holes + 1)",
    "p(st + 1), p(st * st), p(st.sin()), p(F.gelu(odd)), p(st.clone().add_(1)), p(st > 0), p(st.transpose(1, 2) * 2)",
    "st * numbers(3, 1, 3)",
    "p(st * torch.tensor(2.0)), p(st.clone().mul_(2)), p(odd / 3)",
    "!nt + other",
    "!nt + numbers(5, 1, 4)",
    "!nt + numbers(3, 2, 1, 4)",
    "st + odd",
    "st + numbers(3)",
]
_OPERATORS = [
    "p(F.linear(nt, numbers(5, 4), numbers(5)))",
    "p(nt @ numbers(4, 3))",
    "p(torch.matmul(nt, numbers(3, 4, 2)))",
    "p(torch.matmul(nt.transpose(1, 2), nt))",
    "p(torch.matmul(numbers(3, 2, 4), nt.transpose(1, 2)))",
    "p(torch.matmul(numbers(2, 4), nt.transpose(1, 2)))",
    "p(torch.bmm(nt, numbers(3, 4, 2)))",
    "p(nt.unflatten(-1, [2, 2]) @ nt.unflatten(-1, [2, 2]))",
    "torch.matmul(nt, other)",
    "torch.bmm(nt.unflatten(-1, [2, 2]), numbers(3, 4, 2))",
    "p(F.layer_norm(nt, (4,))), p(F.layer_norm(nt, (4,), numbers(4), numbers(4), 1e-3)), p(F.rms_norm(nt, (4,)))",
    "F.rms_norm(nt, (3, 4))",
    "F.layer_norm(b2, (3,))",
    "p(nt.softmax(-1)), p(nt.softmax(2)), p(torch.log_softmax(nt, -1)), p(torch.softmax(nt, 1)), p(b2.softmax(1))",
    "nt.softmax(0)",
    "torch.log_softmax(nt, 1)",
    "nt.transpose(1, 2).softmax(2)",
    "p(F.dropout(nt, 0.5, training=False)), (F.dropout(nt, 0.0).values() == nt.values()).all()",
    "p(F.embedding(torch.nested.nested_tensor([torch.tensor([0, 2]), torch.tensor([1])], layout=J), numbers(3, 2)))",
    "nt.sum(), nt.mean(), nt.prod(), nt.max(), nt.min(), nt.any(), nt.all()",
    "nt.sum(1), nt.mean(1), nt.prod(1), nt.amax(1), nt.amin(1), nt.sum(dim=[1]), nt.argmax(1)",
    "nt.sum(1, keepdim=True), nt.mean(1, keepdim=True), nt.amax(1, keepdim=True)",
    "p(nt.sum(-1)), p(nt.mean(2)), p(nt.amax(-1, keepdim=True)), p(nt.sum((2,))), p(nt.argmin(-1))",
    "p(nt.max(1)), p(nt.min(-1)), p(nt.any(-1)), p((nt > 0).all(1))",
    "empty.amax(1), empty.amin(1), empty.max(1), empty.min(1), empty.argmax(1), empty.argmin(1)",
    "empty.amax(1, keepdim=True), empty.amin((1,)), empty.max(1, keepdim=True), empty.argmin(1, keepdim=True)",
    "empty.half().amax(1), empty.bfloat16().amin(1), empty.double().max(1)",
    "(empty * 8).long().amax(1), (empty * 8).to(torch.int8).amin(1), (empty * 8).int().max(1)",
    "(empty > 0).amax(1), (empty > 0).amin(1)",
    "empty.sum(1), empty.prod(1), empty.mean(1), (empty > 0).any(1), (empty > 0).all(1)",
    "torch.nested.nested_tensor([numbers(0, 4), numbers(0, 4)], layout=J).amax(1)",
    "torch.nested.nested_tensor([numbers(0, 4), numbers(0, 4)], layout=J).min(1)",
    "torch.nested.nested_tensor([numbers(0, 4), numbers(0, 4)], layout=J).argmax(1)",
    "(nt / 0.0).amax(1), (nt / 0.0).min(1), (nt * float('nan')).amax(1)",
    "torch.nested.nested_tensor([numbers(2, 2) * 0 - float('inf'), numbers(3, 2)], layout=J).max(1)",
    "nt.amax(1), empty.transpose(1, 2).contiguous().amin(2), wide.amax(2), wide.argmax(2)",
    "nt.sum((0, 1)), nt.mean((0, 1)), nt.sum((0, 1, 2)), nt.sum((0, 1), keepdim=True)",
    "p(nt.unflatten(-1, [2, 2]).sum(2)), p(nt.transpose(1, 2).sum(1)), nt.transpose(1, 2).sum(2)",
    "nt.sum(0)",
    "nt.sum((1, 2))",
    "nt.sum((0, 2))",
    "holes.sum(1)",
    "holes.sum(-1).values(), holes.sum()",
    "p(nt.unbind()), p(nt[0]), p(nt[-1]), p(nt.select(0, 1)), p(nt.select(2, 1)), p(nt[..., 0]), p(holes.unbind())",
    "p(torch.unbind(nt)), [list(x.shape) for x in nt]",
    "nt[5]",
    "nt.unbind(1)",
    "nt.select(1, 0)",
    "p(nt.transpose(1, 2)), p(nt.transpose(-1, 1).transpose(1, 2)), p(nt.unflatten(-1, [2, 2]).transpose(2, 3))",
    "nt.transpose(0, 1)",
    "p(nt.unflatten(-1, [2, 2]).permute(0, 3, 1, 2))",
    "nt.permute(1, 0, 2)",
    "nt.permute(0, 1)",
    "p(nt.view(3, -1, 2, 2)), p(nt.reshape(3, nt.size(1), 2, 2)), p(nt.unflatten(-1, (2, -1)).flatten(2)), p(nt.view_as(same))",
    "nt.view(4, -1, 4)",
    "nt.flatten(1)",
    "p(nt.unsqueeze(1)), p(nt.unsqueeze(-1)), p(nt.unsqueeze(2).squeeze(2))",
    "nt.unsqueeze(0)",
    "p(nt.chunk(2, -1)), p(nt.split(3, -1)), p(nt.split([1, 3], -1)), p(nt.narrow(-1, 1, 2)), p(nt.chunk(2, 0))",
    "nt.split(2, 1)",
    "p(torch.cat([nt, same], -1)), p(torch.stack([nt, same], 2)), p(torch.cat([nt, numbers(1, 4)], -1))",
    "torch.cat([nt, nt], 1)",
    "torch.stack([nt, v])",
    "nt.to_padded_tensor(0.0), torch.nested.to_padded_tensor(nt, -1.0, (3, 6, 4)), wide.to_padded_tensor(7.0)",
    "torch.nested.nested_tensor_from_jagged(v, o).to_padded_tensor(0.0)",
    "torch.nested.nested_tensor_from_jagged(v, o, max_seqlen=4).to_padded_tensor(0.0), b2.to_padded_tensor(0.0)",
    "nt.to_padded_tensor(0.0, (3, 2, 4))",
    "holes.to_padded_tensor(0.0)",
    "st.to_padded_tensor(0.0), odd.to_padded_tensor(1.0), odd.to_padded_tensor(0.0, (2, 4, 4))",
    "odd.to_padded_tensor(0.0, (2, 2, 2))",
    "p(heads(nt)), p(F.scaled_dot_product_attention(heads(nt), heads(nt), heads(nt)))",
    "p(F.scaled_dot_product_attention(heads(nt), heads(jagged(2, 5, 1)), heads(jagged(2, 5, 1)), scale=0.3))",
    "p(F.scaled_dot_product_attention(*[nt.unflatten(-1, [1, 2, 2])] * 3))",
    "F.scaled_dot_product_attention(heads(nt), heads(nt), heads(nt), attn_mask=torch.ones(4, 4))",
    "F.scaled_dot_product_attention(heads(nt), numbers(3, 2, 4, 2), numbers(3, 2, 4, 2))",
    "F.scaled_dot_product_attention(heads(nt), nt.unflatten(-1, [2, 2]), heads(nt))",
    "st @ numbers(3, 2)",
    "p(F.linear(st, numbers(5, 3))), p(torch.bmm(st, st.transpose(1, 2))), p(st.softmax(-1))",
    "p(F.layer_norm(st, (3,), numbers(3), numbers(3))), p(st.sum(-1, keepdim=True)), p(st.unsqueeze(1))",
    "p(st.chunk(3, -1))",
    "p(st.view(3, -1, 3, 1)), p(st.transpose(1, 2).contiguous()), p(st.transpose(1, 2)), p(st[1]), p(odd.unbind())",
    "p(F.scaled_dot_product_attention(*[strided((2, 3, 4), (2, 1, 4))] * 3)), p(torch.cat([st, st]))",
    "st.sum(1)",
    "st.sum(-1)",
    "st.transpose(0, 1)",
    "st.softmax(0)",
    "st.unbind(1)",
    "!torch.cumsum(nt, -1)",
    "!torch.linalg.inv(nt)",
    "!torch.sort(nt)",
    "!nt.numpy()",
]
_REFUSED = [
    "torch.nested.nested_tensor([numbers(2, 3), numbers(3, 4)], layout=J)",
    "torch.nested.nested_tensor([], layout=J)",
    "torch.nested.nested_tensor([numbers(2), numbers(2, 3)], layout=J)",
    "torch.nested.nested_tensor([numbers(2), numbers(2).double()], layout=J)",
    "torch.nested.nested_tensor([torch.tensor(1.0)], layout=J)",
    "torch.nested.nested_tensor([numbers(2)], layout=torch.sparse_coo)",
    "torch.nested.nested_tensor(numbers(2))",
    "torch.nested.nested_tensor([numbers(2), numbers(2, 3)])",
    "torch.nested.as_nested_tensor(numbers(2))",
    "torch.nested.as_nested_tensor(3)",
    "torch.nested.as_nested_tensor(nt)",
    "torch.nested.nested_tensor_from_jagged(v)",
    "torch.nested.nested_tensor_from_jagged(v, o, jagged_dim=0)",
    "torch.nested.narrow(numbers(3, 4), 0, 0, 1, layout=J)",
    "torch.nested.narrow(numbers(3, 4), 1, 0, 'x', layout=J)",
    "torch.nested.narrow(numbers(3, 4), 1, torch.tensor([0, 1]), 2, layout=J)",
    "torch.nested.narrow(numbers(3, 4), 1, torch.tensor([0, 1, 1]), 2)",
    "torch.nested.masked_select(nt, nt)",
    "torch._nested_tensor_from_mask(numbers(2, 3, 2), torch.ones(2, 3))",
    "torch._nested_tensor_from_mask(numbers(2, 3, 2), torch.tensor([[True, False, True], [True, False, False]]))",
    "nt.clone().requires_grad_().backward()",
    "(nt.clone().requires_grad_() * 2).backward(numbers(3))",
    "torch.autograd._calculate_shape(st, odd, False), torch.autograd._calculate_shape(numbers(2, 3), numbers(4, 2), True)",
    "torch.overrides.has_torch_function((nt,)), torch.overrides.has_torch_function((st, numbers(2).to_sparse()))",
    "torch.overrides.has_torch_function((torch.nn.Parameter(numbers(2)), numbers(2)))",
]
_GRADIENTS = [
    "grads(lambda x: x * x, jagged(3, 1))",
    "grads(lambda x: x.amax(1), jagged(3, 1))",
    "grads(lambda x: x.amax(1), jagged(3, 0, 1))",
    "grads(lambda x: x.to_padded_tensor(0.0), jagged(3, 1))",
    "grads(lambda x: x.softmax(-1), jagged(3, 1))",
    "grads(lambda x: F.layer_norm(x, (4,)), jagged(3, 1))",
    "grads(lambda x: x.values(), jagged(3, 1))",
    "grads(lambda x: x.unbind()[0], jagged(3, 1))",
    "grads(lambda x: x.transpose(1, 2) * 2, jagged(3, 1))",
    "grads(lambda x: x[1], jagged(3, 1))",
    "grads(lambda x, w: F.linear(x, w), jagged(3, 1), numbers(2, 4))",
    "grads(lambda x, w: x @ w, jagged(3, 1), numbers(4, 2))",
    "grads(lambda x, w: torch.matmul(x, w), jagged(3, 1), numbers(2, 4, 3))",
    "grads(lambda x, y: x + y, jagged(3, 1), numbers(4))",
    "grads(lambda x: F.scaled_dot_product_attention(heads(x), heads(x), heads(x)).transpose(1, 2).values(), jagged(3, 1))",
    "grads(lambda *x: torch.nested.as_nested_tensor(list(x), layout=J) * 3, numbers(2, 3), numbers(1, 3))",
    "grads(lambda v: torch.nested.nested_tensor_from_jagged(v, o) * 2, numbers(8, 2))",
    "grads(lambda w: F.embedding(torch.nested.nested_tensor([torch.tensor([0, 2]), torch.tensor([0])], layout=J), w), "
    "numbers(3, 2))",
    "grads(lambda x: x * x, strided((2, 3), (3, 2)))",
    "grads(lambda x, w: F.linear(x, w), strided((2, 3), (1, 3)), numbers(2, 3))",
    "grads(lambda *x: torch.nested.as_nested_tensor(list(x)) * 3, numbers(2, 3), numbers(1, 3))",
    "grads(lambda x: x.softmax(-1), strided((2, 3), (1, 3)))",
    "grads(lambda x: torch.bmm(x, x.transpose(1, 2)), strided((2, 3), (1, 3)))",
    "grads(lambda x: x.to_padded_tensor(0.0), strided((2, 3), (1, 3)))",
    "p(torch.autograd.grad((lambda x: (x * x).sum())(nt.requires_grad_()), nt))",
    "p([g for x in [jagged(2, 1).requires_grad_()] for g in torch.autograd.grad(torch.autograd.grad((x ** 3).sum(), x, "
    "create_graph=True)[0].sum(), x)])",
    "[(x.retain_grad(), x.sum().backward(), p(x.grad))[2] for x in [jagged(2, 1).requires_grad_() * 2]]",
    "[(x.register_hook(lambda g: g * 10), (x * 1).sum().backward(), p(x.grad))[2] for x in [jagged(2, 1).requires_grad_()]]",
    "[str(x.clone().grad_fn._input_metadata[0].dtype) for x in [jagged(2, 1).requires_grad_()]]",
    "torch.autograd.gradcheck(lambda v: (torch.nested.nested_tensor_from_jagged(v, o) ** 2).values(), "
    "numbers(8, 2).double().requires_grad_())",
]
_MODULES = [
    "[m.eval()(x, x, x)[0].to_padded_tensor(0.0).shape for m in "
    "[torch.nn.MultiheadAttention(4, 2, batch_first=True).requires_grad_(False)] for x in [strided((2, 4), (3, 4))]]",
    "[m.eval()(x, x, x)[1].shape for m in [torch.nn.MultiheadAttention(4, 2, batch_first=True).requires_grad_(False)] "
    "for x in [strided((2, 4), (3, 4))]]",
    "torch.nn.MultiheadAttention(4, 2, batch_first=True)(*[strided((2, 4), (3, 4))] * 3)",
    "torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()(*[strided((2, 4), (3, 4))] * 3)",
    "torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()(*[jagged(2, 3)] * 3)",
    "p(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Dropout(0.5)).eval()(nt) * 0)",
]
CASES = expressions(SETUP, [*_MADE, *_POINTWISE, *_OPERATORS, *_REFUSED, *_GRADIENTS, *_MODULES])
