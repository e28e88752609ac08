"""Branches of torch.nn.functional that other cases do not reach."""

from .op_branches import SETUP  # noqa: F401  (what the cases use)

_NN = (
    [
        f"gg(lambda a: F.{call}, x(3, 4) * 2)"
        for call in (
            "rrelu(a)",
            "hardswish(a)",
            "elu(a, 0.6)",
            "celu(a, 0.5)",
            "selu(a)",
            "silu(a)",
            "mish(a)",
            "gelu(a)",
            "gelu(a, approximate='tanh')",
            "softplus(a, 2, 3)",
            "logsigmoid(a)",
            "leaky_relu(a, 0.3)",
            "glu(a, 1)",
            "softshrink(a, 0.9)",
            "hardtanh(a, -0.3, 0.8)",
            "log_softmax(a, 0)",
            "softmax(a, 1)",
            "elu(a * 1, 0.6, inplace=True)",
        )
    ]
    + [
        "seeded(lambda: g(lambda a: F.rrelu(a, 0.2, 0.4, True), x(3, 4))), g(lambda a: F.rrelu_(a * 1), x(3)), "
        "seeded(lambda: torch.rrelu_(x(4), 0.2, 0.4, True)), torch.rrelu(x(4), 0.2, 0.4)",
        "g(lambda a: F.prelu(a, x(1)), x(3)), F.prelu(x(2, 3), x(1)), F.prelu(torch.tensor(-2.0).double(), x(1))",
        "F.prelu(x(3), x(3))",
        "F.prelu(x(2, 3), x(2))",
        "F.prelu(x(2, 3), x(1, 3))",
        "w = x(4, 2); g(lambda a, k: F.embedding_bag(torch.tensor([[0, 3], [2, 0]]), a, mode='sum', per_sample_weights=k, "
        "padding_idx=-4), w, x(2, 2))",
        "w = x(4, 2, dtype=half); F.embedding_bag(torch.tensor([0, 3, 3]), w, torch.tensor([0, 1]), mode='sum', "
        "per_sample_weights=x(3, dtype=half)), F.embedding_bag(torch.tensor([0, 3, 3]), w, torch.tensor([0, 1]))",
        "F.embedding_bag(torch.empty(0, dtype=torch.long), x(4, 2), torch.empty(0, dtype=torch.long), mode='max'), "
        "F.embedding_bag(torch.empty(0, 2, dtype=torch.long), x(4, 2), mode='max')",
        "[torch.embedding_bag(x(4, 2), torch.tensor([0, 3, 3, 1]), torch.tensor([0, 0, 3]), mode=m)[k] "
        "for m, k in ((0, 0), (1, 0), (2, 0), (2, 3))]",
        "[torch.embedding_bag(x(4, 2), torch.tensor([0, 3, 3, 1]), torch.tensor([0, 1, 4]), mode=m, "
        "include_last_offset=True)[0] "
        "for m in (0, 1, 2)]",
        "[torch.embedding_bag(x(4, 2), torch.tensor([0, 3, 3, 1]), torch.tensor([0, 1, 4]), False, m, False, "
        "None, True, 3)[k] "
        "for m, k in ((0, 0), (1, 0), (2, 0), (2, 3))]",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([0]), padding_idx=4)",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([0]), padding_idx=-5)",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([0]), mode='max', sparse=True)",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([0]), mode='other')",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([0]), mode='max', per_sample_weights=x(1))",
        "F.embedding_bag(torch.tensor([[0]]), x(4, 2), torch.tensor([0]))",
        "F.embedding_bag(torch.tensor([0]), x(4, 2), torch.tensor([1]))",
        "gg(lambda w: F.embedding(torch.tensor([[0, 1], [2, 2]]), w, padding_idx=1).square(), x(3, 2))",
        "gg(lambda w: F.embedding(torch.tensor([[0, 1], [2, 2]]), w, padding_idx=-3).square(), x(3, 2))",
        "w = x(3, 2).requires_grad_(); F.embedding(torch.tensor([2, 0, 2]), w, sparse=True).sum().backward(); "
        "w.grad.is_sparse, w.grad.to_dense()",
        "w = x(3, 2).requires_grad_(); F.embedding_bag(torch.tensor([2, 0, 2]), w, torch.tensor([0, 1]), mode='sum', "
        "sparse=True).sum().backward(); w.grad.is_sparse, w.grad.to_dense()",
        "F.embedding(torch.tensor([0]), x(3, 2), padding_idx=3)",
        "F.embedding(torch.tensor([0]), x(3, 2), padding_idx=-4)",
        "g(lambda a: F.unfold(a, 2, stride=2), x(2, 5, 6)), g(lambda a: F.fold(a, (4, 5), 2), x(8, 12))",
        "F.unfold(x(1, 1, 1, 5, 6), 2)",
        "F.fold(x(8), (4, 5), 2)",
        "g(lambda a: F.ctc_loss(a.log_softmax(1), torch.tensor([1, 2]), torch.tensor(5), torch.tensor(2), "
        "reduction='none'), x(5, 3))",
        "g(lambda a: F.ctc_loss(a.log_softmax(2), torch.tensor([[1, 1, 2], [2, 1, 0]]), [5, 4], [3, 2], "
        "reduction='sum'), x(5, 2, 3))",
        "g(lambda a: F.ctc_loss(a.log_softmax(2), torch.tensor([1, 1, 1, 2]), (3, 5), (3, 1), "
        "zero_infinity=True), x(5, 2, 3))",
        "F.ctc_loss(x(5, 2, 3).log_softmax(2), torch.tensor([1, 1, 1, 2]), (3, 5), (3, 1)), "
        "F.ctc_loss(x(5, 2, 3).log_softmax(2), torch.empty(0, dtype=torch.long), (3, 5), (0, 0), blank=2)",
        "torch.ctc_loss(x(5, 2, 3).log_softmax(2), torch.tensor([1, 1, 1, 2]), (3, 5), (3, 1), 0, 2, True), "
        "torch.ctc_loss(x(5, 2, 3).log_softmax(2), torch.tensor([1, 2, 1, 2]), (5, 5), (3, 1), 0, 0)",
        "[g(lambda a: F.ctc_loss(a.log_softmax(2), torch.tensor([[1, 1, 2], [2, 1, 0]]), torch.tensor([3, 4]), "
        "torch.tensor([3, 2]), reduction='sum', zero_infinity=z), x(5, 2, 3)) for z in (False, True)]",
        "g(lambda a: F.ctc_loss(a.log_softmax(2), torch.tensor([[1, 0, 1], [2, 2, 2]]), (0, 7), (0, 3), blank=3, "
        "reduction='none'), x(7, 2, 4).double())",
        "[g(lambda a: F.ctc_loss(a, torch.tensor([[1], [1]]), (3, 2), (1, 1), reduction='none'), "
        "torch.tensor([v, -1.0, -2.0]).repeat(3, 2, 1)) for v in (-torch.inf, torch.nan)]",
        "F.ctc_loss(x(9, 3, 2, 5).log_softmax(3)[:, 1], torch.tensor([[4, 4], [1, 2]]), (9, 8), (2, 1), reduction='sum')",
        "F.ctc_loss(x(5, 2, 3), torch.tensor([1, 1]), (5, 5), (1, 1), blank=3)",
        "!F.ctc_loss(x(5, 2, 3), torch.tensor([1, 1]), (5,), (1, 1))",
        "!F.ctc_loss(x(5, 2, 3), torch.tensor([1, 1]), (5, 5), (1,))",
        "!F.ctc_loss(x(5, 2, 3), torch.tensor([1, 1]), (6, 5), (1, 1))",
        "!F.ctc_loss(x(5, 2, 3), torch.tensor([1, 1]), (5, 5), (1, 1), reduction='other')",
        "gg(lambda a, k: F.binary_cross_entropy_with_logits(a, k, x(4), pos_weight=x(4).abs() + 1), x(3, 4), x(3, "
        "4).sigmoid())",
        "gg(lambda a, k: F.binary_cross_entropy_with_logits(a, k), x(3, 4), x(3, 4).sigmoid())",
        "g(lambda a: F.cross_entropy(a, x(3).softmax(0), w3, reduction='none', label_smoothing=0.2), x(3))",
        "g(lambda a: F.cross_entropy(a, x(2, 3, 4, seed=1).softmax(1), w3, reduction='none'), x(2, 3, 4))",
        "g(lambda a: F.cross_entropy(a, x(2, 3, 4, seed=1).softmax(1), reduction='mean'), x(2, 3, 4))",
        "g(lambda a: F.cross_entropy(a, torch.tensor([[1, 2], [0, -100]]), w3, label_smoothing=0.2), x(2, 3, 2))",
        "F.multi_margin_loss(x(4), torch.tensor(2), reduction='none'), F.multi_margin_loss(x(4), torch.tensor(2))",
        "F.multi_margin_loss(x(2, 4), torch.tensor([2, 1]), p=3)",
        "F.multi_margin_loss(x(2, 4), torch.tensor([2, 1]), weight=x(2, 2))",
        "!F.multi_margin_loss(x(2, 4), torch.tensor([2, 1, 0]))",
        "F.multilabel_margin_loss(x(4), torch.tensor([2, 0, -1, 1]), reduction='none'), "
        "F.multilabel_margin_loss(x(4), torch.tensor([2, 2, -1, 1])), F.multilabel_margin_loss(x(4), "
        "torch.tensor([-1, 0, 0, 0]))",
        "F.multilabel_margin_loss(x(2, 4), torch.tensor([1, 2]))",
        "F.kl_div(x(3, 2), x(3, 2, seed=1).softmax(1), reduction='batchmean'), F.kl_div(x(1).sum(), x(1).abs().sum(), "
        "reduction='batchmean')",
        "F.kl_div(x(3), x(3), reduction='other')",
        "F.poisson_nll_loss(x(3), x(3).abs() * 2, size_average=False), F.poisson_nll_loss(x(3), x(3), reduce=False), "
        "F.poisson_nll_loss(x(3), torch.tensor([0.0, 1.0, 2.0]).double(), full=True, reduction='none')",
        "F.poisson_nll_loss(x(3), x(3), reduction='other')",
        "g(lambda a, v: F.gaussian_nll_loss(a, x(3, 2, seed=1), v), x(3, 2), x(3).abs()), "
        "g(lambda a, v: F.gaussian_nll_loss(a, x(3, 2, seed=1), v), x(3, 2), x(3, 1).abs()), "
        "g(lambda a: F.gaussian_nll_loss(a, x(3, 2, seed=1), 0.3), x(3, 2)), F.gaussian_nll_loss(x(3), x(3), "
        "x(3) * 0, eps=0.5)",
        "F.gaussian_nll_loss(x(3), x(3), -1.0)",
        "F.gaussian_nll_loss(x(3), x(3), -x(3).abs())",
        "F.gaussian_nll_loss(x(3, 2), x(3, 2), x(2).abs())",
        "F.gaussian_nll_loss(x(3), x(3), x(3).abs(), reduction='other')",
        "g(lambda a, b, k: F.triplet_margin_with_distance_loss(a, b, k, swap=True, margin=2.0), x(3, 4), x(3, 4, seed=1), "
        "x(3, 4, seed=2)), F.triplet_margin_with_distance_loss(x(2, 3), x(2, 3, seed=1), x(2, 3, seed=2), reduction='none', "
        "distance_function=lambda a, b: (a - b).abs().sum(1))",
        "F.triplet_margin_with_distance_loss(x(3), x(3), x(3), margin=0.0)",
        "F.triplet_margin_with_distance_loss(x(3), x(3), x(3), reduction='other')",
        "F.triplet_margin_with_distance_loss(x(1, 3), x(3), x(3))",
        "F.pad(x(3, 4), (1, 1), 'reflect', 2.0)",
        "F.pad(x(3, 4), (1, 1), 'other')",
        "torch.adaptive_max_pool1d(x(2, 3, 8), 3), torch.adaptive_avg_pool1d(x(2, 3, 8), 3)",
        "!F.affine_grid(x(1, 2, 3), (2, 1, 3, 3), True)",
        "F.affine_grid(x(2, 2, 3), (2, 1, 3), True)",
        "F.affine_grid(x(2, 3, 3), (2, 1, 3, 3), True)",
        "F.affine_grid(x(2, 2, 3), (2, 1, 0, 3), True)",
        "F.affine_grid(torch.ones(2, 2, 3, dtype=torch.long), (2, 1, 3, 3), True)",
        "F.pad(x(3), (1, 1, 1, 1))",
        "g(lambda a: F.pad(a, (1, 2, 3, 0), 'replicate'), x(1, 2, 3, 4)), g(lambda a: F.pad(a, (1, 2, 2, 0, 1, "
        "0), 'circular'), "
        "x(1, 2, 3, 3, 3))",
        "gg(lambda a, w: F.rms_norm(a, (4,), w, 0.5), x(3, 4), x(4)), gg(lambda a: F.rms_norm(a, (3, 4)), x(3, 4))",
        "F.rms_norm(x(3, 4, dtype=half), (4,)), F.rms_norm(x(3, 4, dtype=bf), (4,)), F.rms_norm(x(3, "
        "4).float() * 1e-4, (4,))",
        "g(lambda a, w: F.rms_norm(a, (4,), w), x(3, 4).float(), x(4))",
        "F.rms_norm(x(3, 4), (3,))",
        "gg(lambda a, w, b: F.layer_norm(a, (4,), w, b, 0.5), x(3, 4), x(4), x(4, seed=1))",
        "gg(lambda a, w, b: F.group_norm(a, 2, w, b, 0.5), x(2, 4, 3), x(4), x(4, seed=1))",
        "gg(lambda a, w, b: F.batch_norm(a, None, None, w, b, True, 0.1, 0.5), x(5, 4), x(4), x(4, seed=1))",
        "torch.layer_norm(x(3, 4), (4,), x(4), x(4), 0.5), torch.rms_norm(x(3, 4), (4,)), "
        "torch.native_layer_norm(x(3, 4), (4,), "
        "None, None, 0.5)",
        "m, v = x(4, seed=3), x(4, seed=4).abs(); torch.batch_norm(x(3, 4), x(4), x(4, seed=1), m, v, True, 0.3, "
        "1.0, False), m, v",
        "m, v = x(4, seed=3), x(4, seed=4).abs(); torch.instance_norm(x(2, 4, 3), x(4), None, m, v, True, 0.3, "
        "1.0, False), m, v, "
        "torch.instance_norm(x(2, 4, 3), None, None, m, v, False, 0.3, 1.0, False)",
        "F.batch_norm(x(3, 4), x(3), x(4))",
        "F.batch_norm(x(3, 4), None, x(4))",
        "F.batch_norm(x(3, 4), x(4), None)",
        "F.batch_norm(x(3, 4), x(4), x(4), x(3))",
        "F.batch_norm(x(3, 4), x(4), x(4), None, x(5))",
        "F.batch_norm(x(1, 4), None, None, training=True)",
        "F.instance_norm(x(2, 3, 1))",
        "F.instance_norm(x(2, 3, 1), x(3), x(3).abs(), use_input_stats=False)",
        "F.group_norm(x(1, 2), 2)",
        "F.group_norm(x(1, 4, 1), 2), F.group_norm(x(2, 4), 4)",
        "F.affine_grid(x(1, 2, 3), (1, 1, 1, 1), True)",
        "F.interpolate(x(1, 2, 4), 3, mode='linear', antialias=True)",
        "F.interpolate(x(1, 2, 4), 3, mode='bilinear')",
        "F.interpolate(x(1, 2, 4), 3, mode='nearest', align_corners=True)",
        "F.interpolate(x(1, 2), 3)",
        "F.interpolate(x(1, 2, 4), 3, 2.0)",
        "F.interpolate(x(1, 2, 4))",
        "F.interpolate(x(1, 2, 4), scale_factor=1.6, recompute_scale_factor=True, mode='linear'), "
        "F.interpolate(x(1, 2, 4), scale_factor=1.6, mode='linear'), F.upsample(x(1, 2, 4), 5), "
        "F.upsample_nearest(x(1, 2, 4), 7), "
        "F.upsample_bilinear(x(1, 2, 4, 3), (5, 4)), F.interpolate(x(1, 2, 5), 3, mode='area')",
        "a, i = F.max_pool1d(x(1, 2, 6), 2, return_indices=True); F.max_unpool1d(a, i, 2), F.max_unpool1d(a, i, "
        "2, output_size=[7]), "
        "F.max_unpool1d(a, i, 2, output_size=[1, 2, 7])",
        "F.max_unpool1d(x(1, 1, 2), torch.tensor([[[0, 4]]]), 2)",
        "F.max_unpool1d(x(1, 1, 2), torch.tensor([[[-3, 1]]]), 2)",
        "!F.max_unpool1d(x(1, 1, 2), torch.tensor([[[0]]]), 2)",
        "F.max_unpool1d(x(1, 1, 2), torch.tensor([[[0, 1]]]), 2, output_size=[9])",
        "u = x(1, 2, 2).abs() / 2; F.fractional_max_pool2d(x(2, 5, 6), 2, (1, 3), _random_samples=u), "
        "F.fractional_max_pool2d(x(2, 5, 6), 2, output_ratio=(0.5, 0.7), return_indices=True, _random_samples=u), "
        "F.fractional_max_pool2d(x(1, 2, 5, 6), 2, 3, _random_samples=u)",
        "u = x(1, 2, 3).abs() / 2; F.fractional_max_pool3d(x(2, 4, 5, 6), 2, 2, _random_samples=u), "
        "F.fractional_max_pool3d(x(2, 4, 5, 6), 2, output_ratio=0.6, return_indices=True, _random_samples=u)",
        "F.fractional_max_pool2d(x(2, 5, 6), 2)",
        "!F.fractional_max_pool2d(x(2, 5, 6), 3, 4)",
        "seeded(lambda: F.fractional_max_pool2d(x(1, 2, 7, 7), 2, 3))",
        "m = torch.nn.MultiheadAttention(4, 2).double(); F.multi_head_attention_forward(x(2, 1, 4), x(3, 1, 4), "
        "x(3, 1, 4), 4, 2, "
        "m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0, m.out_proj.weight, None, static_k=x(2, 5, 2), "
        "static_v=x(2, 5, 2, seed=1))",
    ]
    + [
        "m = torch.nn.MultiheadAttention(4, 2).double(); F.multi_head_attention_forward(x(2, 1, 4), x(3, 1, 4), "
        "x(3, 1, 4), 4, 2, "
        f"m.in_proj_weight, m.in_proj_bias, {bias}, False, 0.0, m.out_proj.weight, None, {static})"
        for bias, static in (
            ("None, None", "static_k=x(3, 5, 2)"),
            ("None, None", "static_k=x(2, 5, 3)"),
            ("None, None", "static_v=x(3, 5, 2)"),
            ("None, None", "static_v=x(2, 5, 3)"),
            ("x(1, 1, 4), x(1, 1, 4)", "static_k=x(2, 5, 2)"),
            ("x(1, 1, 4), x(1, 1, 4)", "static_v=x(2, 5, 2)"),
        )
    ]
    + [
        f"{mark}m = torch.nn.MultiheadAttention(4, 2).double(); F.multi_head_attention_forward({given}, "
        f"m.in_proj_weight, m.in_proj_bias, "
        f"None, None, False, 0.0, m.out_proj.weight, None, {more})"
        for mark, given, more in (
            ("", "x(2, 1, 6), x(3, 1, 4), x(3, 1, 4), 4, 2", ""),
            ("", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 3", ""),
            ("", "x(2, 1, 4), x(3, 1, 4), x(2, 1, 4), 4, 2", ""),
            ("", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 2", "use_separate_proj_weight=True"),
            ("", "x(2, 1, 4), x(3, 1, 4), x(2, 1, 4), 4, 2", "use_separate_proj_weight=True"),
            ("", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 2", "is_causal=True"),
            ("", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 2", "attn_mask=x(2, 2)"),
            ("", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 2", "attn_mask=x(1, 2, 3)"),
            ("!", "x(2, 1, 4), x(3, 1, 4), x(3, 1, 4), 4, 2", "key_padding_mask=x(2, 3) > 0"),
        )
    ]
)

_GROUPED = [
    "o = torch.tensor([8, 16], dtype=torch.int32); F.grouped_mm(x(3, 16, dtype=bf), x(16, 8, dtype=bf), offs=o)",
    "o = torch.tensor([1, 3], dtype=torch.int32); F.grouped_mm(x(3, 16, dtype=bf), x(2, 16, 8, dtype=bf), offs=o)",
    "o = torch.tensor([8, 16], dtype=torch.int32); F.grouped_mm(x(2, 3, 16, dtype=bf), x(16, 16, dtype=bf), offs=o)",
    "F.grouped_mm(x(2, 3, 16, dtype=bf), x(2, 16, 8, dtype=bf))",
    "!F.grouped_mm(x(3, 16, dtype=bf), x(2, 16, 8, dtype=bf))",
    "!F.grouped_mm(x(2, 3, 16, dtype=bf), x(2, 16, 8, dtype=bf), offs=torch.tensor([1], dtype=torch.int32))",
    "!F.grouped_mm(x(2, 3, 16, dtype=bf), x(2, 8, 8, dtype=bf))",
    "!F.grouped_mm(x(16, dtype=bf), x(2, 16, 8, dtype=bf))",
    "o = torch.tensor([1, 3], dtype=torch.int32); torch._grouped_mm(x(3, 16, dtype=bf), x(2, 16, 8, dtype=bf), o)",
    "o = torch.tensor([0, 3], dtype=torch.int32); "
    "torch._grouped_mm(input=x(3, 16).float(), mat2=x(2, 8, 16).float().mT, offs=o)",
    "o = torch.tensor([1, 1, 4], dtype=torch.int32); a, b = (x(*s).float().requires_grad_() for s in ((4, 16), (3, 16, 8))); "
    "torch._grouped_mm(a, b, offs=o).square().sum().backward(); a.grad, b.grad",
    "torch._grouped_mm(x(3, 16, dtype=bf), x(2, 16, 8, dtype=bf), offs=torch.tensor([1, 3]))",
    "torch._grouped_mm(x(2, 3, 16, dtype=bf), x(2, 16, 8, dtype=bf), out_dtype=torch.float32)",
    "torch._grouped_mm(x(2, 3, 16, dtype=bf), x(2, 16, 8, dtype=bf), bias=x(8, dtype=bf))",
]

CASES = _NN + _GROUPED
