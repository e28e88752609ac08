"""The cases of the nn tests: data that works with any ``torch``, ours or the real one.

``CASES`` maps a name to (build, inputs): ``build(torch.nn)`` gives a module or a function, ``inputs(make)``
its arguments. ``make`` draws inputs from numpy, so that they do not depend on the generator under test.
"""

import warnings

import numpy as np

from tests.golden.answers import record


class Make:
    """Draws inputs as tensors of the given ``torch``."""

    def __init__(self, torch, seed=7):
        self.torch = torch
        self.rng = np.random.RandomState(seed)

    def normal(self, *shape, grad=True):
        t = self.torch.tensor(self.rng.randn(*shape).astype("float32"))
        return t.requires_grad_() if grad else t

    def uniform(self, *shape, grad=True, low=0.05, high=0.95):
        t = self.torch.tensor(self.rng.uniform(low, high, shape).astype("float32"))
        return t.requires_grad_() if grad else t

    def ints(self, high, *shape, low=0):
        return self.torch.tensor(self.rng.randint(low, high, shape).astype("int64"))

    def signs(self, *shape):
        return self.torch.tensor((self.rng.randint(0, 2, shape) * 2 - 1).astype("float32"))

    def tensor(self, values, dtype=None):
        return self.torch.tensor(values, dtype=None if dtype is None else getattr(self.torch, dtype))

    def packed(self, lengths, width):
        rows = self.normal(max(lengths), len(lengths), width)
        return self.torch.nn.utils.rnn.pack_padded_sequence(rows, lengths, enforce_sorted=False)


CASES = {}


def case(name, build, inputs):
    assert name not in CASES, name
    CASES[name] = (build, inputs)


def on(*shape):
    return lambda make: (make.normal(*shape),)


# ---- activations
for _name, _args in {
    "ReLU": (),
    "ReLU6": (),
    "SELU": (),
    "SiLU": (),
    "Mish": (),
    "Hardsigmoid": (),
    "Hardswish": (),
    "Sigmoid": (),
    "Tanh": (),
    "LogSigmoid": (),
    "Softsign": (),
    "Tanhshrink": (),
    "Threshold": (0.1, 20.0),
    "Hardtanh": (-0.5, 1.5),
    "ELU": (0.7,),
    "CELU": (1.3,),
    "LeakyReLU": (0.2,),
    "GLU": (1,),
    "GELU": (),
    "Hardshrink": (0.4,),
    "Softshrink": (0.3,),
    "Softplus": (2.0, 1.0),
    "PReLU": (6,),
    "Softmin": (1,),
    "Softmax": (1,),
    "LogSoftmax": (-1,),
    "RReLU": (0.1, 0.4),
}.items():
    case(_name, lambda nn, n=_name, a=_args: getattr(nn, n)(*a), on(3, 6))
case("GELU-tanh", lambda nn: nn.GELU("tanh"), on(3, 6))
case("PReLU-one", lambda nn: nn.PReLU(), on(5))
case("Softmax2d", lambda nn: nn.Softmax2d(), on(2, 3, 2, 2))

# ---- linear, embeddings
case("Identity", lambda nn: nn.Identity(1, 2, x=3), on(2, 3))
case("Linear", lambda nn: nn.Linear(5, 4), on(3, 2, 5))
case("Linear-nobias", lambda nn: nn.Linear(5, 4, bias=False), on(5))
case("Bilinear", lambda nn: nn.Bilinear(3, 4, 2), lambda m: (m.normal(5, 3), m.normal(5, 4)))
case("LazyLinear", lambda nn: nn.LazyLinear(4), on(3, 5))
case("Embedding", lambda nn: nn.Embedding(7, 3, padding_idx=2), lambda m: (m.ints(7, 2, 4),))
case("Embedding-max_norm", lambda nn: nn.Embedding(7, 3, max_norm=1.0), lambda m: (m.ints(7, 2, 4),))
for _mode in ("sum", "mean", "max"):
    case(
        f"EmbeddingBag-{_mode}",
        lambda nn, mode=_mode: nn.EmbeddingBag(9, 3, mode=mode, padding_idx=1),
        lambda m: (m.ints(9, 6), m.tensor([0, 2, 2, 5])),
    )
case(
    "EmbeddingBag-rows",
    lambda nn: nn.EmbeddingBag(9, 3, mode="sum"),
    lambda m: (m.ints(9, 3, 4), None, m.normal(3, 4)),
)

# ---- normalisation
case("LayerNorm", lambda nn: nn.LayerNorm((3, 4)), on(2, 3, 4))
case("LayerNorm-nobias", lambda nn: nn.LayerNorm(4, bias=False), on(2, 3, 4))
case("LayerNorm-plain", lambda nn: nn.LayerNorm(4, elementwise_affine=False), on(2, 4))
case("RMSNorm", lambda nn: nn.RMSNorm(4), on(2, 3, 4))
case("GroupNorm", lambda nn: nn.GroupNorm(2, 4), on(2, 4, 3))
case("LocalResponseNorm", lambda nn: nn.LocalResponseNorm(3, 0.1, 0.6, 2.0), on(2, 5, 3))
# torch's gradient of CrossMapLRN2d is not the derivative of its output: only the output is compared
case("CrossMapLRN2d", lambda nn: nn.CrossMapLRN2d(3, 0.1), lambda m: (m.normal(2, 5, 2, 2, grad=False),))
case("BatchNorm1d", lambda nn: nn.BatchNorm1d(3), on(4, 3))
case("BatchNorm1d-seq", lambda nn: nn.BatchNorm1d(3, momentum=None), on(4, 3, 2))
case("BatchNorm2d", lambda nn: nn.BatchNorm2d(3), on(2, 3, 2, 2))
case("BatchNorm2d-eval", lambda nn: nn.BatchNorm2d(3).eval(), on(2, 3, 2, 2))
case(
    "BatchNorm2d-plain", lambda nn: nn.BatchNorm2d(3, affine=False, track_running_stats=False), on(2, 3, 2, 2)
)
case("BatchNorm3d", lambda nn: nn.BatchNorm3d(2), on(2, 2, 2, 2, 2))
case("LazyBatchNorm2d", lambda nn: nn.LazyBatchNorm2d(), on(2, 3, 2, 2))
case("InstanceNorm1d", lambda nn: nn.InstanceNorm1d(3), on(2, 3, 4))
case("InstanceNorm2d", lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), on(2, 3, 2, 2))
case("InstanceNorm2d-unbatched", lambda nn: nn.InstanceNorm2d(3), on(3, 2, 2))

# ---- dropout: the draws are the generator's
case("Dropout", lambda nn: nn.Dropout(0.3), on(4, 6))
case("Dropout-eval", lambda nn: nn.Dropout(0.3).eval(), on(2, 3))
case("Dropout1d", lambda nn: nn.Dropout1d(0.5), on(3, 4, 2))
case("Dropout2d", lambda nn: nn.Dropout2d(0.5), on(3, 4, 2, 2))
case("Dropout3d", lambda nn: nn.Dropout3d(0.5), on(3, 4, 1, 2, 2))
case("AlphaDropout", lambda nn: nn.AlphaDropout(0.3), on(4, 6))
case("FeatureAlphaDropout", lambda nn: nn.FeatureAlphaDropout(0.5), on(3, 4, 2))

# ---- convolution
case("Conv1d", lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=1, groups=2), on(2, 4, 7))
case("Conv1d-same", lambda nn: nn.Conv1d(2, 3, 4, padding="same", dilation=2), on(2, 2, 9))
case("Conv1d-circular", lambda nn: nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"), on(2, 2, 5))
case(
    "Conv2d",
    lambda nn: nn.Conv2d(3, 4, (3, 2), stride=(1, 2), padding=(2, 1), dilation=(2, 1)),
    on(2, 3, 6, 5),
)
case(
    "Conv2d-reflect",
    lambda nn: nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect", bias=False),
    on(1, 2, 4, 4),
)
case("Conv2d-unbatched", lambda nn: nn.Conv2d(2, 3, 2), on(2, 4, 4))
case("Conv3d", lambda nn: nn.Conv3d(2, 2, 2, padding=1), on(1, 2, 3, 3, 3))
case(
    "ConvTranspose1d",
    lambda nn: nn.ConvTranspose1d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2),
    on(2, 4, 5),
)
case(
    "ConvTranspose2d",
    lambda nn: nn.ConvTranspose2d(2, 3, 3, stride=2),
    lambda m: (m.normal(1, 2, 3, 3), [8, 7]),
)
case("ConvTranspose3d", lambda nn: nn.ConvTranspose3d(2, 2, 2), on(1, 2, 2, 2, 2))
case("LazyConv2d", lambda nn: nn.LazyConv2d(3, 2), on(1, 2, 4, 4))
case("Unfold", lambda nn: nn.Unfold((2, 3), padding=1), on(1, 2, 4, 4))
case("Fold", lambda nn: nn.Fold((4, 4), 2, stride=2), on(1, 8, 4))

# ---- pooling
case("MaxPool1d", lambda nn: nn.MaxPool1d(3, 2, padding=1), on(2, 2, 8))
case("MaxPool2d", lambda nn: nn.MaxPool2d(2, ceil_mode=True, return_indices=True), on(1, 2, 5, 5))
case("MaxPool3d", lambda nn: nn.MaxPool3d(2), on(1, 2, 4, 4, 4))
case("AvgPool1d", lambda nn: nn.AvgPool1d(3, 2, 1), on(2, 2, 8))
case("AvgPool2d", lambda nn: nn.AvgPool2d(3, 2, 1, count_include_pad=False), on(1, 2, 5, 5))
case("AvgPool3d", lambda nn: nn.AvgPool3d(2, divisor_override=3), on(1, 2, 4, 4, 4))
for _n, _shape in ((1, (7,)), (2, (7, 6)), (3, (4, 5, 6))):
    case(f"AdaptiveAvgPool{_n}d", lambda nn, n=_n: getattr(nn, f"AdaptiveAvgPool{n}d")(3), on(1, 2, *_shape))
    case(
        f"AdaptiveMaxPool{_n}d",
        lambda nn, n=_n: getattr(nn, f"AdaptiveMaxPool{n}d")(3, return_indices=True),
        on(1, 2, *_shape),
    )
    case(
        f"LPPool{_n}d",
        lambda nn, n=_n: getattr(nn, f"LPPool{n}d")(3, 2),
        lambda m, s=_shape: (m.uniform(1, 2, *s),),
    )
case(
    "FractionalMaxPool2d",
    lambda nn: nn.FractionalMaxPool2d(2, output_ratio=0.6, return_indices=True),
    on(2, 2, 7, 6),
)
case("FractionalMaxPool3d", lambda nn: nn.FractionalMaxPool3d(2, output_size=(2, 3, 3)), on(1, 2, 5, 6, 7))


class _Unpooled:
    """Max pooling followed by its inverse, as one function."""

    def __init__(self, nn, n):
        self.pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)
        self.back = getattr(nn, f"MaxUnpool{n}d")(2)

    def __call__(self, x):
        return self.back(*self.pool(x))


for _n in (1, 2, 3):
    case(f"MaxUnpool{_n}d", lambda nn, n=_n: _Unpooled(nn, n), on(1, 2, *([4] * _n)))

# ---- padding, shapes, images
for _n in (1, 2, 3):
    for _kind in ("Circular", "Reflection", "Replication", "Zero"):
        case(
            f"{_kind}Pad{_n}d", lambda nn, k=_kind, n=_n: getattr(nn, f"{k}Pad{n}d")(1), on(1, 2, *([3] * _n))
        )
    case(
        f"ConstantPad{_n}d",
        lambda nn, n=_n: getattr(nn, f"ConstantPad{n}d")(list(range(2 * n)), 1.5),
        on(1, 2, *([3] * _n)),
    )
case("Flatten", lambda nn: nn.Flatten(1, 2), on(2, 3, 4, 2))
case("Unflatten", lambda nn: nn.Unflatten(1, (2, 3)), on(2, 6, 2))
case("ChannelShuffle", lambda nn: nn.ChannelShuffle(2), on(1, 6, 2, 2))
case("PixelShuffle", lambda nn: nn.PixelShuffle(2), on(1, 8, 2, 3))
case("PixelUnshuffle", lambda nn: nn.PixelUnshuffle(2), on(1, 2, 4, 6))
case("Upsample-nearest", lambda nn: nn.Upsample(scale_factor=2), on(1, 2, 3))
case("Upsample-linear", lambda nn: nn.Upsample(size=7, mode="linear"), on(1, 2, 4))
case("Upsample-bilinear", lambda nn: nn.Upsample(scale_factor=(2.0, 1.5), mode="bilinear"), on(1, 2, 3, 4))
case(
    "Upsample-bicubic",
    lambda nn: nn.Upsample(size=(5, 6), mode="bicubic", align_corners=True),
    on(1, 1, 4, 4),
)
case("Upsample-area", lambda nn: nn.Upsample(size=(2, 3), mode="area"), on(1, 2, 4, 5))
case("Upsample-trilinear", lambda nn: nn.Upsample(scale_factor=1.5, mode="trilinear"), on(1, 1, 2, 3, 2))
case("UpsamplingNearest2d", lambda nn: nn.UpsamplingNearest2d(scale_factor=2), on(1, 1, 2, 3))
case("UpsamplingBilinear2d", lambda nn: nn.UpsamplingBilinear2d(size=(3, 5)), on(1, 1, 2, 3))
case(
    "affine_grid",
    lambda nn: lambda t: nn.functional.affine_grid(t, [2, 1, 3, 4], align_corners=False),
    on(2, 2, 3),
)
case(
    "affine_grid-3d",
    lambda nn: lambda t: nn.functional.affine_grid(t, [1, 1, 2, 3, 2], align_corners=True),
    on(1, 3, 4),
)
case(
    "grid_sample",
    lambda nn: lambda x, g: nn.functional.grid_sample(x, g, align_corners=False),
    lambda m: (m.normal(1, 2, 4, 4), m.uniform(1, 3, 3, 2, low=-1.1, high=1.1)),
)
case(
    "conv_tbc",
    lambda nn: nn.functional.conv_tbc,
    lambda m: (m.normal(5, 2, 3), m.normal(2, 3, 4), m.normal(4), 1),
)

# ---- distances and other functions
case(
    "PairwiseDistance",
    lambda nn: nn.PairwiseDistance(3.0, keepdim=True),
    lambda m: (m.normal(4, 3), m.normal(4, 3)),
)
case("CosineSimilarity", lambda nn: nn.CosineSimilarity(1), lambda m: (m.normal(4, 3), m.normal(4, 3)))
case("pdist", lambda nn: nn.functional.pdist, on(4, 3))
case("normalize", lambda nn: lambda x: nn.functional.normalize(x, dim=0), on(4, 3))
case("gumbel_softmax", lambda nn: lambda x: nn.functional.gumbel_softmax(x, 0.7), on(3, 5))
case("gumbel_softmax-hard", lambda nn: lambda x: nn.functional.gumbel_softmax(x, hard=True), on(3, 5))

# ---- losses
_regression = lambda m: (m.normal(3, 4), m.normal(3, 4, grad=False))  # noqa: E731
_signed = lambda m: (m.normal(3, 4), m.signs(3, 4))  # noqa: E731
_classes = lambda m: (m.normal(5, 4), m.ints(4, 5))  # noqa: E731
for _r in ("none", "mean", "sum"):
    for _name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
        case(f"{_name}-{_r}", lambda nn, n=_name, r=_r: getattr(nn, n)(reduction=r), _regression)
    case(f"HingeEmbeddingLoss-{_r}", lambda nn, r=_r: nn.HingeEmbeddingLoss(0.8, reduction=r), _signed)
    case(f"SoftMarginLoss-{_r}", lambda nn, r=_r: nn.SoftMarginLoss(reduction=r), _signed)
    case(f"CrossEntropyLoss-{_r}", lambda nn, r=_r: nn.CrossEntropyLoss(reduction=r), _classes)
    case(f"MultiMarginLoss-{_r}", lambda nn, r=_r: nn.MultiMarginLoss(p=2, reduction=r), _classes)
    case(
        f"MultiLabelMarginLoss-{_r}",
        lambda nn, r=_r: nn.MultiLabelMarginLoss(reduction=r),
        lambda m: (m.normal(2, 4), m.tensor([[3, 0, -1, 1], [1, -1, 2, 2]])),
    )
    case(
        f"MultiLabelSoftMarginLoss-{_r}",
        lambda nn, r=_r: nn.MultiLabelSoftMarginLoss(reduction=r),
        lambda m: (m.normal(3, 4), m.uniform(3, 4, grad=False).round()),
    )
    case(
        f"KLDivLoss-{_r}",
        lambda nn, r=_r: nn.KLDivLoss(reduction=r if r != "mean" else "batchmean"),
        lambda m: (m.normal(3, 4), m.uniform(3, 4)),
    )
    case(
        f"BCELoss-{_r}",
        lambda nn, r=_r: nn.BCELoss(reduction=r),
        lambda m: (m.uniform(3, 4), m.uniform(3, 4, grad=False)),
    )
    case(
        f"BCEWithLogitsLoss-{_r}",
        lambda nn, r=_r: nn.BCEWithLogitsLoss(reduction=r),
        lambda m: (m.normal(3, 4), m.uniform(3, 4, grad=False)),
    )
    case(
        f"PoissonNLLLoss-{_r}",
        lambda nn, r=_r: nn.PoissonNLLLoss(full=True, reduction=r),
        lambda m: (m.normal(3, 4), m.uniform(3, 4, grad=False, high=4.0)),
    )
    case(
        f"GaussianNLLLoss-{_r}",
        lambda nn, r=_r: nn.GaussianNLLLoss(full=True, reduction=r),
        lambda m: (m.normal(3, 4), m.normal(3, 4), m.uniform(3, 1)),
    )
    case(
        f"CosineEmbeddingLoss-{_r}",
        lambda nn, r=_r: nn.CosineEmbeddingLoss(0.1, reduction=r),
        lambda m: (m.normal(4, 3), m.normal(4, 3), m.signs(4)),
    )
    case(
        f"MarginRankingLoss-{_r}",
        lambda nn, r=_r: nn.MarginRankingLoss(0.2, reduction=r),
        lambda m: (m.normal(5), m.normal(5), m.signs(5)),
    )
    case(
        f"TripletMarginLoss-{_r}",
        lambda nn, r=_r: nn.TripletMarginLoss(swap=True, reduction=r),
        lambda m: (m.normal(4, 3), m.normal(4, 3), m.normal(4, 3)),
    )
    case(
        f"CTCLoss-{_r}",
        lambda nn, r=_r: nn.CTCLoss(reduction=r),
        lambda m: (
            m.normal(6, 3, 5).log_softmax(2),
            m.ints(5, 3, 3, low=1),
            m.tensor([6, 5, 6]),
            m.tensor([3, 1, 2]),
        ),
    )
case(
    "CTCLoss-flat",
    lambda nn: nn.CTCLoss(),
    lambda m: (m.normal(6, 3, 5).log_softmax(2), m.ints(5, 6, low=1), [6, 6, 4], [3, 1, 2]),
)
case(
    "NLLLoss-weight",
    lambda nn: nn.NLLLoss(ignore_index=2),
    lambda m: (m.normal(5, 4).log_softmax(1), m.tensor([0, 2, 3, 1, 2])),
)
case(
    "NLLLoss-image",
    lambda nn: nn.NLLLoss(),
    lambda m: (m.normal(2, 3, 2, 2).log_softmax(1), m.ints(3, 2, 2, 2)),
)
case(
    "CrossEntropyLoss-smooth",
    lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=2),
    lambda m: (m.normal(5, 4), m.tensor([0, 2, 3, 1, 2])),
)
case(
    "cross_entropy-weight-smooth",
    lambda nn: lambda x, t, w: nn.functional.cross_entropy(x, t, w, label_smoothing=0.2, ignore_index=1),
    lambda m: (m.normal(5, 4), m.tensor([0, 2, 3, 1, 2]), m.uniform(4, grad=False)),
)
case(
    "cross_entropy-probabilities",
    lambda nn: lambda x, t: nn.functional.cross_entropy(x, t, label_smoothing=0.2),
    lambda m: (m.normal(5, 4), m.normal(5, 4).softmax(1)),
)
case(
    "cross_entropy-image",
    lambda nn: nn.functional.cross_entropy,
    lambda m: (m.normal(2, 3, 2, 2), m.ints(3, 2, 2, 2)),
)
case(
    "AdaptiveLogSoftmaxWithLoss",
    lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6]),
    lambda m: (m.normal(6, 8), m.tensor([0, 4, 9, 2, 7, 5])),
)
case(
    "TripletMarginWithDistanceLoss",
    lambda nn: nn.TripletMarginWithDistanceLoss(margin=0.7),
    lambda m: (m.normal(4, 3), m.normal(4, 3), m.normal(4, 3)),
)

# ---- recurrent
case("RNN", lambda nn: nn.RNN(3, 4, 2), on(5, 2, 3))
case("RNN-relu", lambda nn: nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), on(2, 5, 3))
case("GRU", lambda nn: nn.GRU(3, 4, 2, bidirectional=True), on(5, 2, 3))
case("LSTM", lambda nn: nn.LSTM(3, 4, 2, batch_first=True), on(2, 5, 3))
case(
    "LSTM-bidirectional",
    lambda nn: nn.LSTM(3, 4, bidirectional=True),
    lambda m: (m.normal(4, 2, 3), (m.normal(2, 2, 4), m.normal(2, 2, 4))),
)
case("LSTM-proj", lambda nn: nn.LSTM(3, 4, 2, proj_size=2), on(4, 2, 3))
case("LSTM-unbatched", lambda nn: nn.LSTM(3, 4), on(4, 3))
case("LSTM-dropout", lambda nn: nn.LSTM(3, 4, 2, dropout=0.4), on(4, 2, 3))
case("LSTM-packed", lambda nn: nn.LSTM(3, 4, bidirectional=True), lambda m: (m.packed([2, 5, 3], 3),))
case("GRU-packed", lambda nn: nn.GRU(3, 4, 2), lambda m: (m.packed([4, 1, 3], 3),))
case(
    "RNN-packed", lambda nn: nn.RNN(2, 5, bidirectional=True, bias=False), lambda m: (m.packed([3, 4, 1], 2),)
)
# More sequences than the sixteen from which threads divide them, and sizes that fill no vector.
case("LSTM-many", lambda nn: nn.LSTM(3, 9, bidirectional=True, bias=False), on(3, 19, 3))
case("GRU-many", lambda nn: nn.GRU(3, 9, batch_first=True), on(19, 3, 3))
case("RNN-many", lambda nn: nn.RNN(3, 9), on(4, 19, 3))
case(
    "LSTM-many-packed",
    lambda nn: nn.LSTM(2, 5),
    lambda m: (m.packed([*range(1, 20, 2), *range(20, 1, -2)], 2),),
)
case("RNNCell", lambda nn: nn.RNNCell(3, 4), lambda m: (m.normal(2, 3), m.normal(2, 4)))
case("LSTMCell", lambda nn: nn.LSTMCell(3, 4), on(2, 3))
case("GRUCell", lambda nn: nn.GRUCell(3, 4), on(3))

# ---- attention
_mha = lambda m: (m.normal(4, 2, 8), m.normal(5, 2, 8), m.normal(5, 2, 8))  # noqa: E731
case("MultiheadAttention", lambda nn: nn.MultiheadAttention(8, 2), _mha)
case(
    "MultiheadAttention-extra",
    lambda nn: nn.MultiheadAttention(8, 2, bias=True, add_bias_kv=True, add_zero_attn=True),
    _mha,
)
case(
    "MultiheadAttention-kv",
    lambda nn: nn.MultiheadAttention(8, 2, kdim=3, vdim=5, batch_first=True),
    lambda m: (m.normal(2, 4, 8), m.normal(2, 5, 3), m.normal(2, 5, 5)),
)
case(
    "MultiheadAttention-masks",
    lambda nn: (
        lambda mha: (
            lambda x, pad, mask: mha(x, x, x, key_padding_mask=pad, attn_mask=mask, need_weights=False)
        )
    )(nn.MultiheadAttention(8, 2)),
    lambda m: (
        m.normal(3, 2, 8),
        m.tensor([[False, False, True], [False, False, False]]),
        m.tensor([[False, True, True], [False, False, True], [False, False, False]]),
    ),
)
case("MultiheadAttention-dropout", lambda nn: nn.MultiheadAttention(8, 2, dropout=0.3), _mha)
case("TransformerEncoderLayer", lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1), on(4, 2, 8))
case(
    "TransformerEncoder-prenorm",
    lambda nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", norm_first=True, batch_first=True),
        2,
        nn.LayerNorm(8),
    ),
    on(2, 4, 8),
)
case(
    "TransformerDecoderLayer",
    lambda nn: nn.TransformerDecoderLayer(8, 2, 16, 0.0),
    lambda m: (m.normal(3, 2, 8), m.normal(4, 2, 8)),
)
case(
    "Transformer",
    lambda nn: nn.Transformer(8, 2, 1, 1, 16, 0.0),
    lambda m: (m.normal(4, 2, 8), m.normal(3, 2, 8)),
)

# ---- reparametrised modules
case("weight_norm-old", lambda nn: nn.utils.weight_norm(nn.Linear(3, 4), dim=1), on(2, 3))
case("spectral_norm-old", lambda nn: nn.utils.spectral_norm(nn.Conv2d(2, 3, 2)), on(1, 2, 3, 3))
case("weight_norm", lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), on(2, 3))
case("spectral_norm", lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)), on(2, 3))
for _map, _rows in (("matrix_exp", 3), ("cayley", 4), ("householder", 4)):
    case(
        f"orthogonal-{_map}",
        lambda nn, m=_map, r=_rows: nn.utils.parametrizations.orthogonal(nn.Linear(3, r), orthogonal_map=m),
        on(2, 3),
    )


def run(torch, name, seed=11):
    """Build and call one case: a dict of what it showed.

    Keys: repr (modules only), init/<name> (initial tensors), out/<i>, grad/<name of input or parameter>,
    state/<name> (tensors after the call).
    """
    build, inputs = CASES[name]
    torch.manual_seed(seed)
    module = build(torch.nn)
    is_module = isinstance(module, torch.nn.Module)
    lazy = name.startswith("Lazy")
    seen = {"repr": repr(module) if is_module else ""}
    if is_module and not lazy:
        seen.update({f"init/{k}": v.detach().clone() for k, v in module.state_dict().items()})
    args = inputs(Make(torch))
    for arg in _tensors(args):
        if arg.requires_grad and not arg.is_leaf:
            arg.retain_grad()
    outputs = _tensors(module(*args))
    seen.update({f"out/{i}": t.detach() for i, t in enumerate(outputs)})
    total = sum(
        (t * torch.linspace(0.5, 1.5, t.numel()).view(t.shape)).sum()
        for t in outputs
        if t.is_floating_point() and t.requires_grad
    )
    if isinstance(total, torch.Tensor):
        total.backward()
    seen.update({f"grad/{i}": t.grad for i, t in enumerate(_tensors(args)) if t.grad is not None})
    if is_module:
        seen.update({f"grad/{k}": p.grad for k, p in module.named_parameters() if p.grad is not None})
        seen.update({f"state/{k}": v for k, v in module.state_dict().items()})
    return seen


def _tensors(value):
    """Every tensor in nested tuples and lists, in order."""
    if hasattr(value, "numel"):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors(v)]
    return []


def digest(tensor):
    """Shape, mean magnitude and up to 24 evenly spread elements of a tensor, as float64."""
    flat = np.asarray(tensor.detach().numpy(), dtype=np.float64).reshape(-1)
    step = max(1, -(-flat.size // 24))
    size = max(flat.size, 1)
    return np.concatenate(
        [
            np.array(tensor.shape, dtype=np.float64),
            [np.abs(flat).sum() / size, flat.sum() / size],
            flat[::step],
        ]
    )


def answer(torch, name) -> dict:
    """What a case shows, as plain data; of tensors the digest in single precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = run(torch, name)
    text = seen.pop("repr")
    return {"repr": text} | {key: digest(x).astype(np.float32).tolist() for key, x in seen.items()}


def divided(found: dict) -> tuple[dict, dict]:
    """Splits an answer into initial values, which agree exactly because they depend on the generator only, and the rest."""
    first = {key: value for key, value in found.items() if key.startswith("init/")}
    return first, {key: value for key, value in found.items() if key not in first}


def golden_answers(torch) -> dict:
    made = {}
    for name in CASES:
        made[f"init {name}"], made[name] = divided(record(answer(torch, name)))
    return made
