"""torch.func: derivatives, batching, nested transforms, randomness and errors."""

from tests.golden.answers import expressions

SETUP = """
from tests.golden.answers import refusal
from torch.func import functional_call, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize
from torch.func import stack_module_state, vjp, vmap
x = torch.tensor([0.3, -1.2, 0.7])
y = torch.tensor([-0.4, 0.9, 1.5])
W = torch.tensor([[0.4, 0.8, -0.7], [-0.4, -0.6, 0.2], [-0.9, 1.1, -1.1], [0.1, -0.6, 0.4]])
class F(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return a * 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
class Own(F):
    generate_vmap_rule = False
    @staticmethod
    def vmap(info, in_dims, a):
        return Own.apply(a) * info.batch_size, in_dims[0]
class NoSetup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
class NoRule(F):
    generate_vmap_rule = False
class OneResult(NoRule):
    @staticmethod
    def vmap(info, in_dims, a):
        return a
def filled(a):
    out = a.new_zeros(2)
    out[0] = a.sum()
    out[1:] = a[1]
    return out
def placed(i, v):
    a = torch.zeros(3) + 0 * v
    a[i] = v
    return a
fw = torch.autograd.forward_ad
def fwd_off(f):
    with fw._set_fwd_grad_enabled(False):
        return f()
def one_dual(a):
    with fw.dual_level():
        return fw.unpack_dual(fw.make_dual(a, a)).tangent
net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.1 - 0.3)
params = {k: v.detach() for k, v in net.named_parameters()}
def loss(p, a, t):
    return torch.nn.functional.cross_entropy(functional_call(net, p, (a[None],)), t[None])
def after(f, w):
    w = w.clone().requires_grad_()
    o = f(w)
    o.sum().backward()
    return o.requires_grad, w.grad
conv = torch.nn.Conv2d(1, 2, 3)
with torch.no_grad():
    conv.weight.copy_(torch.arange(18.0).reshape(2, 1, 3, 3) * 0.1)
    conv.bias.zero_()
image = torch.arange(50.0).reshape(2, 1, 1, 5, 5) * 0.1
def gradient_with_tangent(**options):
    with torch.autograd.forward_ad.dual_level():
        leaf = x.clone().requires_grad_()
        a = torch.autograd.forward_ad.make_dual(leaf, y)
        (g,) = torch.autograd.grad((a.sin() * a).sum(), a, **options)
        made = torch.autograd.forward_ad.unpack_dual(g)
        return made.primal.detach(), made.tangent.detach(), g.requires_grad
def push(f):
    return lambda a: jvp(f, (a,), (a.cos(),))[1]
def total(f):
    return lambda a: f(a).sum()
def still(a):  # in no_grad a tangent goes on, and a gradient does not
    return torch.no_grad()(torch.sin)(a) * a
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(a):
        return a**3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2
    @staticmethod
    def jvp(ctx, t):
        return t * 3 * ctx.saved_tensors[0] ** 2
    @staticmethod
    def vmap(info, in_dims, a):
        return Cube.apply(a), in_dims[0]
twins = [torch.nn.Linear(3, 2) for _ in range(3)]
for k, m in enumerate(twins):
    with torch.no_grad():
        m.weight.fill_(0.5 * k)
        m.bias.fill_(1.0)
"""
EXPRESSIONS = [
    "gradient_with_tangent(retain_graph=False, create_graph=True)",
    "gradient_with_tangent(create_graph=True)",
    "gradient_with_tangent(retain_graph=True)",
    "grad(lambda a:(a.sin()).sum())(x)",
    "grad(grad(torch.sin))(x[0])",
    "grad_and_value(lambda a,b:(a*b).sum(),argnums=(0,1))(x,y)",
    "grad(lambda d:(d['a']*d['b']).sum())({'a':x,'b':y})",
    "vjp(torch.sin,x)[1](y)",
    "jvp(torch.sin,(x,),(y,))",
    "jacrev(lambda a:W@a)(x)",
    "jacfwd(lambda a:(W@a).sin())(x)",
    "hessian(lambda a:(W@a).sin().sum())(x)",
    "vmap(torch.dot)(W,W)",
    "vmap(lambda a:a.sum())(W)",
    "vmap(lambda a:W@a, in_dims=1,out_dims=1)(W.t()@W)",
    "vmap(grad(lambda w,a:(w@a).sin().sum()),in_dims=(None,0))(W,torch.stack([x,y]))",
    "vmap(vmap(lambda a,b:a*b))(W,W).sum()",
    "vmap(vmap(lambda a,b:a*b,(0,None)),(None,0))(x,y)",
    "vmap(jacrev(lambda a:a**2))(W)",
    "jacrev(vmap(torch.sin))(x)",
    "vmap(hessian(lambda a:(a**3).sum()))(W[:2])",
    "vmap(lambda a: a+torch.randn(3))(W)",
    "vmap(lambda a: torch.nn.functional.dropout(a),randomness='different')(torch.ones(2,6))",
    "vmap(lambda a: a.item())(x)",
    "vmap(lambda a: 3)(x)",
    "vmap(lambda a,b: a+b)(x,W)",
    "vmap(lambda a,b: a.add_(b),(None,0))(x,W)",
    "vmap(torch.sin,in_dims=None)(x)",
    "vmap(torch.sin,in_dims=3)(x)",
    "vmap(torch.sin)()",
    "vmap(torch.sin,in_dims=(0,0))(x)",
    "vmap(lambda a:(a,a),out_dims=(0,1))(W)[1].shape",
    "vmap(lambda a:(a,a),out_dims=(0,1,2))(W)",
    "vmap(torch.sin,randomness='x')(x)",
    "vmap(torch.sin,chunk_size=0)(x)",
    "vmap(torch.sin,chunk_size=2)(x)",
    "vmap(lambda a: {'u':a[1],'v':a[::2],'w':a[torch.tensor([0,0])]})(W)",
    "vmap(lambda a,i:a[i])(W,torch.tensor([0,1,2,0]))",
    "vmap(lambda i:x[i])(torch.tensor([0,1,2,0]))",
    "grad(lambda a: a*2)(x)",
    "grad(lambda a: 3.)(x)",
    "grad(lambda a: a.sum(), argnums=2)(x)",
    "grad(lambda a: a.sum())(3)",
    # negative argnums count from the end
    "grad(lambda a,b: (a*b*b).sum(), argnums=-1)(x,y), grad(lambda a,b: (a*b*b).sum(), argnums=(-2,1))(x,y)",
    "grad_and_value(lambda a,b: (a*b*b).sum(), argnums=(0,-1))(x,y), jacrev(lambda a,b: a*b*b, argnums=(-1,-2))(x,y)",
    "grad(lambda a,b: (a*b).sum(), argnums=-3)(x,y)",
    "grad(lambda a,b: (a*b).sum(), argnums=(1,-1))(x,y)",
    "jacfwd(lambda a,b: a*b, argnums=-3)(x,y)",
    "jacfwd(lambda a,b: a*b*b, argnums=-1)(x,y)",
    # what a mask selects must have the same size for all elements of a batch
    "vmap(torch.masked_select)(W,W>0)",
    "vmap(torch.masked_select,(None,0))(x,torch.ones(4,3,dtype=torch.bool))",
    "vmap(torch.masked_select,(0,None))(W,x>0), vmap(vmap(torch.masked_select,(0,None)),(0,None))(W[None],x>0)",
    "vmap(lambda a: a[a>0])(W)",
    "vmap(lambda a,m: a[:,m])(W[:,None],W>0)",
    "vmap(lambda a: a.clone().__setitem__(a>0,0))(W)",
    "jacfwd(lambda a: a[a>0])(x), jacrev(lambda a: a.masked_select(a>0))(x), hessian(lambda a: (a[a>0]**3).sum())(x)",
    "grad(lambda a:(a.sum(),a*2),has_aux=True)(x)",
    "vjp(lambda a:(a,a*2),x)[1](x)",
    "vjp(lambda a:(a,a*2),x)[1]((x,x))",
    "jvp(torch.sin,x,x)",
    "jacrev(lambda a,b:(a*b,a.sum()),argnums=(0,1))(x[:2],y[:2])",
    "vmap(lambda a: torch.stack([a,a*2]).softmax(0))(W[:2])",
    "vmap(lambda a,b: torch.where(a>0,a,b))(W,W.double()).dtype",
    "vmap(lambda a: a.max(0))(W)",
    "vmap(lambda a: a.max())(W)",
    "vmap(lambda a: torch.linalg.inv(a))(torch.eye(2).expand(2,2,2)*2)",
    "vmap(lambda s:s*x.double())(torch.ones(2)).dtype",
    "vmap(lambda s:s*x)(torch.ones(2).double()).dtype",
    "vmap(lambda m: x[m.long()])(torch.tensor([[0,2],[1,0]]))",
    "vmap(lambda i: x[i:],)(torch.tensor([0,2,1]))",
    "vmap(lambda a: torch.einsum('i,j->ij',a,x))(W).shape",
    "vmap(lambda a: torch.nn.functional.layer_norm(a,(3,)))(W)",
    "vmap(lambda a: torch.nn.functional.cross_entropy(a[None],torch.tensor([1])))(W)",
    "vmap(lambda a: a.view(3,1).expand(3,2).t().reshape(-1).flatten().unsqueeze(0).squeeze(0).sort().values)(W)",
    "vmap(lambda a: torch.cat([a,x]).cumsum(0))(W)",
    "vmap(lambda a,b:torch.mm(a[None],b[:,None]))(W,W)",
    "vmap(lambda a,b: torch.linalg.norm(a-b))(W,W*2)",
    "vmap(lambda a: a.var())(W)",
    "vmap(lambda a: a.prod())(W)",
    "vmap(lambda a: a.argmax())(W)",
    "vmap(lambda a: a.mean(dim=-1,keepdim=True))(W)",
    "vmap(lambda a: a.T)(W[None].expand(2,4,3)).shape",
    "vmap(lambda a: a.mT @ a)(torch.ones(2,4,3))",
    "vmap(lambda a: (len(a.shape),a.dim(),a.size(),a.numel(),a.dtype) and a.half().float())(W)",
    "vmap(lambda a: [c*2 for c in a])(W)",
    "vmap(lambda a: a.unbind(0)[0] if a.shape[0]>2 else a)(W)",
    "jvp(lambda a,b:(a*b,a.sum()),(x,y),(y,x))",
    "jvp(lambda a:jvp(torch.sin,(a,),(y,))[1],(x,),(x,))",
    "vmap(lambda v: jvp(torch.sin,(x,),(v,))[1])(torch.eye(3))",
    "vmap(vjp(lambda a:W@a,x)[1])(torch.eye(4))",
    "linearize(torch.sin,x)[1](y)",
    "grad(lambda a: vjp(torch.sin,a)[1](y)[0].sum())(x)",
    "hessian(lambda p: (p['w']*x).sum().pow(2))({'w':y[:2].sum()})",
    "grad(lambda a: grad(lambda b:(a*b).sum())(a*a).sum())(x)",
    "grad(lambda a:a.detach().sum())(x)",
    "vmap(grad(lambda a: vmap(torch.sin)(a).sum()))(W)",
    "jacrev(lambda a: a.sum())(x)",
    "jacrev(lambda a:(a,{'k':a*2}))(x[:2])",
    "vmap(lambda a: torch.nn.functional.normalize(a,dim=0))(W)",
    "vmap(torch.nn.functional.gumbel_softmax,randomness='different')(W).shape",
    "vmap(lambda a: torch.nn.functional.scaled_dot_product_attention(a,a,a))(torch.ones(2,1,3,4)).shape",
    "vmap(lambda a,b: a-b, in_dims=(-1,0), out_dims=-1)(W, W.t()).shape",
    "vmap(lambda a: a.copy_(x))(W.clone())",
    "vmap(lambda a: a.add_(1).mul_(2))(W.clone())",
    "vmap(lambda a: a[0].fill_(0))(W.clone())",
]
EXPRESSIONS += [
    "vmap(filled)(W)",
    "vmap(placed)(torch.tensor([0, 2, 1]), x)",
    "vmap(F.apply)(W)",
    "vmap(grad(lambda a: F.apply(a).sum()))(W)",
    "grad(lambda a: vmap(F.apply)(a).sum())(W)",
    "vmap(Own.apply)(W)",
    "vmap(grad(loss), in_dims=(None, 0, 0))(params, W, torch.tensor([0, 1, 1, 0]))",
    "vmap(loss, in_dims=(None, 0, 0))(params, W, torch.tensor([0, 1, 1, 0]))",
    "grad(loss)(params, W[0], torch.tensor(1))",
    "after(lambda w: vmap(lambda a: a.exp().sum())(w), W)",
    "after(lambda w: grad(lambda a: (a * w).pow(2).sum())(W), W)",
    "after(lambda w: grad(lambda a: (a**3).sum())(w), x)",
    "after(lambda w: vjp(torch.sin, w)[1](y)[0], x)",
    "after(lambda w: jvp(torch.sin, (w,), (y,))[1], x)",
    "after(lambda w: jacrev(torch.sin)(w), x)",
    "vmap(conv)(image)",
    "vmap(lambda p, a: functional_call(twins[0], p, (a,)), (0, None))(stack_module_state(twins)[0], x)",
    "vmap(torch.nn.functional.gumbel_softmax)(W)",
    "vmap(torch.nn.functional.dropout2d)(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.nn.functional.dropout2d(a, training=False))(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.nn.functional.feature_alpha_dropout(a, training=True))(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.nn.functional.fractional_max_pool2d(a[None], 2, output_size=2))(torch.ones(2, 5, 5))",
    "vmap(lambda a: torch.nn.functional.scaled_dot_product_attention(a, a, a, dropout_p=0.5))(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.nn.functional.scaled_dot_product_attention(a, a, a))(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.svd_lowrank(a, 2)[1])(torch.ones(2, 3, 4))",
    "vmap(lambda a: torch.pca_lowrank(a, 2)[1])(torch.ones(2, 3, 4))",
    "vmap(lambda a: a.clone().geometric_(0.5))(torch.ones(2, 3))",
    "vmap(lambda a: torch.rand(3) + 0 * a, randomness='different')(W)",
    "o = vmap(lambda a: torch.rand(3) + 0 * a, randomness='same')(W); [(o == o[0]).all().item(), o.shape]",
    "o = vmap(lambda a: torch.nn.functional.dropout(a), randomness='same')(torch.ones(3, 9)); "
    "(o == o[0]).all().item()",
    "vmap(lambda a: torch.nn.functional.dropout(a), randomness='different')(torch.ones(2, 6)).shape",
    "vmap(torch.bernoulli, randomness='same')(torch.full((2, 3), 0.5))",
    "vmap(lambda a: a.clone().bernoulli_(a), randomness='same')(torch.full((2, 3), 0.5))",
    "vmap(lambda a: torch.zeros(3).bernoulli_(a), randomness='same')(torch.full((2, 3), 0.5))",
    "vmap(lambda a: torch.zeros(3).bernoulli_(a), randomness='different')(torch.full((2, 3), 0.5))",
    "vmap(lambda a: torch.zeros(3).normal_(), randomness='different')(torch.ones(2, 3))",
    "vmap(lambda a: torch.multinomial(a, 2), randomness='same')(torch.ones(2, 3))",
    "vmap(lambda a: torch.normal(0.0, a), randomness='same')(torch.ones(2, 3))",
    "vmap(lambda a: torch.poisson(a), randomness='same')(torch.ones(2, 3))",
    "vmap(torch._standard_gamma, randomness='same')(torch.ones(2, 3))",
    "vmap(lambda a: torch.randn(3, out=a), randomness='different')(torch.ones(2, 3))",
    "g = torch.Generator().manual_seed(3); "
    "o = vmap(lambda a: a.clone().normal_(generator=g), randomness='same')(torch.ones(3, 9)); (o == o[0]).all().item()",
    "o = vmap(lambda a: a.clone().bernoulli_(torch.full((9,), 0.5)), randomness='same')(torch.ones(3, 9)); "
    "(o == o[0]).all().item()",
    "jvp(lambda a: a**2 - fwd_off(lambda: a**2), (x,), (y,))",
    "jvp(lambda a: a.clone().mul_(fwd_off(lambda: a * 3)), (x,), (y,))",
    "fwd_off(lambda: jvp(torch.sin, (x,), (y,)))",
    "jvp(lambda a: a**2 * torch.no_grad()(torch.sin)(a), (x,), (y,))",
    "torch.no_grad()(jvp)(lambda a: a**2 * torch.no_grad()(torch.sin)(a), (x,), (y,))",
    "push(still)(x), push(push(still))(x), push(push(push(still)))(x)",
    "jacfwd(still)(x), jacfwd(jacfwd(still))(x), push(jacfwd(still))(x), jacfwd(push(still))(x)",
    "hessian(total(still))(x), hessian(total(push(still)))(x), push(hessian(total(still)))(x)",
    "grad(total(push(still)))(x), push(grad(total(push(still))))(x), grad(total(push(push(still))))(x)",
    "jacfwd(grad(total(push(still))))(x), jacrev(jacfwd(still))(x), vjp(push(still), x)[1](y)",
    "vmap(jacfwd(still))(W), vmap(hessian(total(still)))(W), push(vmap(push(still)))(W)",
    "jacfwd(vmap(still))(W), hessian(total(vmap(jacfwd(still))))(W[:2]), vmap(push(vmap(push(still))))(W)",
    "push(push(push(lambda a: a.exp() * a)))(x), jacfwd(jacfwd(jacfwd(lambda a: (a * a).prod())))(x)",
    "grad(total(jacfwd(lambda a: a.clone().mul_(a).add_(a.cos()))))(x)",
    "push(push(lambda a: a.clone().mul_(a).sub_(a.exp())))(x), push(push(lambda a: a[None].expand(2, 3).square()))(x)",
    "[hessian(total(still))(x).requires_grad, push(grad(total(still)))(x).requires_grad, jacrev(push(still))(x).requires_grad]",
    "jacfwd(lambda a: a * fwd_off(lambda: a * 3))(x), push(push(lambda a: a * fwd_off(lambda: a.sin())))(x)",
    "grad(total(push(lambda a: a * fwd_off(lambda: a.sin()))))(x), vmap(push(lambda a: a * fwd_off(lambda: a.sin())))(W)",
    "push(Cube.apply)(x), grad(total(push(Cube.apply)))(x), push(grad(total(Cube.apply)))(x)",
    "vmap(push(Cube.apply))(W), jacfwd(Cube.apply)(x), hessian(total(Cube.apply))(x)",
    "w = x.clone().requires_grad_(); h = jacfwd(lambda a: (a * w).sin())(x); torch.autograd.grad((h * h).sum(), w)",
    "w = x.clone().requires_grad_(); h = hessian(lambda a: (a * w).sin().sum())(x); torch.autograd.grad((h * h).sum(), w)",
    "w = x.clone().requires_grad_(); h = jacfwd(torch.sin)(w); h.requires_grad, torch.autograd.grad((h * h).sum(), w)",
    "jacfwd(lambda a: a * torch.rand(3))(x)",
    "jacfwd(lambda a: a * torch.rand(3), randomness='same')(x).diagonal().gt(0)",
    "jacfwd(lambda a: a.sum() * torch.rand(()), randomness='different')(x).unique().numel()",
    "jacfwd(lambda d: {'s': d['a'] * d['b'], 't': d['b'].sum()})({'a': x, 'b': y})",
    "jacfwd(lambda a, b: (a * b, (a.sum(), b)), argnums=(1, 0), has_aux=True)(x, y)",
    "jacfwd(lambda a, b: a.sum() * b.double().sin(), argnums=(0, 1))(x, y.double())",
    "jacfwd(lambda a: 3)(x)",
    "jacfwd(lambda a: a.argmax())(x)",
    "jacfwd(lambda a: torch.ones(2))(x)",
    "jacfwd(torch.sin)(torch.arange(3))",
    "jacfwd(torch.sin)(3.0)",
    "jacfwd(torch.sin)(torch.ones(0))",
    "jacfwd(lambda a: a[:0])(x)",
    "jacfwd(lambda a: a.clone().requires_grad_())(x)",
    "with_level = fw.dual_level(); with_level.__enter__(); r = refusal(lambda: jvp(torch.sin, (x,), (y,))); "
    "with_level.__exit__(None, None, None); r",
    "push(lambda a: one_dual(a))(x)",
    "[refusal(lambda: t(lambda a: (a.sum(), [a, 1]), has_aux=True)(x)) for t in (grad, jacrev, jacfwd)]",
    # Types of indices, within vmap and outside of it.
    *(
        case
        for kind in ("int64", "int32", "int16")
        for call in (
            "torch.gather(a, 0, i)",
            "torch.scatter(a, 0, i, a)",
            "torch.scatter_add(a, 0, i, a)",
            "torch.index_select(a, 0, i)",
            "torch.index_add(a, 0, i, a)",
            "torch.index_copy(a, 0, i, a)",
            "torch.index_fill(a, 0, i, 2.0)",
            "torch.take(a, i)",
            "torch.take_along_dim(a, i, 0)",
        )
        for case in (
            f"i = torch.tensor([[2, 0, 1], [1, 2, 0]]).to(torch.{kind}); "
            f"vmap(lambda a, i: {call})(torch.stack([x, y]), i)",
            f"a, i = x, torch.tensor([2, 0, 1]).to(torch.{kind}); {call}",
        )
        if kind != "int16" or "gather" in call or "copy" in call
    ),
    "torch.zeros(3).index_copy_(0, torch.tensor([2, 0, 1], dtype=torch.int32), x)",
    # Keyword arguments, and argnums.
    "[t(lambda a, k=1.0: (a * k).sin().sum())(x, k=y) for t in (grad, grad_and_value)]",
    *(
        f"{t}({f}{options})({call})"
        for t in ("jacfwd", "jacrev", "hessian")
        for f, options, call in (
            ("lambda a, k=1.0: (a * k).sin().sum()", "", "x, k=y"),
            ("lambda *, a: a.sum()", "", "a=x"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=None", "x, y"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=(None,)", "x, y"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=[0, 1]", "x, y"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=()", "x, y"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=1", "x"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=(0, 0)", "x, y"),
            ("lambda a, b: (a * b).sin().sum()", ", argnums=(1,)", "x, y"),
        )
    ),
    "jacfwd(torch.sin, argnums=None)(x), jacfwd(lambda a, b: (a * b, (a, b)), None, True)({'a': x}['a'], y)",
    "refusal(lambda: vjp(lambda a: (a, 'text'), x, has_aux=True)), "
    "refusal(lambda: jvp(lambda a: (a, None), (x,), (x,), has_aux=True))",
    "vjp(lambda a: (a, 3), x)",
    "jvp(lambda a: (a, 3), (x,), (x,))",
    "jacfwd(lambda a: (lambda o: (o[:1].copy_(a[1:2] * a[:1]), o[1:].copy_(a[1:].sin()), o * a)[2])(torch.zeros(3)))(x)",
    "hessian(lambda a: (lambda o: (o[:1].copy_(a[1:2] * a[:1]), o[1:].copy_(a[1:].sin()), (o * a).sum())[2])(torch.zeros(3)))(x)",
    "push(push(push(lambda a: a * grad(lambda b: (b**3).sum())(a))))(x), jacfwd(push(lambda a: a * grad(total(torch.exp))(a)))(x)",
    "jacfwd(jacfwd(push(lambda a: a * 1.0)))(x), jacfwd(jacfwd(push(lambda a: torch.cat([a, a * a]))))(x[:2])",
    "jacfwd(lambda a: vmap(lambda i: i * a.sum())(a) * grad(lambda b: (b * a.exp()).prod())(a))(x)",
    "hessian(lambda a: (a * jvp(torch.sin, (a,), (a * a,))[1]).sum())(x)",
    "jvp(torch.sin, (x.to(torch.complex64),), (y.to(torch.complex64) * 1j,))",
    "jacfwd(torch.square)(torch.complex(x, y))",
    "jacrev(torch.square, argnums=1)(x, (x, torch.complex(x, y)))",
    "jacfwd(lambda a: (a, torch.complex(a, a)))(x)",
    "jacrev(lambda a: torch.complex(a, a))(x)",
    "jvp(torch.sin, (torch.arange(3),), (torch.arange(3),))",
    "jvp(torch.sin, (x,), (torch.arange(3),))",
    "jvp(torch.sin, (x,), (x[:1],))",
    "push(push(lambda a: torch.view_as_real(torch.complex(a, a * a)).sum(-1)))(x)",
    "jvp(lambda a: (a.argmax(), a.max()), (x,), (y,))",
    "jvp(lambda a: a, (x,), (y,)), jvp(lambda a: torch.ones(2), (x,), (y,))",
    "w = x.clone().requires_grad_(); o, t = jvp(lambda a: a * w.exp(), (x,), (y,)); torch.autograd.grad((o * t).sum(), w)",
    "w = x.clone().requires_grad_(); o, t = jvp(torch.exp, (w,), (y,)); torch.autograd.grad((o * t).sum(), w)",
    "jvp(lambda a: jvp(lambda b: b**3, (a,), (y,))[1] * a, (x,), (y,))",
    "jvp(lambda a: grad(lambda b: (b * a).sin().sum())(a), (x,), (y,))",
    "jvp(lambda a: jacrev(lambda b: b**2 * a)(a), (x,), (y,))",
    "jvp(vmap(grad(torch.sin)), (x,), (y,)), vmap(lambda a, b: jvp(torch.sin, (a,), (b,)))(x, y)",
    "vmap(lambda a: one_dual(a))(x)",
    "functional_call(net, {'0.weight': torch.zeros(5, 3)}, x)",
    "functional_call(net, [{'0.bias': torch.ones(5)}, {'2.bias': torch.ones(2)}], (x,))",
    "functional_call(net, [{'0.bias': torch.ones(5)}, {'0.bias': torch.ones(2)}], (x,))",
    "functional_call(net, {'0.bias': torch.ones(5)}, x, strict=True)",
    "functional_call(net, 3, x)",
    "stack_module_state([])",
    "stack_module_state([torch.nn.Linear(1, 1), torch.nn.Tanh()])",
    "torch.vmap is vmap",
    "v = x.clone().requires_grad_(); torch.autograd.grad(v.exp(), v, torch.eye(3), is_grads_batched=True)",
    "vmap(lambda a: torch.nn.functional.max_pool2d(a, 2, 2))(torch.arange(96.0).reshape(2, 3, 4, 4))",
    "vmap(lambda a: torch.nn.functional.max_pool1d(a, 2, 1, 1, 2))(torch.arange(24.0).reshape(2, 3, 4))",
    "vmap(lambda a: a.permute(1, 0, 2).flip(0))(torch.arange(24.0).reshape(2, 2, 3, 2))",
    "w = x.clone().requires_grad_(); o, f = vjp(torch.sin, w); [o.requires_grad, f(x)[0].requires_grad]",
    "w = x.clone().requires_grad_(); o, f = vjp(torch.square, w); "
    "(torch.no_grad().__enter__(), (g := f(x)[0]), torch.enable_grad().__enter__(), g.requires_grad, g)[3:]",
    "w = x.clone().requires_grad_(); q = torch.no_grad(); q.__enter__(); o, f = vjp(torch.square, w); "
    "q.__exit__(None, None, None); g = f(x)[0]; (o.requires_grad, g.requires_grad, torch.autograd.grad(g.sum(), w))",
    "jvp(torch.sin, (), ())",
    "jvp(torch.sin, (1.0,), (x,))",
    "jvp(torch.sin, (x,), (1.0,))",
    "jvp(torch.sin, (x,), x)",
    "vjp(lambda a: None, x)",
    "grad(torch.sin, argnums=1.5)(x)",
    "grad(torch.sin, argnums=(0, 'a'))(x)",
    "grad(lambda a: NoSetup.apply(a).sum())(x)",
    "vmap(NoSetup.apply)(W)",
    "vmap(NoRule.apply)(W)",
    "vmap(OneResult.apply)(W)",
    "vmap(Own.apply)(a=W)",
    "functionalize(lambda a: a.clone().mul_(2).add_(1))(x), functionalize(torch.sin, "
    "remove='mutations_and_views')(x)",
    "a = x.clone(); functionalize(lambda v: v.mul_(2))(a); a",
    "functionalize(torch.sin, remove='views')",
    # what is written to a view reaches the batch
    "vmap(lambda a: (a.diagonal().add_(1), a)[1])(torch.zeros(2, 3, 3))",
    "vmap(lambda a: (a.split(2)[0].diagonal().add_(torch.ones(2)), a)[1])(torch.zeros(2, 4, 2))",
    "vmap(lambda a: (a.unfold(0, 2, 1)[0].add_(3), a)[1])(torch.arange(24.0).reshape(3, 4, 2))",
    "vmap(lambda a: (a.as_strided((2,), (3,), 1).add_(3), a)[1])(torch.arange(24.0).reshape(3, 4, 2))",
    "vmap(lambda a: (a.squeeze()[0].add_(1), a)[1])(torch.arange(24.0).reshape(3, 4, 2))",
    "vmap(lambda a: (a.imag.add_(1), a.real.add_(2), a)[2])(torch.zeros(2, 3, dtype=torch.complex64))",
    "vmap(lambda a: (torch.view_as_real(a)[..., 1].add_(2), a)[1])(torch.zeros(2, 3, dtype=torch.complex64))",
    "vmap(lambda a: (torch.view_as_complex(a).mul_(1j), a)[1])(torch.arange(8.0).reshape(2, 2, 2))",
    "vmap(lambda a: (a.diagonal().fill_(7), a)[1], in_dims=2, out_dims=1)(torch.zeros(2, 2, 3))",
    "grad(lambda a: (vmap(torch.diagonal)(a) ** 2).sum())(torch.arange(8.0).reshape(2, 2, 2))",
    "vmap(vmap(torch.diagonal))(torch.arange(16.0).reshape(2, 2, 2, 2))",
    "vmap(vmap(lambda a: (a.diagonal().add_(1), a)[1]))(torch.zeros(2, 2, 3, 3))",
    "vmap(vmap(lambda a: (a.real.add_(1), a)[1]), in_dims=1)(torch.zeros(2, 3, 2, dtype=torch.complex64))",
    "vmap(lambda a: (a.ravel().add_(1), a)[1])(torch.zeros(2, 3, 2))",
    "vmap(lambda a: (a.view(torch.int32).add_(1), a)[1])(torch.ones(2, 3))",
    "vmap(lambda a: a.view(torch.int32))(torch.ones(2, 3))",
    "vmap(lambda a: (a.hsplit(2)[0].add_(1), a.vsplit((1,))[1].add_(2), a)[2])(torch.zeros(2, 2, 4))",
    "vmap(lambda a: (a.dsplit(2)[1].add_(1), a)[1])(torch.zeros(2, 1, 2, 4))",
    "vmap(lambda a: (a.adjoint()[0].add_(1), a.split_with_sizes([1, 2])[1].add_(2), a)[2])(torch.zeros(2, 3, 2))",
    "vmap(lambda a: (torch.linalg.diagonal(a, offset=1).add_(1), a.narrow(0, 1, 1).add_(2), a)[2])(torch.zeros(2, "
    "2, 3))",
    "vmap(lambda a: (a.sum_to_size(2, 3).add_(1), torch.nn.functional.dropout(a, training=False).add_(2), "
    "a)[2])(torch.zeros(2, 2, 3))",
    "vmap(lambda a: a.clone().transpose_(0, 1))(torch.arange(12.0).reshape(2, 2, 3))",
    "[vmap(f, (0, *[None] * len(args)))(torch.arange(12.0).reshape(2, 2, 3), *args) for f, *args in "
    "((torch.Tensor.transpose_, 0, 1), (torch.Tensor.unsqueeze_, 1), (torch.Tensor.squeeze_,), (torch.Tensor.t_,), "
    "(torch.Tensor.swapaxes_, 0, 1), (torch.Tensor.swapdims_, 0, 1), (torch.Tensor.detach,))]",
    "vmap(lambda a: (a.clone().t_(), a.clone().unsqueeze_(1), a.clone().swapaxes_(0, 1), "
    "a.clone().squeeze_(0)))(torch.arange(6.0).reshape(2, 1, 3))",
    "b = torch.zeros(2, 2, 3); vmap(lambda a: (lambda v: (v.t_(), v[0].add_(1)))(a.view(2, 3))[1])(b); b",
    # gradients of a graph that is outside of the batch
    "w = y.clone().requires_grad_(); o = w ** 2; "
    "vmap(lambda v: torch.autograd.grad(o, w, v, retain_graph=True)[0])(torch.eye(3))",
    "w = y.clone().requires_grad_(); o = w[1] * w; "
    "vmap(lambda v: torch.autograd.grad(o, w, v)[0], in_dims=1)(torch.arange(6.0).reshape(3, 2))",
    "w = y.clone().requires_grad_(); o = w ** 2; vmap(lambda v: torch.autograd.grad(o, w, v)[0])(torch.eye(3)); "
    "torch.autograd.grad(o, w, y)",
    "w = y.clone().requires_grad_(); o = w.exp(); "
    "vmap(vmap(lambda v: torch.autograd.grad(o, w, v, retain_graph=True)[0]))(torch.arange(12.0).reshape(2, 2, 3))",
    "w = torch.arange(80.0).reshape(4, 4, 5).requires_grad_(); b = w * w; "
    "v = b.transpose(0, 2)[1].diagonal()[::2]; v.mul_(3); "
    "vmap(lambda u: torch.autograd.grad(v, w, u)[0])(torch.eye(2))",
    "w = y.clone().requires_grad_(); vmap(lambda v: torch.autograd.backward(w * 2, v))(torch.eye(3))",
    "w = y.clone().requires_grad_(); grad(lambda a: (w.sum().backward(), a.sum())[1])(x)",
    "vmap(lambda a: a.requires_grad_())(x)",
    "grad(lambda a: a.requires_grad_(False).sum())(x)",
    "jvp(lambda a: a.requires_grad_(), (x,), (x,))",
    "grad(lambda a: (a * 2).retain_grad())(x)",
    "vmap(lambda a: torch.autograd.functional.jacobian(torch.sin, a))(x)",
    "grad(lambda a: torch.nn.Parameter(torch.ones(3)).mul(a).sum())(x)",
    "grad(lambda a: torch.ones(3, requires_grad=True).mul(a).sum())(x)",
    "F = torch._C._functorch; F.set_inplace_requires_grad_allowed(True); "
    "r = grad(lambda a: a.requires_grad_().sum())(x); F.set_inplace_requires_grad_allowed(False); "
    "(r, F.get_inplace_requires_grad_allowed())",
    "F = torch._C._functorch; seen = []; "
    "vmap(lambda a: (seen.extend([F.is_batchedtensor(a), F.maybe_get_bdim(a), F.maybe_get_level(a), "
    "F.get_unwrapped(a)]), a)[1])(x); (seen, F.is_batchedtensor(x), F.maybe_get_level(x))",
    "F = torch._C._functorch; "
    "(F.reshape_dim_into(1, 0, W), F.reshape_dim_outof(0, 2, W), F._is_vmap_fallback_enabled())",
    "F = torch._C._functorch; n = F._vmap_increment_nesting(4, 'error'); r = F._add_batch_dim(W, 0, n).sin(); "
    "o = F._remove_batch_dim(r, n, 4, 1); p = F._remove_batch_dim(x, n, 4, 0); F._vmap_decrement_nesting(); "
    "(n, r.shape, o, p)",
]
CASES = expressions(SETUP, EXPRESSIONS)
