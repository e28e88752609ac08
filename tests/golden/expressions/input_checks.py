"""Inputs that bags, pooling and writes by index refuse, and results that rounding could spoil."""

SETUP = """
F, nn = torch.nn.functional, torch.nn
table = torch.arange(20.).view(10, 2)
ones, one = torch.ones(12).long(), torch.tensor([0])
def pooled(f, *shape, **options):
    return f(torch.ones(shape), 2, **options)
def changed(x, f):
    f(x)
    return x
last = torch.channels_last
image = torch.arange(384.).view(2, 3, 8, 8).contiguous(memory_format=last)
row = torch.arange(12.)
"""

_BAGS = [
    "F.embedding_bag(ones, table, torch.tensor([1, 2, 3]))",
    "F.embedding_bag(ones, table, torch.tensor([0, 2, 100]))",
    "F.embedding_bag(torch.tensor([[-1, 1]]), table, padding_idx=0)",
    "F.embedding_bag(torch.tensor([[11, 8]]), table, mode='max', padding_idx=0)",
    "F.embedding_bag(torch.tensor([1, 2]), table, one, per_sample_weights=torch.ones(2).double(), mode='sum')",
    "F.embedding_bag(torch.tensor([1., 2.]), table, one)",
    "F.embedding_bag(torch.tensor([1, 2]), table, torch.tensor([0.]))",
    "F.embedding_bag(torch.tensor([1, 2]), table, torch.tensor([0, 2]))",
    "torch.embedding_bag(table, torch.zeros(2, 2, 2).long(), one)",
    "torch.embedding_bag(table, torch.zeros(2).long(), torch.zeros(1, 1).long())",
    "torch.embedding_bag(torch.zeros(2, 2, 2), torch.zeros(2).long(), one)",
    "nn.EmbeddingBag(3, 2, padding_idx=10)",
    "F.embedding_bag(one, table.clone().requires_grad_(), one, padding_idx=0, mode='max').requires_grad",
    "nn.Embedding(3, 2, padding_idx=-10)",
]
_POOLS = [
    *(
        f"pooled(F.{name}_pool{n}d, {shape})"
        for n, batched in ((1, "{}, {}, 4"), (2, "{}, {}, 4, 4"), (3, "{}, {}, 4, 4, 4"))
        for name in ("max", "avg", "adaptive_max", "adaptive_avg")
        for shape in (batched.format(1, 0), batched.format(0, 2))
        if (name, batched.format(1, 0)) != ("adaptive_avg", shape) and not (name == "avg" and n != 2)
    ),
    *(f"pooled(F.max_pool{n}d, 1, 2, 4, 4, 4, stride=0)" for n in (3,)),
    "pooled(F.max_pool1d, 1, 2, 4, stride=0)",
    "pooled(F.max_pool2d, 1, 2, 4, 4, stride=0)",
    "pooled(F.avg_pool2d, 1, 2, 4, 4, stride=0)",
    "F.adaptive_avg_pool2d(torch.ones(1, 2, 4, 4), ())",
    "F.adaptive_max_pool2d(torch.ones(1, 2, 4, 4), ())",
    "F.adaptive_max_pool3d(torch.ones(1, 2, 4, 4, 4), ())",
    "pooled(F.fractional_max_pool2d, 1, 0, 9, 9, output_size=2)",
    "pooled(F.fractional_max_pool3d, 1, 0, 9, 9, 9, output_size=2)",
    "pooled(F.fractional_max_pool2d, 2, 4, 9, 9, output_size=2, _random_samples=torch.ones(1, 4, 2))",
    "pooled(F.fractional_max_pool2d, 2, 4, 9, 9, output_size=2, _random_samples=torch.ones(2, 3, 2))",
    "pooled(F.fractional_max_pool3d, 2, 4, 9, 9, 9, output_size=2, _random_samples=torch.ones(2, 4, 9))",
    "pooled(F.fractional_max_pool2d, 1, 1, 4, 4, output_size=3, _random_samples=torch.ones(1, 1, 2))",
    "pooled(F.fractional_max_pool3d, 1, 1, 4, 4, 4, output_size=3, _random_samples=torch.ones(1, 1, 3))",
    "F.fractional_max_pool2d((image % 7).where(image % 5 > 0, torch.nan), 3, 2, return_indices=True, "
    "_random_samples=torch.full((2, 3, 2), 0.4))",
    "nn.MaxUnpool1d(2)(torch.ones(0, 2, 4), torch.ones(0, 2, 4).long()).shape",
    "nn.MaxUnpool3d(2, stride=0)(torch.ones(1, 3, 1, 1, 1), torch.zeros(1, 3, 1, 1, 1).long())",
    "F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2).stride()",
    "F.grid_sample(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 3), align_corners=True)",
]
_WRITES = [
    "changed(torch.tensor([2, 1, 0]), lambda x: x.index_fill_(0, x, 0))",
    "torch.lerp(row[:6], row[1:7], row[2:8], out=row[3:9])",
    "changed(torch.arange(4), lambda x: x.__setitem__(x > -1, torch.tensor([])))",
    "torch.ones(3).__delitem__(0)",
    "torch.empty(10, 0)[[1, 2], [0, 1]]",
    "torch.take_along_dim(torch.ones(3, 3), torch.zeros(3, 3).int(), 0)",
    "torch.unravel_index(torch.tensor([1]), 2.0)",
    "torch.unravel_index(torch.tensor([1]), (1, 2.0))",
    "torch.empty_like(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)",
    "torch.eye(2).to_sparse().dim_order()",
]
_NUMBERS = [
    "torch.log_softmax(torch.arange(8.).view(2, 4) + 1e7, -1)",
    "torch.log_softmax(torch.arange(8.).view(2, 4) + 1e7, 0)",
    "torch.full((1000,), 0.1).std().item() < 1e-6",
    "torch.arange(1., 101).mul(0.3).div(torch.arange(1., 101)).var().item() < 1e-12",
    "(F.layer_norm(torch.arange(2.**21).remainder(997), (2**21,))[:3] * 1e4).round()",
    "image.to(torch.float64, memory_format=torch.contiguous_format).stride()",
    "image.to('cpu', copy=True, memory_format=torch.contiguous_format).stride()",
    "image.double(memory_format=torch.contiguous_format).stride()",
    "image.contiguous().half(memory_format=last).stride()",
]
CASES = [*_BAGS, *_POOLS, *_WRITES, *_NUMBERS]
