# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5. Memory and performance: predict, measure, choose
#
# At the end of this chapter you can say before a run how much memory it will take, you have checked that against measurements to within
# ten percent, and you know what recomputation, ZeRO, pipelines and their bubbles cost and save. It takes about 60 minutes. You need chapter 1
# and the structure of a transformer.
#
# **第 5 章 显存与性能：先预测，再测量，再选择。** 学完本章，你能在运行前算出所需内存，并用测量验证误差在 10% 以内；
# 你还会知道重计算、ZeRO、流水线及其气泡的代价与收益。约需 60 分钟。

# %% [markdown]
# ## 5.1 A result first
#
# A small GPT over the bytes of Shakespeare, and its memory while it trains. Without an NPU, the device named `cuda` is the host, and its memory
# statistics are real: they count the bytes that tensors hold.
#
# **先看结果。** 一个小型 GPT 及其训练时的内存。没有 NPU 时，名为 `cuda` 的设备就是本机，其内存统计是真实的张量字节数。

# %%
import os

os.environ["MSADAPTER_DEVICE"] = "cuda"
import msadapter

msadapter.install()

import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import torch
from lesson import check, corpus, plot, work
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Shape:
    layers: int = 4
    hidden: int = 128
    heads: int = 4
    sequence: int = 128
    batch: int = 8
    vocabulary: int = 256  # the bytes
    recompute: bool = False


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        h, self.heads = shape.hidden, shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.LayerNorm(h)
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, s, h)
        )
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token, self.place = (
            nn.Embedding(shape.vocabulary, shape.hidden),
            nn.Embedding(shape.sequence, shape.hidden),
        )
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm, self.head = nn.LayerNorm(shape.hidden), nn.Linear(shape.hidden, shape.vocabulary)

    def forward(self, ids):
        x = self.token(ids) + self.place.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.shape.recompute else block(x)
        return self.head(self.norm(x))


DATA = torch.tensor(list(corpus().encode())[:100_000], device=DEVICE)


def batch(shape, generator):
    first = torch.randint(len(DATA) - shape.sequence, (shape.batch,), generator=generator)
    rows = torch.stack([DATA[i : i + shape.sequence + 1] for i in first.tolist()])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def measure(shape, steps=3):
    """Trains a few steps. Returns the bytes of the model, gradients, optimizer, activations, the peak, and seconds a step."""
    gc.collect()
    torch.manual_seed(0)
    generator, bytes_ = torch.Generator().manual_seed(0), {}
    start = torch.cuda.memory_allocated()
    model = GPT(shape).to(DEVICE)
    bytes_["parameters"] = torch.cuda.memory_allocated() - start
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        ids, labels = batch(shape, generator)
        torch.cuda.reset_peak_memory_stats()
        began, before = time.perf_counter(), torch.cuda.memory_allocated()
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        bytes_["activations"] = torch.cuda.memory_allocated() - before
        loss.backward()
        del loss
        now = torch.cuda.memory_allocated()
        if step == 0:
            bytes_["gradients"] = now - before
        optimizer.step()
        if step == 0:
            bytes_["optimizer"] = torch.cuda.memory_allocated() - now
        optimizer.zero_grad()
        bytes_["peak"], bytes_["seconds"] = (
            torch.cuda.max_memory_allocated() - start,
            time.perf_counter() - began,
        )
        del ids, labels
    return bytes_


base = Shape()
measured = measure(base)
for name, value in measured.items():
    print(f"{name:12} {value * 1000:8.1f} ms" if name == "seconds" else f"{name:12} {value / 2**20:8.2f} MiB")

# %% [markdown]
# ## 5.2 What stays: parameters, gradients, optimizer
#
# A block with hidden size $h$ has $12h^2$ weights (query, key and value $3h^2$, output $h^2$, up and down $8h^2$) and $13h$ biases and norms. In
# float32 with Adam each parameter costs 4 bytes, its gradient 4, and Adam's two moments 8: **16 bytes in all.**
#
# **常驻部分。** 每个块有 $12h^2+13h$ 个参数；float32 加 Adam 时，每个参数共占 16 字节。


# %%
def parameters(shape):
    h = shape.hidden
    return (
        shape.layers * (12 * h**2 + 13 * h)
        + (shape.vocabulary + shape.sequence) * h
        + 2 * h
        + (h + 1) * shape.vocabulary
    )


def within(predicted, found, percent):
    print(
        f"predicted {predicted / 2**20:8.2f} MiB, measured {found / 2**20:8.2f} MiB, {100 * (predicted / found - 1):+.1f} %"
    )
    assert abs(predicted / found - 1) <= percent / 100


N = parameters(base)
assert N == sum(p.numel() for p in GPT(base).parameters())
within(N * FLOAT, measured["parameters"], 2)
within(N * FLOAT, measured["gradients"], 5)
within(2 * N * FLOAT, measured["optimizer"], 2)

# %% [markdown]
# > **Exercise 5.1.** How many gigabytes ($10^9$ bytes) do parameters, gradients and Adam's moments of a model with $7\cdot10^9$ parameters take in
# > float32?
# >
# > **练习 5.1。** 70 亿参数、float32、Adam：参数、梯度与动量共占多少 GB？

# %%
gigabytes_5_1 = ...
check("5.1", gigabytes_5_1)

# %% [markdown]
# ## 5.3 What comes and goes: activations
#
# The backward pass needs results of the forward pass. **Predict before you run:** which tensors does a block keep? Count in units of $b\,s\,h$
# numbers. A hook on saved tensors tells.
#
# **激活值。** 反向传播需要前向的中间结果。先猜：一个块会保存哪些张量（以 $b\,s\,h$ 为单位）？用保存张量的钩子来看。


# %%
def kept(module, x):
    """The storages that a module keeps for its backward pass, without its parameters: {address: (bytes, shape)}."""
    own, found = {p.untyped_storage().data_ptr() for p in module.parameters()}, {}

    def note(t):
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = (storage.nbytes(), tuple(t.shape))
        return t

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        result = module(x)
    return found, result


x = torch.randn(base.batch, base.sequence, base.hidden, device=DEVICE, requires_grad=True)
unit = base.batch * base.sequence * base.hidden * FLOAT
found, result = kept(Block(base).to(DEVICE), x)
for size, shape in sorted(found.values(), reverse=True):
    print(f"{size / unit:6.3f} units   {shape}")
total = sum(size for size, _ in found.values()) / unit
print(f"{total:.2f} units in all")
assert 15.9 < total < 16.3
del x, found, result

# %% [markdown]
# Sixteen: the inputs of the two norms (2), their outputs, which the products need (2), query, key and value (3), the attention's
# output (1), the inputs of GELU and of the last product (4 + 4). The attention keeps no matrix of $s \times s$: it computes by blocks and
# keeps one number for each row. Around the blocks there are the last norm's input and output ($2\,b\,s\,h$), the logits and their softmax
# ($2\,b\,s\,V$).
#
# The memory pool does not give a tensor exactly the bytes that it asks for. It has two sizes for every power of two, $2^k$ and
# $1.5\cdot2^k$, and takes the next larger one, so that freed blocks fit again. A tensor of 2.25 MiB takes 3. **Predict:** for which hidden
# sizes does that cost nothing?
#
# 共 16 个单位：两个归一化的输入与输出（4）、q/k/v（3）、注意力输出（1）、GELU 与最后一个矩阵乘的输入（8）。注意力按块计算，不保存
# $s\times s$ 的矩阵。块之外还有最后的归一化（$2\,b\,s\,h$）、logits 及其 softmax（$2\,b\,s\,V$）。
#
# 内存池不会恰好给出所需的字节数：每个 2 的幂有两档大小（$2^k$ 与 $1.5\cdot2^k$），向上取整，以便释放的块可以再用。2.25 MiB 的张量占 3 MiB。


# %%
def pool(numbers):
    """The bytes that the memory pool takes for a float32 tensor of so many numbers: the next 2^k or 1.5 * 2^k."""
    size = 1 << max(numbers * FLOAT - 1, 1).bit_length()  # the power of two that is large enough
    return size * 3 // 4 if size * 3 // 4 >= numbers * FLOAT else size


def activations(shape):
    """The bytes that wait for the backward pass, tensor by tensor."""
    tokens, h = shape.batch * shape.sequence, shape.hidden
    block = 5 * pool(tokens * h) + pool(3 * tokens * h) + 2 * pool(4 * tokens * h)
    block += pool(tokens * shape.heads) + 4 * pool(tokens)
    around = 2 * pool(tokens * h) + 2 * pool(tokens * shape.vocabulary)
    return shape.layers * (pool(tokens * h) if shape.recompute else block) + around


within(activations(base), measured["activations"], 1)
for changed in (
    replace(base, batch=16),
    replace(base, sequence=256, batch=4),
    replace(base, layers=6, hidden=192),
):
    print(changed, end="\n    ")
    within(activations(changed), measure(changed, 2)["activations"], 1)

# %% [markdown]
# ## 5.4 Recompute: time for memory
#
# With recomputation, a block keeps its input only (1 unit in place of 16) and computes the rest again in the backward pass: one more forward pass,
# which is about a third of the step's work. The peak has the other units of *one* block.
#
# **重计算：以时间换内存。** 每个块只保存输入（1 个单位），反向时重算，代价约为一次前向，即整步的三分之一。

# %%
cheap = replace(base, recompute=True)
with_recompute = measure(cheap)
within(activations(cheap), with_recompute["activations"], 2)
print(f"peak {measured['peak'] / 2**20:.1f} -> {with_recompute['peak'] / 2**20:.1f} MiB;", end=" ")
print(f"time {measured['seconds'] * 1000:.0f} -> {with_recompute['seconds'] * 1000:.0f} ms")
assert with_recompute["activations"] < measured["activations"] / 3

# %% [markdown]
# Are the gradients the same? Bit for bit: the same operators compute the same numbers again.
#
# 梯度是否相同？逐位相同：同样的算子再次计算同样的数。


# %%
def gradient(shape):
    torch.manual_seed(0)
    model = GPT(shape).to(DEVICE)
    ids, labels = batch(shape, torch.Generator().manual_seed(0))
    F.cross_entropy(model(ids).flatten(0, 1), labels.flatten()).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


assert torch.equal(gradient(base), gradient(cheap))

# %% [markdown]
# ## 5.5 ZeRO: each rank keeps a part
#
# $d$ data-parallel ranks hold the same parameters, gradients and moments. ZeRO divides what each needs only for its own part of the update:
#
# | stage | divided | bytes per parameter and rank |
# |---|---|---|
# | none | | $4+4+8 = 16$ |
# | 1 (distributed optimizer) | moments | $4+4+8/d$ |
# | 2 | and gradients | $4+4/d+8/d$ |
# | 3 (FSDP) | and parameters | $16/d$ |
#
# Two processes show stage 1. The program below is started with `torchrun`, as on any cluster.
#
# **ZeRO：每个进程只保存一部分。** 下面用两个进程演示第 1 阶段（优化器状态切分）。

# %%
PROGRAM = """
import torch, torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
model(torch.ones(2, 64)).sum().backward()
optimizer.step()
own = sum(t.numel() for state in optimizer.optim.state.values() for t in state.values() if t.dim())
print(f"rank {dist.get_rank()}: {own} of {2 * sum(p.numel() for p in model.parameters())} moments\\n", end="", flush=True)
"""
path = work(5) / "zero.py"
path.write_text(PROGRAM)
command = [
    sys.executable,
    "-m",
    "msadapter",
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc_per_node",
    "2",
    str(path),
]
done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MSADAPTER_DEVICE": "cpu"})
print("".join(sorted(line for line in done.stdout.splitlines(keepends=True) if line.startswith("rank"))))
shares = [
    int(line.split()[2]) / int(line.split()[4])
    for line in done.stdout.splitlines()
    if line.startswith("rank")
]
assert len(shares) == 2 and sum(shares) == 1 and max(shares) <= 0.6, done.stderr[-500:]

# %% [markdown]
# ## 5.6 Pipelines and their bubbles
#
# With $p$ stages and $m$ micro-batches, the first and the last stage wait while the pipeline fills and drains. Let a forward take one
# unit of time and a backward two. We play the schedule 1F1B: each stage prefers a backward that is ready, and has at most $p - i$ micro-batches
# under way.
#
# **流水线与气泡。** 下面的代码逐步模拟 1F1B 调度：能做反向就做反向，第 $i$ 级最多同时保留 $p-i$ 个微批次。


# %%
def play(stages, micro):
    """Plays 1F1B with a forward of one unit of time and a backward of two. Returns the idle share of the first stage."""
    ends = {}  # (kind, stage, micro-batch) -> when it ends
    free, counts = [0.0] * stages, [{"F": 0, "B": 0} for _ in range(stages)]

    def start_of(kind, i):
        """When stage i could begin its next task of this kind; None if the task that it waits for is not finished."""
        j = counts[i][kind]
        if j == micro or (kind == "F" and j - counts[i]["B"] >= stages - i):
            return None
        needed = ("F", i - 1, j) if kind == "F" else ("F", i, j) if i == stages - 1 else ("B", i + 1, j)
        ready = 0.0 if kind == "F" and i == 0 else ends.get(needed)
        return None if ready is None else max(ready, free[i])

    while counts[0]["B"] < micro:
        options = [(start_of(kind, i), kind, i) for kind in "BF" for i in range(stages)]
        begin, kind, i = min(option for option in options if option[0] is not None)
        ends[kind, i, counts[i][kind]] = free[i] = begin + (1 if kind == "F" else 2)
        counts[i][kind] += 1
    return max(free) / (3 * micro) - 1


for p, m in ((2, 4), (4, 4), (4, 8), (4, 16)):
    print(f"p={p}, m={m}: played {play(p, m):.3f}, formula (p-1)/m = {(p - 1) / m:.3f}")
    assert abs(play(p, m) - (p - 1) / m) < 1e-9
pyplot = plot()
for p in (2, 4, 8):
    pyplot.plot([4, 8, 16, 32], [(p - 1) / m for m in (4, 8, 16, 32)], marker="o", label=f"{p} stages")
pyplot.xlabel("micro-batches")
pyplot.ylabel("bubble / work")
pyplot.legend()
pyplot.show()

# %% [markdown]
# A virtual pipeline gives each stage $v$ parts of the model, and divides the bubble by $v$: $\frac{p-1}{v\,m}$. It pays with $v$ times as
# many messages.
#
# 虚拟流水线把气泡除以 $v$，代价是 $v$ 倍的通信次数。
#
# > **Exercise 5.2.** Four stages, eight micro-batches, two parts for each stage. Which share of the work is the bubble?
# >
# > **练习 5.2。** 4 级、8 个微批次、每级 2 段，气泡占计算量的比例是多少？

# %%
share_5_2 = ...
check("5.2", share_5_2)

# %% [markdown]
# ## 5.7 A dry run
#
# On the device `meta` a model has shapes and no memory. So a laptop can ask what a large one would take.
#
# **空跑。** 在 `meta` 设备上，模型只有形状而不占内存，笔记本电脑也能询问大模型需要多少。

# %%
large = Shape(layers=32, hidden=4096, heads=32, sequence=4096, batch=1, vocabulary=32000)
before = torch.cuda.memory_allocated()
with torch.device("meta"):
    model = GPT(large)
    logits = model(torch.zeros(1, 4096, dtype=torch.int64))
count = sum(p.numel() for p in model.parameters())
assert count == parameters(large) and logits.shape == (1, 4096, 32000)
assert torch.cuda.memory_allocated() - before < 2**20
print(f"{count / 1e9:.2f} billion parameters")
print(
    f"model, gradients, moments: {16 * count / 1e9:.0f} GB; activations {activations(large) / 1e9:.0f} GB,",
    end=" ",
)
print(f"with recomputation {activations(replace(large, recompute=True)) / 1e9:.0f} GB")

# %% [markdown]
# For real runs, `python -m megatron_ms plan run.yaml` does this for Megatron's models, with tensor, pipeline, data and expert parallelism, and
# estimates the time of a step too.
#
# 真实训练可以用 `python -m megatron_ms plan run.yaml`：它支持各种并行方式，并估计每步时间。
#
# ## 5.8 Where does the time go?
#
# The profiler's table names the operators by their own time, and the trace can be opened at `chrome://tracing` or ui.perfetto.dev.
#
# **时间花在哪里？** 性能分析器按算子自身耗时列表，并可导出 Chrome 跟踪文件。

# %%
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = GPT(base).to(DEVICE)
ids, labels = batch(base, torch.Generator().manual_seed(0))
for _ in range(2):  # the first step sets things up
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        F.cross_entropy(model(ids).flatten(0, 1), labels.flatten()).backward()
recorded.export_chrome_trace(str(work(5) / "trace.json"))
rows = sorted(recorded.key_averages(), key=lambda row: -row.self_cpu_time_total)
whole = sum(row.self_cpu_time_total for row in rows)
for row in rows[:6]:
    print(f"{row.self_cpu_time_total / whole:5.0%}  {row.count:4d} x {row.key}")
assert sum(row.count for row in rows if row.key == "aten::linear") == 4 * base.layers + 1

# %% [markdown]
# A row near the top is called `ViewBackward0`. Does a view take so much time? **Predict:** a block makes two views with a gradient, of
# the queries, keys and values and of the attention's output, and the loss one of the logits. How many rows of that name would you expect?
#
# The trace itself tells. It is JSON: a list of events, each with a name, a beginning and a duration in microseconds.
#
# 排在前面的一行名为 `ViewBackward0`。改变形状真的这么耗时吗？跟踪文件是 JSON：每个事件有名称、开始时间和持续时间（微秒）。直接读它。

# %%
events = json.loads((work(5) / "trace.json").read_text())["traceEvents"]
durations = sorted((event["dur"] for event in events if event["name"] == "ViewBackward0"), reverse=True)
linear, views = durations[: 4 * base.layers + 1], durations[4 * base.layers + 1 :]
print(f"{len(durations)} events: the {len(linear)} longest take {sum(linear) / 1000:.1f} ms,", end=" ")
print(f"the other {len(views)} take {sum(views) / 1000:.3f} ms")
assert len(views) == 2 * base.layers + 1 and sum(views) < sum(linear) / 20

layer, x = nn.Linear(8, 8), torch.ones(2, 3, 8)
print(
    "a linear layer's node:",
    type(layer(x).grad_fn).__name__,
    " of a matrix:",
    type(layer(x[0]).grad_fn).__name__,
)

# %% [markdown]
# So the name is PyTorch's, and the work is not a view's. PyTorch computes a linear layer with a bias on a tensor of three dimensions as
# `view`, `addmm`, `view`, and names the result after the last of them. Here one operator does all three, and its backward, two products of
# matrices, stands under the same name. Of 26 events, 17 are the linear layers and 9 are views. What would make this model faster is a
# faster product of matrices, not fewer views.
#
# 名字沿用 PyTorch：三维输入的线性层最后一步是 `view`，所以节点叫 `ViewBackward0`；这里一个算子完成全部工作，其反向（两个矩阵乘）也记在这个名字下。
# 26 个事件中 17 个是线性层，9 个才是真正的 view。要加速应优化矩阵乘，而不是减少 view。

# %% [markdown]
# > **On Ascend.** `python -m msadapter --simulated-npu program.py` runs a program on a **simulated** NPU: its memory statistics and the operators
# > that it launches are what a card would have, its speed is not. [The operators of a training step](../docs/ascend.md). Nothing of this
# > chapter has run on a card yet.
# >
# > **在昇腾上。** `python -m msadapter --simulated-npu program.py` 在**模拟的** NPU 上运行程序：内存统计和下发的算子与真实卡一致，速度则不是。
# > 本章内容尚未在真实加速卡上运行过。

# %% [markdown]
# ## 5.9 Meet a budget
#
# A step must see 32 rows with `Shape(layers=6, hidden=192)`, and its activations may take 45 MB ($45\cdot10^6$ bytes). You have two flags: the
# *micro-batch* (the rows that are computed at once; gradients of several micro-batches are added) and *recompute*, which costs a third of
# the work.
#
# **满足内存预算。** 每步 32 行，激活值上限 45 MB。可选的开关：微批大小（梯度累加）与重计算（多花三分之一的计算）。
#
# > **Exercise 5.3.** A pipeline behind it asks for at most eight micro-batches a step. Choose the flags: recompute only if you must, and the
# > largest micro-batch that fits and divides 32. Choose again for 24 MB. Answer with two pairs (micro-batch, recompute).
# >
# > **练习 5.3。** 每步最多 8 个微批：能不重计算就不重计算，取能整除 32 且放得下的最大微批。再为 24 MB 选一次。答案为两对（微批，是否重计算）。

# %%
flags_5_3 = ...  # ((micro-batch, recompute) for 45 MB, the same for 24 MB)
check("5.3", flags_5_3)


# %%
def choose(budget, rows=32, most=8):
    """The flags that meet a budget of bytes: (micro-batch, recompute). Without recomputation comes first."""
    sizes = [size for size in range(rows, 0, -1) if rows % size == 0 and rows // size <= most]
    for recompute in (False, True):
        for size in sizes:
            shape = Shape(layers=6, hidden=192, batch=size, recompute=recompute)
            if activations(shape) <= budget:
                return shape
    raise ValueError(f"nothing fits into {budget} bytes")


for budget in (45_000_000, 24_000_000):
    shape = choose(budget)
    taken = measure(shape, 2)["activations"]
    print(f"micro-batch {shape.batch}, recompute {shape.recompute}: ", end="")
    print(f"measured {taken / 1e6:.1f} MB of {budget / 1e6:.0f}")
    assert taken <= budget
print("Chapter 5 is finished. 第 5 章完成。")
