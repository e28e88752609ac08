"""Arguments that layers and their functions refuse, empty inputs, and images resized with an antialiasing filter."""

SETUP = """
F, nn = torch.nn.functional, torch.nn
def image(*shape, dtype=torch.float32):
    torch.manual_seed(3)
    x = torch.rand(*shape)
    return (x * 255).to(dtype) if dtype is torch.uint8 else x.to(dtype)
def gradient(x, **options):
    x = x.requires_grad_()
    F.interpolate(x, antialias=True, **options).pow(2).sum().backward()
    return x.grad
"""

_CHECKS = [
    "F.ctc_loss(torch.randn(10,2,5).log_softmax(2),torch.ones(2,3,dtype=torch.long),torch.tensor([10.,10.]),torch.tensor([3,3]))",
    "F.ctc_loss(torch.randn(10,2,5).log_softmax(2),torch.ones(2,3,dtype=torch.long),torch.tensor([10,10]),torch.tensor([3.,3.]))",
    "F.ctc_loss(torch.randn(10,2,5).log_softmax(2),torch.ones(2,3),torch.tensor([10,10]),torch.tensor([3,3]))",
    "F.ctc_loss(torch.randn(10,2,5).log_softmax(2),torch.ones(2,3).long(),[10,10,10],[3,3])",
    "F.ctc_loss(torch.randn(10,2,5).log_softmax(2),torch.ones(2,3).long(),[10,10],[3])",
    "nn.Conv1d(4,5,3)(torch.ones(0,4,10)).shape",
    "nn.Conv2d(2,4,(3,2))(torch.ones(0,2,6,5)).shape",
    "torch.ones(0,2,3).view(0,-1)",
    "torch.ones(0,6).view(0,-1,3)",
    "torch.ones(0,6).view(0,-1,3).shape",
    "nn.ModuleDict(3)",
    "nn.ModuleDict([1])",
    "F.multi_margin_loss(torch.ones(5),torch.tensor([1]),reduction='none').shape",
    "F.multi_margin_loss(torch.ones(5),torch.tensor(1),reduction='none').shape",
    "nn.RNNCell(10,20)(torch.ones(3,10),torch.ones(1,20))",
    "nn.LSTMCell(10,20)(torch.ones(3,10),(torch.ones(1,20),torch.ones(3,20)))",
    "nn.GRUCell(10,20)(torch.ones(3,10),torch.ones(1,20))",
    "nn.RNNCell(10,20)(torch.ones(3,9),torch.ones(3,20))",
    "nn.RNNCell(10,20)(torch.ones(3,10),torch.ones(3,21))",
    "F.affine_grid(torch.ones(1,2,3),(1,1,2,2))",
    "F.affine_grid(torch.ones(1,2,3),(1,1,1,2),align_corners=True)",
    "F.cosine_similarity(torch.ones(2,3).to(torch.int8),torch.ones(2,3),dim=-1)",
    "F.cosine_similarity(torch.ones(2,3).to(torch.int8),torch.ones(2,3).to(torch.int8),dim=-1)",
    "nn.CrossEntropyLoss()(torch.ones(0,4),torch.ones(0).long())",
    "nn.CrossEntropyLoss()(torch.ones(5,0),torch.ones(5,0))",
    "nn.RNN(2,3)(torch.ones(0,1,2))",
    "nn.LSTM(2,3)(torch.ones(0,1,2))",
    "nn.GRU(2,3,batch_first=True)(torch.ones(1,0,2))",
    "nn.RNN(2,3)(torch.ones(0,2))",
    "F.fractional_max_pool2d(torch.rand(1,1,8,8),(2,2),output_ratio=(0.5,0.5,0.5))",
    "F.fractional_max_pool2d(torch.rand(1,1,8,8),(2,2))",
    "F.interpolate(torch.ones(1,1,4),size=(3.333,))",
    "F.interpolate(torch.ones(1,1,4,4),size=(3,3.333))",
    "F.interpolate(torch.ones(1,1,4,4),size=(3,3,3))",
    "F.interpolate(torch.ones(1,1,4,4),scale_factor=-1e20,mode='bilinear')",
    "nn.Module.to(nn.Linear(2,2),'cpu',copy=True)",
    "nn.Linear(2,2).to(torch.int8)",
    "nn.Linear(2,2).to(torch.complex64).weight.dtype",
    "F.multi_margin_loss(torch.ones(0,4),torch.ones(10).long())",
    "nn.MultiMarginLoss()(torch.ones(0,10),torch.ones(10).long())",
    "nn.MultiLabelMarginLoss()(torch.ones(0,1),torch.ones(10).long())",
    "nn.MultiMarginLoss()(torch.ones(0,1),torch.ones(10).long())",
    "nn.ReflectionPad1d(2)(torch.ones(2,0,10)).shape",
    "nn.ReflectionPad1d(2)(torch.ones(0,10,0))",
    "nn.ReflectionPad1d(2)(torch.ones(0,10,10)).shape",
    "nn.ReflectionPad1d(2)(torch.ones(2,2,0))",
    "nn.ReflectionPad2d(2)(torch.ones(0,10,10,10)).shape",
    "nn.ReflectionPad2d(2)(torch.ones(5,0,10,10))",
    "nn.ReflectionPad2d(2)(torch.ones(5,10,0,10))",
    "nn.ReplicationPad1d(3)(torch.ones(0,3,10)).shape",
    "nn.ReplicationPad1d(3)(torch.ones(2,0,10))",
    "nn.ReplicationPad1d(3)(torch.ones(0,10,0))",
    "nn.ReplicationPad2d(3)(torch.ones(0,2,2,2)).shape",
    "nn.ReplicationPad2d(3)(torch.ones(43,0,10,10))",
    "nn.ReplicationPad2d(3)(torch.ones(2,2,0,2))",
    "nn.ReplicationPad3d(3)(torch.ones(3,0,10,10,10))",
    "nn.ReplicationPad3d(3)(torch.ones(3,2,10,0,10))",
    "F.elu_(torch.ones(2,requires_grad=True)*-1,-2.).sum().backward()",
    "F.leaky_relu_(torch.ones(2,requires_grad=True)*-1,-2.).sum().backward()",
    "F.nll_loss(torch.randn(10,3),torch.ones(10,2).long())",
    "F.nll_loss(torch.randn(10,3),torch.ones(10).long(),weight=torch.randn(4))",
    "F.nll_loss(torch.randn(10,3),torch.ones(9).long())",
    "F.nll_loss(torch.randn(3),torch.tensor(1)).shape",
    *(
        f"F.{loss}(torch.zeros{given}, torch.zeros({target}, dtype=torch.long), reduction={reduction!r})"
        for loss in ("nll_loss", "cross_entropy")
        for given, targets in (
            ("(3)", ("()", "1", "2", "(1, 1)", "0", "3")),
            ("(2, 3)", ("()", "1", "2", "3", "(2, 1)", "(2, 3, 1)", "0")),
            ("(1, 3)", ("()", "1", "(1, 1)")),
            ("(2, 3, 4)", ("(2, 4)", "(2, 3)", "2", "(2, 1)", "(1, 4)", "(2, 4, 1)")),
            ("(2, 3, 4, 5)", ("(2, 4, 5)", "(2, 5, 4)", "(2, 4)", "(2, 4, 5, 1)", "(2, 3, 4, 5)")),
            ("(0, 3)", ("0", "1", "()")),
        )
        for target in targets
        for reduction in ("none", "mean")
    ),
    # classes are int64, or uint8 without further dims; a wrong dtype is found before a wrong size of the target or the weight
    *(
        f"F.{loss}(torch.zeros{given}, torch.zeros({target}, dtype=torch.{dtype}), {weight})"
        for loss in ("nll_loss", "cross_entropy")
        for dtype in ("int32", "uint8", "bool", "float32", "uint16")
        for given, target, weight in (
            ("(3)", "()", "None"),
            ("(3)", "2", "None"),
            ("(2, 3)", "2", "None"),
            ("(2, 3)", "3", "None"),
            ("(2, 3)", "2", "torch.ones(4)"),
            ("(2, 3, 4)", "(2, 4)", "None"),
            ("(2, 3, 4)", "(2, 5)", "None"),
            ("(2, 3, 4, 5)", "(2, 4, 5)", "None"),
            ("(2, 3, 4, 5)", "(2, 4, 4)", "None"),
            ("(2, 3, 4, 5)", "(2, 4)", "None"),
            ("(0, 3, 1, 1)", "(0, 1, 1)", "None"),
        )
    ),
    *(
        f"F.{loss}(torch.ones(2, 3), torch.zeros({shape}, dtype=torch.{dtype}))"
        for loss, shape in (("multi_margin_loss", "2"), ("multilabel_margin_loss", "2, 3"))
        for dtype in ("int32", "uint8", "float32")
    ),
    "!F.nll_loss(torch.ones(2, 3, device='meta'), torch.zeros(2, dtype=torch.uint8, device='meta')).shape",
    "F.nll_loss(torch.randn(10,3,2,2),torch.ones(10,2,2).long(),weight=torch.randn(4))",
    "F.cross_entropy(torch.randn(10,3),torch.ones(10).long(),weight=torch.randn(4))",
    "F.cross_entropy(torch.randn(10,3),torch.ones(10,2).long())",
    "F.cross_entropy(torch.randn(10,3),torch.ones(9).long())",
    "F.threshold(torch.ones(1).expand(3),0.5,0.5,inplace=True)",
    # what empty batches and formats of memory keep
    "b = nn.BatchNorm2d(3); b(torch.ones(0, 3, 2, 2)).sum().backward(); b.running_mean, b.running_var, b.num_batches_tracked",
    "x = torch.ones(3, 18, 4, 4).contiguous(memory_format=torch.channels_last); nn.PixelShuffle(3)(x).stride()",
    "x = torch.ones(3, 2, 12, 12).contiguous(memory_format=torch.channels_last); nn.PixelUnshuffle(3)(x).stride()",
    *(
        f"x = torch.zeros(1, 3, 4, 4); F.pad(x, {pad}, mode='{mode}').fill_(4); x.sum()"
        for pad in ("(0, 0, 0, 0)", "(0, 0, -1, -1)")
        for mode in ("constant", "reflect", "replicate", "circular")
    ),
    *(
        f"nn.{loss}()(torch.ones({shape}), torch.ones({target}).long())"
        for loss in ("MultiLabelMarginLoss", "MultiMarginLoss")
        for shape, target in (("0", "10"), ("10, 0", "10, 0"), ("2, 3, 4", "2, 3, 4"), ("2, 3", "4"))
    ),
    "nn.Fold((4, 5), (2, 2), dilation=8)(torch.randn(1, 12, 12))",
    "nn.TransformerEncoderLayer(8, 2, batch_first=False)(torch.ones(3, 0, 8)).shape",
    "nn.MultiheadAttention(8, 2)(torch.ones(3, 0, 8), torch.ones(3, 0, 8), torch.ones(3, 0, 8))[0].shape",
    *(
        f"nn.Linear(1, 1).to({arguments})"
        for arguments in (
            "'cpu', True",
            "None, True",
            "[]",
            "'cpu', torch.ones(1)",
            "torch.long",
            "'cpu', copy=True",
        )
    ),
    *(
        f"{call}(-torch.ones(2, requires_grad=True), {slope}).sum().backward()"
        for call in ("F.elu_", "F.celu_", "F.leaky_relu_")
        for slope in ("-2.0", "2.0")
    ),
    "F.rrelu(-torch.ones(2, requires_grad=True), -2, -1, False, True).sum().backward()",
    "F.elu(-torch.ones(2, requires_grad=True), -2.0, True).sum().backward()",
    *(
        f"F.interpolate(torch.ones(1, 1, 4), size=({size},)).shape"
        for size in ("torch.tensor(3)", "torch.tensor(3.3)", "3.3")
    ),
]
_SIZES = ("size=(4, 5)", "size=(12, 9)", "size=(1, 1)", "scale_factor=0.4", "scale_factor=(1.5, 0.5)")
_ANTIALIAS = (
    [
        f"F.interpolate(image(2, 3, 9, 8, dtype=torch.{dtype}), {size}, mode='{mode}', align_corners={corners}, antialias=True)"
        for dtype in ("float32", "float64", "uint8")
        for size in _SIZES
        for mode in ("bilinear", "bicubic")
        for corners in (False, True)
        if (dtype, size) != ("uint8", "size=(1, 1)")  # an internal assertion of PyTorch fails
    ]
    + [
        f"gradient(image(1, 2, 7, 8, dtype=torch.float64), size=(4, 10), mode='{mode}')"
        for mode in ("bilinear", "bicubic")
    ]
    + [
        "F.interpolate(image(1, 3, 8, 8).to(torch.int16), (4, 4), mode='bilinear', antialias=True)",
        "F.interpolate(image(1, 3, 8, 8).bool(), (4, 4), mode='bicubic', antialias=True)",
        "F.interpolate(image(1, 3, 0, 8), (4, 4), mode='bilinear', antialias=True)",
        "F.interpolate(image(1, 3, 8, 8), (0, 4), mode='bilinear', antialias=True)",
        "F.interpolate(image(0, 3, 8, 8), (4, 4), mode='bilinear', antialias=True).shape",
        "F.interpolate(image(1, 3, 8, 8), (4, 4), mode='nearest', antialias=True)",
        "F.interpolate(image(1, 3, 8), 4, mode='linear', antialias=True)",
        "x = image(2, 3, 8, 8).contiguous(memory_format=torch.channels_last); "
        "F.interpolate(x, (4, 4), mode='bicubic', antialias=True).is_contiguous(memory_format=torch.channels_last)",
    ]
)
CASES = [*_CHECKS, *_ANTIALIAS]
