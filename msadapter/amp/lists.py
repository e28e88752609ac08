"""The autocast policy of each operator: PyTorch's lists for accelerators and CPUs."""

DEVICE_TYPES = ("cpu", "cuda", "npu", "privateuseone", "xpu", "mtia", "maia", "hpu", "ipu", "mps", "xla")

_CONVOLUTIONS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution"
_PRODUCTS = "matmul mm bmm addmm addbmm baddbmm linear scaled_dot_product_attention einsum"
_LOSSES = """cosine_embedding_loss cross_entropy hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
    margin_ranking_loss mse_loss multilabel_margin_loss multi_margin_loss nll_loss poisson_nll_loss
    soft_margin_loss
    triplet_margin_loss binary_cross_entropy_with_logits"""


def _table(**groups) -> dict:
    return {name: policy for policy, names in groups.items() for name in names.split()}


ACCELERATOR = _table(
    lower=f"{_CONVOLUTIONS} {_PRODUCTS} __matmul__ addmv addr chain_matmul multi_dot mv prelu gru_cell "
    "lstm_cell "
    "rnn_tanh_cell rnn_relu_cell",
    fp32=f"""{_LOSSES} __pow__ __rpow__ __rdiv__ __rtruediv__ acos asin cosh cdist cosine_similarity cumprod
    cumsum
        dist erfinv exp expm1 group_norm layer_norm log log10 log1p log2 log_softmax logsumexp norm normalize
        pdist pow
        prod reciprocal renorm rsqrt sinh softmax softmin softplus sum tan""",
    promote="addcdiv addcmul atan2 bilinear cat cross dot grid_sample index_put scatter_add stack tensordot "
    "vdot",
    banned="binary_cross_entropy",
)
CPU = _table(
    lower=f"{_CONVOLUTIONS} {_PRODUCTS} __matmul__ vecdot",
    fp32=f"""{_LOSSES} avg_pool3d binary_cross_entropy grid_sample polar prod quantile nanquantile stft cdist
    trace
        view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve ormqr pinverse ctc_loss""",
    promote="cat stack index_copy",
)
KNOWN = frozenset(ACCELERATOR) | frozenset(CPU)
BANNED = {
    "binary_cross_entropy": "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models "
    "use a "
    "sigmoid layer right before the binary cross entropy layer. In this case, combine the two layers "
    "using "
    "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which are safe "
    "to "
    "autocast.",
}
