"""Operators of torch.ops.aten that have no other name: gradients. And torch._foreach_*."""

SETUP = """
A = torch.ops.aten
def r(*shape):
    n = 1
    for d in shape:
        n *= d
    return torch.tensor([((i * 7919 + 13 * len(shape)) % 101) / 37.0 - 1.3 for i in range(n)]).reshape(shape)
x, go, im = r(2, 3, 4), r(2, 3, 4).flip(0), r(1, 2, 6, 6)
one = torch.tensor(1.5)
a = [torch.ones(2), torch.full((3,), 2.0)]
"""

CASES = [
    "(lambda copy: [copy(A.add) is A.add, copy(A.add.Tensor) is A.add.Tensor, copy([A.mul.out])[0] is A.mul.out])("
    "__import__('copy').deepcopy)",
    "A.silu_backward(go, x)",
    "A.silu_backward.default(go, x)",
    "A.gelu_backward(go, x)",
    "A.gelu_backward(go, x, approximate='tanh')",
    "A.mish_backward(go, x)",
    "A.hardswish_backward(go, x)",
    "A.hardsigmoid_backward(go, x)",
    "A.hardtanh_backward(go, x, -0.5, 0.5)",
    "A.hardshrink_backward(go, x, 0.5)",
    "A.softshrink_backward(go, x, 0.5)",
    "A.softplus_backward(go, x, 2.0, 20.0)",
    "A.logit_backward(go, x.abs() / 3, 0.1)",
    "A.glu_backward(r(2, 3, 2), x, 2)",
    "A.threshold_backward(go, x, 0.2)",
    "A.sigmoid_backward(go, x.sigmoid())",
    "A.tanh_backward(go, x.tanh())",
    "A.leaky_relu_backward(go, x, 0.1, False)",
    "A.leaky_relu_backward(go, x, 0.1, True)",
    "A.elu_backward(go, 1.5, 1.2, 0.7, False, x)",
    "A.elu_backward(go, 1.5, 1.2, 0.7, True, torch.nn.functional.elu(x))",
    *(
        f"{call.replace('ARGS', given)}"
        for given in (
            "1.5",
            "1.5, 1.0, 1.0",
            "1.5, 2.0",
            "1.5, 1.0, 0.7",
            "0.5, 2.0, 0.7",
            "alpha=1.5",
            "scale=2.0",
            "input_scale=0.7",
            "-1.5, 2.0, 0.7",
            "2, 3, 1",
            "True",
        )
        for call in (
            "A.elu(x, ARGS)",
            "A.elu.default(x.double(), ARGS)",
            "torch._C._nn.elu(x.half(), ARGS)",
            "torch._C._nn.elu_(x.clone(), ARGS)",
            "(lambda v: torch.nn.functional.elu_(v * 1, ARGS).sum().backward() or v.grad)(x.clone().requires_grad_())",
            "(lambda v: A.elu.out(x, ARGS, out=v) is v and v)(torch.empty(0))",
            "(lambda v: torch.autograd.grad(torch.autograd.grad(A.elu(v, ARGS).sin().sum(), v, create_graph=True)[0]"
            ".exp().sum(), v))(x.double().requires_grad_())",
        )
    ),
    "A._prelu_kernel_backward(go, x, r(2, 3, 4) * 0.1)",
    "A._softmax_backward_data(go, x.softmax(-1), -1, torch.float32)",
    "A._log_softmax_backward_data(go, x.log_softmax(1), 1, torch.float32)",
    "A._softmax(x, 1, False)",
    "A._log_softmax(x, 1, False)",
    "A.log_sigmoid_backward(go, x, torch.exp(-x.abs()))",
    "A.native_dropout_backward(go, x > 0, 2.0)",
    "m, s = A.native_layer_norm(x, [4], r(4), r(4), 1e-3)[1:]; "
    "A.native_layer_norm_backward(go, x, [4], m, s, r(4), r(4), [True] * 3)",
    "m, s = A.native_layer_norm(x, [4], None, None, 1e-3)[1:]; "
    "A.native_layer_norm_backward(go, x, [4], m, s, None, None, [True, False, False])[0]",
    "v = r(2, 4, 3); m, s = A.native_group_norm(v, r(4), r(4), 2, 4, 3, 2, 1e-3)[1:]; "
    "A.native_group_norm_backward(v * 2, v, m, s, r(4), 2, 4, 3, 2, [True] * 3)",
    "A.convolution_backward(r(1, 3, 6, 6), im, r(3, 2, 3, 3), [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3)",
    "g, m = r(1, 3, 6, 6), [True, True, False]; "
    "A.convolution_backward(g, im, r(3, 2, 3, 3), None, *([1, 1],) * 3, False, [0, 0], 1, m)[1]",
    "A.mse_loss_backward(one, x, go * 2, 1)",
    "A.mse_loss_backward(go, x, go * 2, 0)",
    "A.smooth_l1_loss_backward(one, x, go * 0.3, 2, 0.7)",
    "A.huber_loss_backward(one, x, go * 0.3, 2, 0.7)",
    "A.binary_cross_entropy_backward(one, x.sigmoid(), go.sigmoid(), None, 1)",
    "w = r(5).abs(); A.nll_loss_backward(one, r(3, 5), torch.tensor([1, 0, 4]), w, 1, 0, w[[1, 4]].sum())",
    "A.select_backward(r(2, 4), [2, 3, 4], 1, 2)",
    "A.slice_backward(r(2, 2, 4), [2, 3, 4], 1, 0, 3, 2)",
    "A.diagonal_backward(r(2, 3), [2, 3, 4], 0, 1, 2)",
    "A.trace_backward(one, [3, 3])",
    "A.unfold_backward(r(3, 2), [4], 0, 2, 1)",
    "A.index_select_backward(r(2, 3), [4, 3], 0, torch.tensor([1, 1]))",
    "v, i = A.max_pool2d_with_indices(im, [2, 2], [2, 2], [0, 0], [1, 1], False); "
    "A.max_pool2d_with_indices_backward(r(1, 2, 3, 3), im, [2, 2], [2, 2], [0, 0], [1, 1], False, i)",
    "A.avg_pool2d_backward(r(1, 2, 3, 3), im, [2, 2], [2, 2], [0, 0], False, True, None)",
    "A._adaptive_avg_pool2d_backward(r(1, 2, 2, 2), im)",
    "A.reflection_pad2d_backward(r(1, 2, 8, 8), im, [1, 1, 1, 1])",
    "A.replication_pad1d_backward(r(2, 3, 6), x, [1, 1])",
    "A.upsample_nearest2d_backward(r(1, 2, 4, 4), [4, 4], [1, 2, 2, 2])",
    "A.upsample_bilinear2d_backward(r(1, 2, 4, 4), [4, 4], [1, 2, 2, 2], True)",
    "A.embedding_dense_backward(r(3, 2), torch.tensor([0, 2, 2]), 4, -1, False)",
    "A.cumprod_backward(go, x, 1, x.cumprod(1))",
    "torch._foreach_add_(a, 1)",
    "torch._foreach_add([], 1)",
    "torch._foreach_add(a, [torch.ones(2)])",
    "torch._foreach_add(a, [1.0, 2.0])",
    "torch._foreach_add(a, [1.0])",
    "torch._foreach_add(a, torch.tensor(2.0))",
    "torch._foreach_add(a, torch.ones(2))",
    "torch._foreach_add(a, a, alpha=2)",
    "!torch._foreach_add(a, 2, alpha=2)",
    "torch._foreach_mul(a, 3)",
    "torch._foreach_sub(a, [1.0, 2.0])",
    "torch._foreach_div_(a, a)",
    "torch._foreach_exp(a)",
    "torch._foreach_addcmul(a, a, a, value=2)",
    "torch._foreach_addcmul(a, a, a, [1, 2])",
    "torch._foreach_addcdiv(a, a, a, torch.tensor([1.0, 2.0]))",
    "torch._foreach_lerp(a, [v * 3 for v in a], 0.5)",
    "torch._foreach_pow(2.0, a)",
    "torch._foreach_pow(a, 2)",
    "torch._foreach_maximum(a, 1.5)",
    "torch._foreach_clamp_min_(a, 3)",
    "torch._foreach_clamp_max(a, [1.0, 1.5])",
    "torch._foreach_max(a)",
    "torch._foreach_powsum(a, 2)",
    "torch._foreach_zero_(a)",
    "torch._foreach_copy_(a, [torch.zeros(2), torch.ones(3)])",
    "torch._foreach_clone(a)",
    "torch._foreach_mm([r(2, 3)], [r(3, 2)])",
    "torch._foreach_maximum([torch.tensor([1, 2])], 1.5)",
    "torch._foreach_minimum([torch.tensor([1, 2])], [1.5])",
    "torch._foreach_clamp_min([torch.tensor([1, 2])], 1.5)",
    "torch._foreach_maximum([torch.tensor([1, 2])], [torch.tensor([1.5, 0.5])])",
    "torch._foreach_add_([torch.tensor([1, 2])], 1.5)",
    "torch._foreach_sqrt_([torch.tensor([1, 2])])",
    "torch._foreach_add(a, scalar=2)",
    "torch._foreach_mul(a, scalars=[1.0, 2.0])",
    "torch._foreach_sub(a, other=a)",
    "torch._foreach_pow(a, exponent=a)",
    # operators behind an underscore
    *(
        f"w = x.clone().requires_grad_(); y = torch._masked_softmax(w, go > 0.4, {dim}, {kind}); "
        "y.backward(go); (y, w.grad, type(y.grad_fn).__name__)"
        for dim, kind in ((None, 2), (0, 2), (1, 1), (-1, None))
    ),
    "w = r(2, 2, 3, 3); m = torch.eye(3) > 0; torch._masked_softmax(w, m, 3, 0), torch._masked_softmax(w, m[:2], None, 1)",
    "!torch._masked_softmax(x, go, 1, 2)",
    "!torch._masked_softmax(r(2, 2, 3, 3), torch.eye(3) > 0, 1, 2)",
    "!torch._masked_softmax(r(2, 2, 3, 3), torch.eye(3) > 0, 1)",
    "!torch._masked_softmax(r(2, 2, 3, 3), torch.eye(3) > 0, 1, 1)",
    "torch._softmax(x, 1, False), torch._log_softmax(x, -1, False)",
    "!torch._softmax(x, 1, True)",
    "torch._softmax_backward_data(go, x.softmax(1), 1, torch.float32), "
    "torch._log_softmax_backward_data(grad_output=go, output=x.log_softmax(-1), dim=-1, input_dtype=x.dtype)",
    "w = x.clone().requires_grad_(); "
    "torch._softmax_backward_data(go, w.softmax(-1), -1, x.dtype).square().sum().backward(); w.grad",
    "torch._VF._add_relu(x, 1), torch._add_relu(x, go, alpha=2), torch._add_relu_(x.clone(), go)",
    "torch._add_relu(torch.tensor([-3, 1]), torch.tensor([[1], [0]]), alpha=3)",
    "!torch._add_relu(x > 0, x > 0)",
    "w = im.clone().requires_grad_(); p = r(1, 3, 3, 2).requires_grad_(); y = "
    "torch._int_mm(torch.tensor([[-128, 127], [3, 4]], dtype=torch.int8), torch.tensor([[-128], [1]], dtype=torch.int8))",
    "torch._int_mm(torch.full((1, 70000), 255, dtype=torch.uint8), torch.full((70000, 2), -128, dtype=torch.int8))",
    "torch._int_mm(torch.zeros(2, 0, dtype=torch.int8), torch.zeros(0, 3, dtype=torch.int8))",
    *[
        f"!torch._int_mm(torch.ones(2, 2, dtype=torch.{a}), torch.ones({size}, dtype=torch.{b}))"
        for a, b, size in (("int32", "int8", "2, 2"), ("int8", "uint8", "2, 2"), ("int8", "int8", "3, 2"))
    ],
    "torch._grid_sampler_2d_cpu_fallback(w, p, 0, 1, True); y.sum().backward(); (y, w.grad, p.grad)",
    "!torch._grid_sampler_2d_cpu_fallback(im, r(1, 3, 3), 0, 0, False)",
    "torch._embedding_bag(r(4, 3), torch.tensor([0, 2, 2]), torch.tensor([0, 1]), False, 1)[:3]",
    "torch._embedding_bag(r(4, 3), torch.tensor([0, 2, 2]), torch.tensor([0, 1]), False, 0, False, None, False, 2)[0]",
    "torch._embedding_bag_forward_only(r(4, 3), torch.tensor([0, 2, 2]), torch.tensor([0, 1]))[0]",
    "q = lambda *s: r(*s).double(); [g.contiguous() for g in A._convolution_double_backward(q(2, 3, 6), q(3, 3, 3), q(3), "
    "q(2, 3, 3), q(3, 3, 3) * 2, q(2, 3, 6) + 1, (2,), (1,), (1,), False, (0,), 1, [True] * 3)]",
    "q = lambda *s: r(*s).double(); [g.contiguous() for g in A._convolution_double_backward(q(2, 4, 6), None, None, "
    "q(2, 2, 6), q(2, 2, 3) * 2, q(2, 4, 6) + 1, (1,), (1,), (1,), False, (0,), 2, [True, False, True])[::2]]",
    "A.convolution_backward(r(1, 3, 6, 6), im, r(3, 2, 3, 3), [0], *([1, 1],) * 3, False, [0, 0], 1, [False, True, False])[1]",
    "A._local_scalar_dense(one)",
    "!A._local_scalar_dense(torch.ones(0))",
    "z = torch._efficientzerotensor((2, 3), dtype=torch.int64); (z + 1, z.shape, z.dtype)",
    "!torch._efficientzerotensor(2).add_(1)",
    "torch._test_check_tensor(x == x)",
    "!torch._test_check_tensor(x > 0)",
    "F = torch.nn.functional; F.GRID_SAMPLE_INTERPOLATION_MODES, F.GRID_SAMPLE_PADDING_MODES",
    "w = [torch._C._get_mkldnn_enabled()]; torch._C._set_mkldnn_enabled(False); w.append(torch.backends.mkldnn.enabled); "
    "torch._C._set_mkldnn_enabled(True); w",
    "N = torch.autograd.gradcheck.__globals__['_get_numerical_jacobian'] if hasattr(torch.autograd.gradcheck, '__globals__') "
    "else torch.autograd.gradcheck._get_numerical_jacobian; w = x.double().requires_grad_(); "
    "[[j.round(decimals=4) for j in js] for js in N(lambda v: v[0, 0] * v[0, 1], (w,), eps=1e-6)]",
]
