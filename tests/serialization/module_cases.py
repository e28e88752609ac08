"""Whole modules as torch.save stores them, made and called with PyTorch or msadapter: one of every class of torch.nn.

A case is (expression of the module, expressions of its inputs). Inputs are shapes, or Python in which `torch` and `nn` are
known. Weights and inputs come from a generator with a fixed seed, which gives the same numbers in PyTorch and msadapter.
"""

SEED = 5

_IMAGE, _VOLUME, _ROWS = (1, 2, 4, 4), (1, 2, 4, 4, 4), (2, 6)
_SCORES = ((3, 4), "torch.tensor([1, 0, 3])")


def _by_dimension() -> dict[str, tuple]:
    found = {}
    for dims, shape in ((1, (1, 2, 6)), (2, _IMAGE), (3, _VOLUME)):
        both = "1, " * (2 * dims)
        for name, arguments in (
            ("AdaptiveAvgPool", "2"),
            ("AdaptiveMaxPool", "2"),
            ("AvgPool", "2"),
            ("MaxPool", "2"),
            ("LPPool", "2, 2"),
            ("BatchNorm", "2"),
            ("InstanceNorm", "2, affine=True, track_running_stats=True"),
            ("Conv", "2, 2, 2, padding=1, dilation=2"),
            ("ConvTranspose", "2, 1, 2, output_padding=0"),
            ("Dropout", "0.3"),
            ("CircularPad", "1"),
            ("ConstantPad", f"({both}), 0.5"),
            ("ReflectionPad", "1"),
            ("ReplicationPad", "1"),
            ("ZeroPad", "1"),
            ("LazyBatchNorm", ""),
            ("LazyConv", "2, 2"),
            ("LazyConvTranspose", "2, 2"),
            ("LazyInstanceNorm", "affine=True"),
        ):
            found[f"{name}{dims}d"] = (f"nn.{name}{dims}d({arguments})", shape)
    return found


_ACTIVATIONS = """
AlphaDropout CELU Dropout ELU FeatureAlphaDropout GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid
Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink
"""
_LOSSES = "HuberLoss KLDivLoss L1Loss MSELoss PoissonNLLLoss SmoothL1Loss"

CASES: dict[str, tuple] = {
    **_by_dimension(),
    **{name: (f"nn.{name}()", _ROWS) for name in _ACTIVATIONS.split()},
    **{name: (f"nn.{name}()", _ROWS, _ROWS) for name in _LOSSES.split()},
    "AdaptiveLogSoftmaxWithLoss": (
        "nn.AdaptiveLogSoftmaxWithLoss(6, 8, [3, 5])",
        _ROWS,
        "torch.tensor([1, 6])",
    ),
    "BCELoss": ("nn.BCELoss(weight=torch.ones(6))", "torch.full((2, 6), 0.3)", "torch.ones(2, 6)"),
    "BCEWithLogitsLoss": ("nn.BCEWithLogitsLoss(pos_weight=torch.ones(6))", _ROWS, "torch.ones(2, 6)"),
    "Bilinear": ("nn.Bilinear(6, 6, 2)", _ROWS, _ROWS),
    "CTCLoss": (
        "nn.CTCLoss()",
        "torch.full((5, 1, 4), -1.5)",
        "torch.tensor([[1, 2]])",
        "torch.tensor([5])",
        "torch.tensor([2])",
    ),
    "ChannelShuffle": ("nn.ChannelShuffle(2)", (1, 4, 2, 2)),
    "CosineEmbeddingLoss": ("nn.CosineEmbeddingLoss(0.1)", _ROWS, _ROWS, "torch.tensor([1, -1])"),
    "CosineSimilarity": ("nn.CosineSimilarity()", _ROWS, _ROWS),
    "CrossEntropyLoss": ("nn.CrossEntropyLoss(weight=torch.ones(4), label_smoothing=0.1)", *_SCORES),
    "CrossMapLRN2d": ("nn.CrossMapLRN2d(2)", _IMAGE),
    "DataParallel": ("nn.DataParallel(nn.Linear(6, 2))", _ROWS),
    "Embedding": ("nn.Embedding(5, 3, padding_idx=0)", "torch.tensor([[0, 4]])"),
    "EmbeddingBag": ("nn.EmbeddingBag(5, 3, mode='mean')", "torch.tensor([[0, 4]])"),
    "Flatten": ("nn.Flatten()", _IMAGE),
    "Fold": ("nn.Fold((4, 4), 2)", (1, 8, 9)),
    "FractionalMaxPool2d": (
        "nn.FractionalMaxPool2d(2, 2, _random_samples=torch.full((1, 2, 2), 0.4))",
        _IMAGE,
    ),
    "FractionalMaxPool3d": (
        "nn.FractionalMaxPool3d(2, 2, _random_samples=torch.full((1, 2, 3), 0.4))",
        _VOLUME,
    ),
    "GLU": ("nn.GLU()", _ROWS),
    "GRU": ("nn.GRU(6, 3, 2, bidirectional=True)", (4, 2, 6)),
    "GRUCell": ("nn.GRUCell(6, 3)", _ROWS),
    "GaussianNLLLoss": ("nn.GaussianNLLLoss()", _ROWS, _ROWS, "torch.ones(2, 6)"),
    "GroupNorm": ("nn.GroupNorm(2, 4)", (2, 4, 3)),
    "HingeEmbeddingLoss": ("nn.HingeEmbeddingLoss()", _ROWS, "torch.ones(2, 6)"),
    "LSTM": ("nn.LSTM(6, 4, 2, batch_first=True, proj_size=2)", (2, 3, 6)),
    "LSTMCell": ("nn.LSTMCell(6, 3)", _ROWS),
    "LayerNorm": ("nn.LayerNorm(6)", _ROWS),
    "LazyLinear": ("nn.LazyLinear(3)", _ROWS),
    "Linear": ("nn.Linear(6, 3)", _ROWS),
    "LocalResponseNorm": ("nn.LocalResponseNorm(2)", _IMAGE),
    "LogSoftmax": ("nn.LogSoftmax(1)", _ROWS),
    "MarginRankingLoss": ("nn.MarginRankingLoss()", (3,), (3,), "torch.tensor([1, -1, 1])"),
    "MaxUnpool1d": ("nn.MaxUnpool1d(2)", (1, 1, 2), "torch.tensor([[[1, 2]]])"),
    "MaxUnpool2d": ("nn.MaxUnpool2d(2)", (1, 1, 1, 2), "torch.tensor([[[[1, 6]]]])"),
    "MaxUnpool3d": ("nn.MaxUnpool3d(2)", (1, 1, 1, 1, 1), "torch.tensor([[[[[3]]]]])"),
    "ModuleDict": ("Holder(nn.ModuleDict({'a': nn.Linear(6, 6), 'b': nn.ReLU()}))", _ROWS),
    "ModuleList": ("Holder(nn.ModuleList([nn.Linear(6, 6), nn.ReLU()]))", _ROWS),
    "MultiLabelMarginLoss": (
        "nn.MultiLabelMarginLoss()",
        (1, 4),
        "torch.tensor([[3, 0, -1, 1]])",
    ),
    "MultiLabelSoftMarginLoss": ("nn.MultiLabelSoftMarginLoss()", _ROWS, "torch.ones(2, 6)"),
    "MultiMarginLoss": ("nn.MultiMarginLoss()", *_SCORES),
    "MultiheadAttention": ("nn.MultiheadAttention(6, 2, add_bias_kv=True)", (3, 2, 6), (3, 2, 6), (3, 2, 6)),
    "NLLLoss": ("nn.NLLLoss()", *_SCORES),
    "NLLLoss2d": ("nn.NLLLoss2d()", (1, 3, 2, 2), "torch.ones(1, 2, 2, dtype=torch.int64)"),
    "PairwiseDistance": ("nn.PairwiseDistance()", _ROWS, _ROWS),
    "ParameterDict": ("Summed(nn.ParameterDict({'a': torch.ones(2), 'b': torch.ones(2)}))", (2,)),
    "ParameterList": ("Summed(nn.ParameterList([torch.ones(2), torch.ones(2)]))", (2,)),
    "PixelShuffle": ("nn.PixelShuffle(2)", (1, 4, 2, 2)),
    "PixelUnshuffle": ("nn.PixelUnshuffle(2)", _IMAGE),
    "RMSNorm": ("nn.RMSNorm(6)", _ROWS),
    "RNN": ("nn.RNN(6, 3, nonlinearity='relu')", (4, 2, 6)),
    "RNNCell": ("nn.RNNCell(6, 3)", _ROWS),
    "Sequential": ("nn.Sequential(nn.Linear(6, 3), nn.Tanh())", _ROWS),
    "SoftMarginLoss": ("nn.SoftMarginLoss()", _ROWS, "torch.ones(2, 6)"),
    "Softmax": ("nn.Softmax(1)", _ROWS),
    "Softmax2d": ("nn.Softmax2d()", _IMAGE),
    "Softmin": ("nn.Softmin(1)", _ROWS),
    "SyncBatchNorm": ("nn.SyncBatchNorm(2)", _IMAGE),
    "Threshold": ("nn.Threshold(0.1, 2.0)", _ROWS),
    "Transformer": ("nn.Transformer(4, 2, 1, 1, 4)", (3, 1, 4), (2, 1, 4)),
    "TransformerDecoder": (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 4), 2)",
        (2, 1, 4),
        (3, 1, 4),
    ),
    "TransformerDecoderLayer": (
        "nn.TransformerDecoderLayer(4, 2, 4, activation='gelu')",
        (2, 1, 4),
        (3, 1, 4),
    ),
    "TransformerEncoder": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 2)", (3, 1, 4)),
    "TransformerEncoderLayer": (
        "nn.TransformerEncoderLayer(4, 2, 4, activation=nn.GELU(), norm_first=True)",
        (3, 1, 4),
    ),
    "TripletMarginLoss": ("nn.TripletMarginLoss()", _ROWS, _ROWS, _ROWS),
    "TripletMarginWithDistanceLoss": (
        "nn.TripletMarginWithDistanceLoss(distance_function=nn.functional.pairwise_distance)",
        _ROWS,
        _ROWS,
        _ROWS,
    ),
    "Unflatten": ("nn.Unflatten(1, (2, 3))", _ROWS),
    "Unfold": ("nn.Unfold(2)", _IMAGE),
    "Upsample": ("nn.Upsample(scale_factor=2, mode='bilinear')", _IMAGE),
    "UpsamplingBilinear2d": ("nn.UpsamplingBilinear2d(scale_factor=2)", _IMAGE),
    "UpsamplingNearest2d": ("nn.UpsamplingNearest2d(scale_factor=2)", _IMAGE),
    # what modules may carry
    "lazy, not called": ("nn.LazyLinear(3)",),
    "of the older weight_norm": ("nn.utils.weight_norm(nn.Linear(6, 3))", _ROWS),
    "of the older spectral_norm": ("nn.utils.spectral_norm(nn.Linear(6, 3))", _ROWS),
    "pruned": ("prune.l1_unstructured(nn.Linear(6, 3), 'weight', 0.5)", _ROWS),
    "graph of fx": ("torch.fx.symbolic_trace(nn.Sequential(nn.Linear(6, 3), nn.ReLU()))", _ROWS),
    "graph of functions": ("torch.fx.symbolic_trace(Doubled())", _ROWS),
    "averaged": ("torch.optim.swa_utils.AveragedModel(nn.Linear(6, 3))", _ROWS),
    "optimizer": (
        "Probe(torch.optim.AdamW([nn.Parameter(torch.ones(2))]), 'torch.tensor(value.defaults[\"betas\"])')",
        (1,),
    ),
    "muon": (
        "Probe(torch.optim.Muon([nn.Parameter(torch.ones(2, 2))]), 'torch.tensor(value.defaults[\"momentum\"])')",
        (1,),
    ),
    "schedule": (
        "Probe(torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1), 3), "
        "'torch.tensor(value.get_last_lr())')",
        (1,),
    ),
    "chained schedule": (
        "Probe(torch.optim.lr_scheduler.SequentialLR(sgd := torch.optim.SGD([nn.Parameter(torch.ones(2))], 0.1), "
        "[torch.optim.lr_scheduler.ConstantLR(sgd), torch.optim.lr_scheduler.StepLR(sgd, 2)], [2]), "
        "'torch.tensor(value.get_last_lr())')",
        (1,),
    ),
    "distribution": (
        "Probe(torch.distributions.TransformedDistribution(torch.distributions.Normal(torch.zeros(2), torch.ones(2)), "
        "[torch.distributions.transforms.ExpTransform()]), 'value.log_prob(x)')",
        "torch.ones(2)",
    ),
    "functions": (
        "Probe([torch.einsum, torch.atleast_2d, nn.functional.gelu, torch.Tensor.add_, torch.Tensor.size, torch.linalg.norm], "
        "'value[0](\"i,i\", x, x) + value[1](value[2](x)) + value[3](x.clone(), 1) + value[4](x, 0) + value[5](x)')",
        (3,),
    ),
    "classes": (
        "Probe([nn.MultiheadAttention, torch.device, torch.finfo], 'value[0](4, 2).out_proj.bias + value[2](torch.float32).eps')",
        (4,),
    ),
    "quantised": ("torch.ao.quantization.QuantStub()", _ROWS),
}

# No modules of their own, or nothing that one could call.
NOT_CALLED = {
    "Buffer",
    "Container",
    "Module",
    "Parameter",
    "RNNBase",
    "RNNCellBase",
    "UninitializedBuffer",
    "UninitializedParameter",
}


def classes(torch):
    """Modules of the user, in a module of this name in both programs."""
    nn = torch.nn

    class Holder(nn.Module):
        def __init__(self, parts):
            super().__init__()
            self.parts = parts

        def forward(self, x):
            for part in self.parts.values() if isinstance(self.parts, nn.ModuleDict) else self.parts:
                x = part(x)
            return x

    class Summed(Holder):
        def forward(self, x):
            parts = self.parts.values() if isinstance(self.parts, nn.ParameterDict) else self.parts
            return sum(parts) + x

    class Doubled(nn.Module):
        def forward(self, x):
            return torch.nn.functional.gelu(torch.add(x, x)).sum(dim=-1) + x.shape[0]

    class Probe(nn.Module):
        """Holds any object, and answers an expression of it."""

        def __init__(self, value, expression):
            super().__init__()
            self.value, self.expression = value, expression

        def forward(self, x):
            return eval(self.expression, {"torch": torch, "value": self.value, "x": x})

    for made in (Holder, Summed, Doubled, Probe):
        made.__qualname__ = made.__name__
        globals()[made.__name__] = made
    return {made.__name__: made for made in (Holder, Summed, Doubled, Probe)}


def make(torch, case: str):
    """Return (module, inputs) of a case. The module is in evaluation mode and has been called once."""
    import importlib

    names = {"torch": torch, "nn": torch.nn, **classes(torch)}
    for module in ("fx", "ao.quantization", "optim.swa_utils", "distributions"):
        importlib.import_module(f"{torch.__name__}.{module}")
    names["prune"] = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    expression, *inputs = CASES[case]
    torch.manual_seed(SEED)
    module = eval(expression, names).eval()
    values = [torch.randn(i) if isinstance(i, tuple) else eval(i, names) for i in inputs]
    if values:
        module(*values)
    return module, values


def outputs(torch, module, inputs) -> list:
    """The tensors that a module answers."""
    if not inputs:
        return []
    found = module(*inputs)
    flat = []
    stack = [found]
    while stack:
        value = stack.pop(0)
        if isinstance(value, torch.Tensor):
            flat.append(value.detach())
        elif isinstance(value, (tuple, list)):
            stack = [*value, *stack]
    return flat


def store(torch, case: str, file) -> None:
    """Save a case with its outputs."""
    module, inputs = make(torch, case)
    torch.save({"module": module, "inputs": inputs, "outputs": outputs(torch, module, inputs)}, file)


def check(torch, case: str, file) -> None:
    """Load a case and compare what it answers with what it answered where it was saved.

    Raises:
        AssertionError: it answers something else.
    """
    classes(torch)
    told = torch.load(file, weights_only=False)
    module = told["module"]
    assert type(module).__module__.partition(".")[0] in (torch.__package__, __name__.partition(".")[0]), type(
        module
    )
    again = outputs(torch, module, told["inputs"])
    assert len(again) == len(told["outputs"])
    for one, other in zip(again, told["outputs"], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
    repr(module)
    module.train()
    module.state_dict()
    if not case.startswith("lazy"):
        module.double()


def main(folder: str) -> None:
    """Check every file of a folder in this Python, with the torch that it has. Exit code 1 if one differs."""
    import pathlib
    import sys

    import torch

    wrong = []
    for case in CASES:
        try:
            check(torch, case, pathlib.Path(folder) / f"{case}.pt")
        except Exception as error:  # every file is tried
            wrong.append(f"{case}: {type(error).__name__}: {error}")
    print(*wrong, sep="\n")
    sys.exit(bool(wrong))
