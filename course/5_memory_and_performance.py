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
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import torch
from lesson import FAST, check, corpus, plot, work
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
# keeps one number for each row. Around the blocks there are the logits and their softmax: about $3\,b\,s\,V$ numbers.
#
# 共 16 个单位：两个归一化的输入与输出（4）、q/k/v（3）、注意力输出（1）、GELU 与最后一个矩阵乘的输入（8）。注意力按块计算，不保存
# $s\times s$ 的矩阵。块之外还有 logits 及其 softmax。


# %%
def activations(shape):
    b, s, h = shape.batch, shape.sequence, shape.hidden
    block = (16 * h + shape.heads + 4) * b * s
    kept_blocks = shape.layers * (b * s * h if shape.recompute else block)
    return (kept_blocks + 2 * b * s * h + 2 * b * s * shape.vocabulary) * FLOAT


within(activations(base), measured["activations"], 10)
for changed in (
    replace(base, batch=16),
    replace(base, sequence=256, batch=4),
    replace(base, layers=6, hidden=192),
):
    print(changed, end="\n    ")
    within(activations(changed), measure(changed, 2)["activations"], 10)

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
within(activations(cheap), with_recompute["activations"], 10)
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
# > **On Ascend.** `python -m msadapter --simulated-npu program.py` runs a program on a **simulated** NPU: its memory statistics and the operators
# > that it launches are what a card would have, its speed is not. [The operators of a training step](../docs/ascend.md). Nothing of this
# > chapter has run on a card yet.
# >
# > **在昇腾上。** `python -m msadapter --simulated-npu program.py` 在**模拟的** NPU 上运行程序：内存统计和下发的算子与真实卡一致，速度则不是。
# > 本章内容尚未在真实加速卡上运行过。

# %% [markdown]
# ## 5.9 Meet a budget
#
# > **Exercise 5.3.** The shape is `Shape(layers=6, hidden=192, batch=...)` and the activations may take 45 MB ($45\cdot10^6$ bytes). Which is the largest batch without
# > recomputation, and which with it? Answer with a pair, from the formula.
# >
# > **练习 5.3。** 激活值上限 45 MB：不用与使用重计算时，最大批大小各是多少？

# %%
batches_5_3 = ...  # (without, with)
check("5.3", batches_5_3)

# %%
budget = 45_000_000
shape = Shape(layers=6, hidden=192)
best = {}
for recompute in (False, True):
    sizes = [b for b in range(1, 200) if activations(replace(shape, batch=b, recompute=recompute)) <= budget]
    best[recompute] = max(sizes)
    if not FAST or not recompute:
        taken = measure(replace(shape, batch=best[recompute], recompute=recompute), 2)["activations"]
        print(f"recompute {recompute}: batch {best[recompute]}, measured {taken / 1e6:.1f} MB of 45")
        assert 0.85 * budget < taken < 1.05 * budget
assert best[True] > 3 * best[False]
print("Chapter 5 is finished. 第 5 章完成。")
