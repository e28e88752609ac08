"""The arguments with which `python -m benchmarks operators` calls each operator of the table.

An operator that has no line here gets a matrix of random numbers for each of its tensors, if its schema asks for nothing
else. A line is Python, in which ``benchmarks/works/operators.py`` gives these names their meaning:

    n, s, c, v, m, k    the number of elements; the side of a matrix of n elements, of one for operators of cubic cost,
                        of a cube of n elements, and of an image of n elements in 4 x 16 planes; the length n / 64
    r(...), p(...)      random numbers of this shape: normal ones, and ones between 0.1 and 0.9
    i(high, ...)        random integers from 0 to below ``high``; b(...) random bools; d(k) a positive definite matrix
    w(...)              normal numbers divided by the root of the last size, as weights have them
"""

from __future__ import annotations

import ast
import fnmatch

#: Why operators are not timed -> their names. A name with a star stands for all names that begin or end so; an operator
#: with a line below is timed nevertheless. Names that begin with an underscore or end in one are parts and in-place forms.
LEFT_OUT = {
    "It answers a question about a tensor, or gives a view of it, and computes no numbers": """
        is_* get_device detach alias_copy as_strided adjoint conj real imag resolve_* view view_as view_as_real
        view_as_complex t transpose permute narrow expand expand_as select unsqueeze squeeze split split_with_sizes chunk
        unsafe_split unsafe_split_with_sizes unsafe_chunk
        unbind diagonal linalg.diagonal hsplit vsplit dsplit tensor_split movedim reshape reshape_as flatten unflatten
        ravel contiguous positive broadcast_to scalar_tensor empty empty_strided empty_permuted empty_like sum_to_size""",
    "It copies what a view shows, as clone does, which is timed": "*_copy copy as_strided_scatter slice_inverse",
    "It is an older or a second name of an operator that is timed, with the same kernel": """
        nn.functional.upsample* nn.functional.native_channel_shuffle alpha_dropout feature_* dropout native_* embedding
        instance_norm batch_norm layer_norm group_norm convolution max_pool* adaptive_max_pool1d
        nn.functional.*_with_indices binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss kl_div
        margin_ranking_loss triplet_margin_loss poisson_nll_loss ctc_loss embedding_bag grid_sampler affine_grid_generator
        pinverse constant_pad_nd threshold rrelu svd qr cholesky lu lu_solve nuclear_norm frobenius_norm relu
        linalg.inv_ex linalg.cholesky_ex linalg.solve_ex linalg.lu_factor_ex linalg.ldl_factor_ex""",
    "Its operands are of float8 alone": "_scaled_mm _scaled_mm_v2 nn.functional.scaled_mm nn.functional.scaled_grouped_mm",
    "PyTorch has it as torch.ops.aten.zero alone, and zeros_like has the same kernel": "zero",
    "Its operands are sparse tensors": "spmm",
    "PyTorch has it as a function of Python, made of operators that are timed": """
        lobpcg nn.functional.multi_head_attention_forward unravel_index""",
}

ARGUMENTS = """
fake_quantize_per_tensor_affine | r(s, s), 0.05, 3, -128, 127
fake_quantize_per_channel_affine | r(s, s), p(s) * 0.1, i(5, s).int(), 0, -128, 127
acosh | p(s, s) + 1
log | p(s, s)
log2 | p(s, s)
log10 | p(s, s)
log1p | p(s, s)
sqrt | p(s, s)
rsqrt | p(s, s)
asin | p(s, s)
acos | p(s, s)
atanh | p(s, s)
logit | p(s, s)
erfinv | p(s, s)
lgamma | p(s, s) + 1
digamma | p(s, s) + 1
mvlgamma | p(s, s) + 3, 2
polygamma | 1, p(s, s) + 1
igamma | p(s, s) * 3, p(s, s) * 3
igammac | p(s, s) * 3, p(s, s) * 3
special.ndtri | p(s, s)
special.zeta | p(s, s) + 2, p(s, s) + 1
special.entr | p(s, s)
special.xlog1py | r(s, s), p(s, s)
xlogy | r(s, s), p(s, s)
pow | p(s, s), r(s, s)
float_power | p(s, s), r(s, s)
div | r(s, s), p(s, s)
true_divide | r(s, s), p(s, s)
floor_divide | r(s, s), p(s, s)
remainder | r(s, s), p(s, s)
fmod | r(s, s), p(s, s)
ldexp | r(s, s), i(5, s, s)
lerp | r(s, s), r(s, s), 0.3
heaviside | r(s, s), r(s, s)
where | b(s, s), r(s, s), r(s, s)
clamp | r(s, s), -0.5, 0.5
gcd | i(1000, s, s), i(1000, s, s)
lcm | i(1000, s, s), i(1000, s, s)
bitwise_and | i(1000, s, s), i(1000, s, s)
bitwise_or | i(1000, s, s), i(1000, s, s)
bitwise_xor | i(1000, s, s), i(1000, s, s)
bitwise_not | i(1000, s, s)
bitwise_left_shift | i(1000, s, s), i(5, s, s)
bitwise_right_shift | i(1000, s, s), i(5, s, s)
complex | r(s, s), r(s, s)
polar | p(s, s), r(s, s)
addcdiv | r(s, s), r(s, s), p(s, s)
bucketize | r(s, s), r(100).detach().sort().values
searchsorted | r(s, s).detach().sort().values, r(s, s)
special.chebyshev_polynomial_t | r(s, s), 5
special.chebyshev_polynomial_u | r(s, s), 5
special.chebyshev_polynomial_v | p(s, s), 5
special.chebyshev_polynomial_w | p(s, s), 5
special.shifted_chebyshev_polynomial_t | r(s, s), 5
special.shifted_chebyshev_polynomial_u | r(s, s), 5
special.shifted_chebyshev_polynomial_v | p(s, s), 5
special.shifted_chebyshev_polynomial_w | p(s, s), 5
special.hermite_polynomial_h | r(s, s), 5
special.hermite_polynomial_he | r(s, s), 5
special.laguerre_polynomial_l | r(s, s), 5
special.legendre_polynomial_p | r(s, s), 5
special.modified_bessel_k0 | p(s, s)
special.modified_bessel_k1 | p(s, s)
special.scaled_modified_bessel_k0 | p(s, s)
special.scaled_modified_bessel_k1 | p(s, s)
special.bessel_y0 | p(s, s)
special.bessel_y1 | p(s, s)
sum | r(s, s), 1
mean | r(s, s), 1
prod | r(s, s), 1
nansum | r(s, s), 1
nanmean | r(s, s), 1
amax | r(s, s), 1
amin | r(s, s), 1
argmax | r(s, s), 1
argmin | r(s, s), 1
max | r(s, s), 1
min | r(s, s), 1
all | b(s, s), 1
any | b(s, s), 1
std | r(s, s), 1
var | r(s, s), 1
std_mean | r(s, s), 1
var_mean | r(s, s), 1
median | r(s, s), 1
nanmedian | r(s, s), 1
mode | i(100, s, s), 1
quantile | r(s, s), 0.3, 1
nanquantile | r(s, s), 0.3, 1
logsumexp | r(s, s), 1
count_nonzero | i(3, s, s), 1
aminmax | r(s, s), dim=1
norm | r(s, s), 2, 1
linalg.norm | r(s, s), 2, 1
linalg.vector_norm | r(s, s), 2, 1
linalg.matrix_norm | r(s, s)
dist | r(s, s), r(s, s)
norm_except_dim | r(s, s), 2, 0
rsub | r(s, s), r(s, s)
renorm | r(s, s), 2, 0, 1.0
cumsum | r(s, s), 1
cumprod | r(s, s), 1
cummax | r(s, s), 1
cummin | r(s, s), 1
logcumsumexp | r(s, s), 1
cov | r(c, n // c)
corrcoef | r(c, n // c)
sort | r(s, s)
argsort | r(s, s)
msort | r(s, s)
topk | r(s, s), 10
kthvalue | r(s, s), s // 2
isin | i(1000, n), i(1000, 64)
equal | torch.ones(s, s), torch.ones(s, s)
allclose | torch.ones(s, s), torch.ones(s, s)
hash_tensor | r(s, s)
unique | i(1000, n)
unique_consecutive | i(3, n)
bincount | i(1000, n)
histc | r(n), 100, -3, 3
histogram | r(n), 100, range=(-3.0, 3.0)
histogramdd | r(n // 2, 2), [16, 16]
segment_reduce | r(s // 4 * 4, s), "sum", lengths=torch.full((s // 4,), 4)
multinomial | p(s, s), 10, True
cat | [r(s, s), r(s, s)], 1
stack | [r(s, s), r(s, s)], 1
hstack | [r(s, s), r(s, s)]
vstack | [r(s, s), r(s, s)]
dstack | [r(s, s), r(s, s)]
column_stack | [r(s, s), r(s, s)]
repeat | r(s, s), (2, 2)
tile | r(s, s), (2, 2)
repeat_interleave | r(s, s), 2, 1
roll | r(s, s), 5, 1
flip | r(s, s), (0, 1)
rot90 | r(s, s)
tril | r(s, s)
triu | r(s, s)
diag | r(s)
diag_embed | r(s)
diagflat | r(s)
diagonal_scatter | r(s, s), r(s)
select_scatter | r(s, s), r(s), 0, 3
slice_scatter | r(s, s), r(s // 2, s), 0, 0, s // 2
diff | r(s, s)
gather | r(s, s), 1, i(s, s, s)
take_along_dim | r(s, s), i(s, s, s), 1
take | r(s, s), i(n, s, s)
put | r(s, s), i(n, s), r(s)
scatter | r(s, s), 1, i(s, s, s), r(s, s)
scatter_add | r(s, s), 1, i(s, s, s), r(s, s)
scatter_reduce | r(s, s), 1, i(s, s, s), r(s, s), "amax"
index_select | r(s, s), 0, i(s, s)
index_add | r(s, s), 0, i(s, s), r(s, s)
index_copy | r(s, s), 0, i(s, s), r(s, s)
index_fill | r(s, s), 0, i(s, s // 2), 1.5
index_put | r(s, s), (i(s, s),), r(s, s)
index_reduce | r(s, s), 0, i(s, s), r(s, s), "amax"
masked_fill | r(s, s), b(s, s), 0.5
masked_select | r(s, s), b(s, s)
masked_scatter | r(s, s), b(s, s), r(s, s)
nonzero | b(s, s)
argwhere | b(s, s)
nonzero_static | b(s, s), size=s
arange | n
linspace | 0, 1, n
logspace | 0, 1, n
full | (s, s), 1.5
full_like | r(s, s), 1.5
zeros | (s, s)
ones | (s, s)
rand | (s, s)
randn | (s, s)
randint | 0, 100, (s, s)
randint_like | r(s, s), 100
randperm | n
eye | s
bernoulli | p(s, s)
normal | r(s, s).detach(), p(s, s).detach()
fill | r(s, s), 1.5
poisson | p(s, s)
binomial | torch.full((s, s), 20.0), p(s, s).detach()
range | 0, n
tril_indices | s, s
triu_indices | s, s
hann_window | n
hamming_window | n
blackman_window | n
bartlett_window | n
kaiser_window | n
matmul | r(c, c), r(c, c)
mm | r(c, c), r(c, c)
bmm | r(16, c // 2, c // 2), r(16, c // 2, c // 2)
addmm | r(c, c), r(c, c), r(c, c)
addbmm | r(c // 2, c // 2), r(16, c // 2, c // 2), r(16, c // 2, c // 2)
baddbmm | r(16, c // 2, c // 2), r(16, c // 2, c // 2), r(16, c // 2, c // 2)
mv | r(s, s), r(s)
addmv | r(s), r(s, s), r(s)
addr | r(s, s), r(s), r(s)
outer | r(s), r(s)
dot | r(n), r(n)
vdot | r(n), r(n)
inner | r(c, c), r(c, c)
tensordot | r(c, c), r(c, c), 1
kron | r(32, 32), r(s // 32, s // 32)
linalg.multi_dot | [r(c, c), r(c, c), r(c, c)]
linalg.cross | r(n // 3, 3), r(n // 3, 3)
cross | r(n // 3, 3), r(n // 3, 3), 1
linalg.vecdot | r(s, s), r(s, s)
linalg.vander | p(s), N=s
vander | p(s), s
combinations | r(s), 2
trapezoid | r(s, s)
cumulative_trapezoid | r(s, s)
gradient | r(s, s)
linalg.cholesky | d(c)
linalg.inv | d(c)
linalg.det | d(c)
linalg.slogdet | d(c)
logdet | d(c)
linalg.eig | d(c)
linalg.eigvals | d(c)
linalg.eigh | d(c)
linalg.eigvalsh | d(c)
linalg.svd | r(c, c), False
linalg.svdvals | r(c, c)
linalg.qr | r(c, c)
linalg.lu | d(c)
linalg.lu_factor | d(c)
linalg.lu_solve | *torch.linalg.lu_factor(d(c).detach()), r(c, c)
linalg.solve | d(c), r(c, c)
linalg.ldl_factor | d(c).detach()
linalg.ldl_solve | *torch.linalg.ldl_factor(d(c).detach()), r(c, c)
linalg.householder_product | *torch.geqrf(r(c, c).detach())
linalg.tensorinv | d(c), ind=1
linalg.tensorsolve | d(c), r(c)
geqrf | r(c, c).detach()
ormqr | *torch.geqrf(r(c, c).detach()), r(c, c)
lu_unpack | *torch.linalg.lu_factor(d(c).detach())
triangular_solve | r(c, c), d(c).detach().tril(), False
linalg.solve_triangular | d(c).detach().tril(), r(c, c), upper=False
linalg.lstsq | r(c, c // 2), r(c, 8)
linalg.pinv | r(c, c // 2)
linalg.matrix_exp | w(c, c)
linalg.matrix_power | w(c, c), 5
linalg.matrix_rank | r(c, c)
linalg.cond | d(c)
cholesky_inverse | d(c)
cholesky_solve | r(c, c), d(c)
svd_lowrank | r(c, c)
pca_lowrank | r(c, c)
cdist | r(s, 16), r(s, 16)
pdist | r(s, 16)
fft.fft | r(s, s)
fft.ifft | r(s, s)
fft.irfft | x(s, s // 2 + 1)
fft.irfft2 | x(s, s // 2 + 1)
fft.irfftn | x(s, s // 2 + 1)
fft.hfft | x(s, s // 2 + 1)
fft.hfft2 | x(s, s // 2 + 1)
fft.hfftn | x(s, s // 2 + 1)
fft.fftfreq | n
fft.rfftfreq | n
stft | r(16, n // 16), 128, window=torch.hann_window(128), return_complex=True
istft | x(16, 65, k // 32 + 4), 128, window=torch.hann_window(128)
softmax | r(s, s), 1
log_softmax | r(s, s), 1
_safe_softmax | r(s, s), 1
nn.functional.softmax | r(s, s), 1
nn.functional.log_softmax | r(s, s), 1
nn.functional.softmin | r(s, s), 1
nn.functional.gumbel_softmax | r(s, s)
nn.functional.normalize | r(s, s)
nn.functional.layer_norm | r(s, s), (s,), r(s), r(s)
nn.functional.rms_norm | r(s, s), (s,), r(s)
nn.functional.group_norm | r(4, 16, m, m), 4, r(16), r(16)
nn.functional.instance_norm | r(4, 16, m, m)
nn.functional.batch_norm | r(4, 16, m, m), None, None, r(16), r(16), True
nn.functional.local_response_norm | r(4, 16, m, m), 3
nn.functional.threshold | r(s, s), 0.1, 0.5
nn.functional.glu | r(s, s)
nn.functional.prelu | r(4, 16, m, m), p(16)
nn.functional.dropout | r(s, s)
nn.functional.linear | r(c, c), w(c, c), r(c)
nn.functional.bilinear | r(k // 64, 32), r(k // 64, 32), w(32, 32, 32)
nn.functional.conv1d | r(8, 16, n // 128), w(16, 16, 5), r(16), padding=2
nn.functional.conv2d | r(4, 16, m, m), w(16, 16, 3, 3), r(16), padding=1
nn.functional.conv2d strided | r(4, 16, m, m), w(32, 16, 3, 3), r(32), stride=2
nn.functional.conv2d depthwise | r(4, 16, m, m), w(16, 1, 3, 3), r(16), padding=1, groups=16
nn.functional.conv2d pointwise | r(4, 16, m, m), w(64, 16, 1, 1)
nn.functional.conv2d dilated | r(4, 16, m, m), w(16, 16, 3, 3), padding=2, dilation=2
nn.functional.conv3d | r(2, 8, v // 2, v // 2, v // 2), w(8, 8, 3, 3, 3), padding=1
nn.functional.conv_tbc | r(n // 128, 8, 16), w(5, 16, 16), r(16), 2
nn.functional.conv_transpose1d | r(8, 16, n // 128), w(16, 16, 5)
nn.functional.conv_transpose2d | r(4, 16, m, m), w(16, 16, 3, 3), stride=2
nn.functional.conv_transpose3d | r(2, 8, v // 2, v // 2, v // 2), w(8, 8, 3, 3, 3)
nn.functional.avg_pool1d | r(4, 16, m * m), 3
nn.functional.avg_pool2d | r(4, 16, m, m), 3
nn.functional.avg_pool3d | r(1, 1, v, v, v), 3
nn.functional.max_pool1d | r(4, 16, m * m), 3
nn.functional.max_pool2d | r(4, 16, m, m), 3
nn.functional.max_pool3d | r(1, 1, v, v, v), 3
nn.functional.fractional_max_pool2d | r(4, 16, m, m), 2, output_size=(m // 2, m // 2)
nn.functional.fractional_max_pool3d | r(1, 1, v, v, v), 2, output_size=(v // 2, v // 2, v // 2)
nn.functional.lp_pool1d | r(4, 16, m * m), 2, 3
nn.functional.lp_pool2d | r(4, 16, m, m), 2, 3
nn.functional.lp_pool3d | r(1, 1, v, v, v), 2, 3
nn.functional.adaptive_avg_pool1d | r(4, 16, m * m), 7
nn.functional.adaptive_avg_pool2d | r(4, 16, m, m), 7
nn.functional.adaptive_avg_pool3d | r(1, 1, v, v, v), 7
nn.functional.adaptive_max_pool1d | r(4, 16, m * m), 7
nn.functional.adaptive_max_pool2d | r(4, 16, m, m), 7
nn.functional.adaptive_max_pool3d | r(1, 1, v, v, v), 7
nn.functional.max_unpool2d | *torch.nn.functional.max_pool2d(r(4, 16, m, m).detach(), 2, return_indices=True), 2
nn.functional.max_unpool1d | *torch.nn.functional.max_pool1d(r(4, 16, m * m).detach(), 2, return_indices=True), 2
nn.functional.max_unpool3d | *torch.nn.functional.max_pool3d(r(1, 1, v, v, v).detach(), 2, return_indices=True), 2
nn.functional.interpolate | r(4, 16, m, m), scale_factor=1.5
nn.functional.interpolate bilinear | r(4, 16, m, m), scale_factor=1.5, mode="bilinear"
nn.functional.interpolate bicubic | r(4, 16, m, m), scale_factor=1.5, mode="bicubic"
nn.functional.interpolate area | r(4, 16, m, m), scale_factor=0.5, mode="area"
nn.functional.interpolate antialias | r(4, 16, m, m), scale_factor=0.5, mode="bilinear", antialias=True
nn.functional.grid_sample | r(4, 16, m, m), p(4, m, m, 2), align_corners=False
nn.functional.affine_grid | r(4, 2, 3), (4, 16, m, m), align_corners=False
nn.functional.pad | r(4, 16, m, m), (1, 1, 1, 1)
nn.functional.pad reflect | r(4, 16, m, m), (1, 1, 1, 1), "reflect"
nn.functional.fold | r(4, 16 * 9, (m // 3) ** 2), (m // 3 * 3, m // 3 * 3), 3, stride=3
nn.functional.unfold | r(4, 16, m, m), 3
nn.functional.channel_shuffle | r(4, 16, m, m), 4
nn.functional.pixel_shuffle | r(4, 16, m, m), 4
nn.functional.pixel_unshuffle | r(4, 16, m // 4 * 4, m // 4 * 4), 4
nn.functional.embedding | i(s, n // 64), r(s, 64)
nn.functional.embedding_bag | i(s, n // 64), r(s, 64), torch.arange(0, n // 64, 8)
nn.functional.one_hot | i(64, k), 64
nn.functional.cosine_similarity | r(s, s), r(s, s)
nn.functional.pairwise_distance | r(s, s), r(s, s)
nn.functional.scaled_dot_product_attention | r(4, 8, k // 64, 32), r(4, 8, k // 64, 32), r(4, 8, k // 64, 32)
nn.functional.binary_cross_entropy | p(s, s), p(s, s).detach()
nn.functional.binary_cross_entropy_with_logits | r(s, s), p(s, s).detach()
nn.functional.cross_entropy | r(s, s), i(s, s)
nn.functional.grouped_mm | r(4, c // 2, c // 2), r(4, c // 2, c // 2)
nn.functional.linear_cross_entropy | r(s, 64), w(256, 64), i(256, s)
nn.functional.nll_loss | r(s, s), i(s, s)
nn.functional.multi_margin_loss | r(s, s), i(s, s)
nn.functional.multilabel_margin_loss | r(s, s), i(s, s, s)
nn.functional.multilabel_soft_margin_loss | r(s, s), p(s, s).detach()
nn.functional.soft_margin_loss | r(s, s), r(s, s).detach().sign()
nn.functional.hinge_embedding_loss | r(s, s), r(s, s).detach().sign()
nn.functional.margin_ranking_loss | r(s, s), r(s, s), r(s, s).detach().sign()
nn.functional.cosine_embedding_loss | r(s, s), r(s, s), r(s).detach().sign()
nn.functional.triplet_margin_loss | r(s, s), r(s, s), r(s, s)
nn.functional.triplet_margin_with_distance_loss | r(s, s), r(s, s), r(s, s)
nn.functional.gaussian_nll_loss | r(s, s), r(s, s), p(s, s)
nn.functional.mse_loss | r(s, s), r(s, s)
nn.functional.l1_loss | r(s, s), r(s, s)
nn.functional.smooth_l1_loss | r(s, s), r(s, s)
nn.functional.huber_loss | r(s, s), r(s, s)
nn.functional.kl_div | r(s, s), p(s, s)
nn.functional.poisson_nll_loss | r(s, s), p(s, s)
nn.functional.ctc_loss | r(100, 16, n // 1600), i(n // 1600 - 1, 16, 20) + 1, (100,) * 16, (20,) * 16
lstm_cell | r(k // 64, 256), [r(k // 64, 256), r(k // 64, 256)], w(1024, 256), w(1024, 256), r(1024), r(1024)
gru_cell | r(k // 64, 256), r(k // 64, 256), w(768, 256), w(768, 256), r(768), r(768)
rnn_tanh_cell | r(k // 64, 256), r(k // 64, 256), w(256, 256), w(256, 256), r(256), r(256)
rnn_relu_cell | r(k // 64, 256), r(k // 64, 256), w(256, 256), w(256, 256), r(256), r(256)
rnn_tanh | r(k // 256 + 1, 16, 64), h(1, 16, 64)[0], g(1, 64), True, 1, 0.0, False, False, False
rnn_relu | r(k // 256 + 1, 16, 64), h(1, 16, 64)[0], g(1, 64), True, 1, 0.0, False, False, False
lstm | r(k // 256 + 1, 16, 64), h(2, 16, 64), g(4, 64), True, 1, 0.0, False, False, False
gru | r(k // 256 + 1, 16, 64), h(1, 16, 64)[0], g(3, 64), True, 1, 0.0, False, False, False
"""


SIZES = frozenset("nscvmk")


def follows_size(arguments: str) -> bool:
    """Whether a line of arguments asks for more numbers where the number of elements is larger."""
    return any(
        isinstance(part, ast.Name) and part.id in SIZES for part in ast.walk(ast.parse(f"_({arguments})"))
    )


#: The reason for names with an underscore at an end, and for those of torch.Tensor, torch.ops.aten and torch.signal.
FORM = "It is a part of an operator, or another form of one"


def reason_left_out(name: str) -> str | None:
    """Why an operator without a line is not timed, or None."""
    if name.startswith(("_", "Tensor.", "aten.", "signal.")) or name.endswith("_"):
        return FORM
    for reason, names in LEFT_OUT.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names.split()):
            return reason
    return None


def table(text: str = ARGUMENTS) -> dict[str, str]:
    """Name of a call -> its arguments. A name may end in a word that tells calls of one operator apart."""
    found: dict[str, str] = {}
    for line in filter(None, text.splitlines()):
        name, _, arguments = line.partition(" | ")
        problem = (
            f"repeats the name {name!r}"
            if name in found
            else ""
            if arguments
            else "does not have the form 'name | arguments'"
        )
        if problem:
            raise ValueError(f"benchmarks/operator_arguments.py: the line {line!r} {problem}")
        found[name] = arguments
    return found
