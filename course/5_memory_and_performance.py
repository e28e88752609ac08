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
# ten percent, and you know what recomputation, ZeRO, overlap, pipelines and their bubbles cost and save. It takes about 60 minutes. You need
# chapter 1 and the structure of a transformer.
#
# **第 5 章 显存与性能：先预测，再测量，再选择。** 学完本章，你能在运行前算出所需内存，并用测量验证误差在 10% 以内；
# 你还会知道重计算、ZeRO、通信重叠、流水线及其气泡的代价与收益。约需 60 分钟。

# %% [markdown]
# ## 5.1 A result first
#
# The course's model, and its memory while it trains further. Without an NPU, the device named `cuda` is the host, and its memory statistics are
# real: they count the bytes that tensors hold. `measure` in [measuring.py](measuring.py) trains a few steps, and reads
# `torch.cuda.memory_allocated()` before and after each part of a step. A `Job` is what it trains: a shape of the model, and the rows and bytes of
# a micro-batch.
#
# **先看结果。** 本课程的模型继续训练时的内存。没有 NPU 时，名为 `cuda` 的设备就是本机，其内存统计是真实的张量字节数。
# [measuring.py](measuring.py) 中的 `measure` 训练若干步，并在每一步的各个阶段前后读取 `torch.cuda.memory_allocated()`；`Job` 描述训练任务：模型尺寸与微批。

# %%
import os

os.environ["MSADAPTER_DEVICE"] = "cuda"
import msadapter

msadapter.install()

import json
from dataclasses import replace

import torch
from lesson import HERE, base as pretrained, check, plot, toolkit, torchrun, work
from measuring import DEVICE, FLOAT, Job, batch, measure
from model import Block, Llama, Shape
from torch import nn
from torch.nn import functional as F

base = Job()
measured = measure(base, weights=pretrained())
for name in ("parameters", "gradients", "optimizer", "activations", "peak"):
    print(f"{name:12} {measured[name] / 2**20:8.2f} MiB")
print(f"a step takes {measured['seconds'] * 1000:.0f} ms; loss {measured['loss']:.2f}")
assert measured["loss"] < 2.5  # the weights of chapter 2 know the text

# %% [markdown]
# ## 5.2 What stays: parameters, gradients, optimizer
#
# A block with hidden size $h$, inner size $f$ and $g$ groups of $n$ heads has $2h^2$ weights for the queries and the output, $2h^2\,g/n$ for keys
# and values, $3hf$ in SwiGLU and $2h$ in its norms. In float32 with Adam each parameter costs 4 bytes, its gradient 4, and Adam's two moments 8:
# **16 bytes in all.**
#
# The memory pool does not give a tensor exactly the bytes that it asks for. It has two sizes for every power of two, $2^k$ and
# $1.5\cdot2^k$, and takes the next larger one, so that freed blocks fit again. A tensor of 2.25 MiB takes 3. So we count tensor by tensor.
# **Predict:** for which hidden sizes does that cost nothing?
#
# **常驻部分。** 每个块：查询与输出 $2h^2$，键与值 $2h^2g/n$，SwiGLU $3hf$，归一化 $2h$。float32 加 Adam 时，每个参数共占 16 字节。
#
# 内存池不会恰好给出所需的字节数：每个 2 的幂有两档大小（$2^k$ 与 $1.5\cdot2^k$），向上取整，以便释放的块可以再用。2.25 MiB 的张量占 3 MiB。
# 因此我们逐个张量计数。先猜：哪些隐藏维度不会浪费？


# %%
def sizes(shape):
    """The numbers of each parameter of the model."""
    h, f, narrow = shape.hidden, shape.inner, shape.groups * shape.head
    block = [h * h, narrow * h, narrow * h, h * h, f * h, f * h, f * h, h, h]
    return shape.layers * block + [shape.vocabulary * h, h, shape.vocabulary * h]


def pool(numbers):
    """The bytes that the memory pool takes for a float32 tensor of so many numbers: the next 2^k or 1.5 * 2^k."""
    size = 1 << max(numbers * FLOAT - 1, 1).bit_length()  # the power of two that is large enough
    return size * 3 // 4 if size * 3 // 4 >= numbers * FLOAT else size


def within(predicted, found, percent):
    print(
        f"predicted {predicted / 2**20:8.2f} MiB, measured {found / 2**20:8.2f} MiB, {100 * (predicted / found - 1):+.1f} %"
    )
    assert abs(predicted / found - 1) <= percent / 100


N = sum(sizes(base.shape))
held = sum(map(pool, sizes(base.shape)))
assert N == sum(p.numel() for p in Llama(base.shape).parameters()) == 131_648
print(f"{N} parameters, {N * FLOAT} bytes; in the pool {held} bytes")
within(held, measured["parameters"], 2)
within(held, measured["gradients"], 2)
within(2 * held, measured["optimizer"], 2)

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
# numbers (batch, sequence, hidden; here $f = 3h$, and the keys and values have half the heads). A hook on saved tensors tells.
#
# **激活值。** 反向传播需要前向的中间结果。先猜：一个块会保存哪些张量（以 $b\,s\,h$ 为单位，这里 $f=3h$，键与值的头数减半）？用保存张量的钩子来看。


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


x = torch.randn(base.batch, base.sequence, base.shape.hidden, device=DEVICE, requires_grad=True)
unit = x.numel() * FLOAT
found, result = kept(Block(base.shape).to(DEVICE), x)
for size, shape in sorted(found.values(), reverse=True):
    print(f"{size / unit:6.3f} units   {shape}")
total = sum(size for size, _ in found.values()) / unit
print(f"{total:.2f} units in all")
assert 18.9 < total < 19.4
del x, found, result

# %% [markdown]
# Nineteen: the inputs of the two norms (2) and their outputs, which the products need (2); the turned queries (1), the turned keys and the values
# (½ + ½) and the attention's output (1); in SwiGLU the gate, its silu, the up part and their product ($4 \cdot 3$). The attention keeps no matrix of
# $s \times s$: it computes by blocks and keeps one number for each row. The angles of the rotary positions and a number for each row of a norm
# are small. Around the blocks there are the last norm's input and output ($2\,b\,s\,h$), the logits and their softmax ($2\,b\,s\,V$).
#
# 共 19 个单位：两个归一化的输入（2）与输出（2）；旋转后的查询（1）、键与值（½ + ½）、注意力输出（1）；SwiGLU 的 gate、silu、up 与乘积（12）。
# 注意力按块计算，不保存 $s\times s$ 的矩阵。块之外还有最后的归一化（$2\,b\,s\,h$）、logits 及其 softmax（$2\,b\,s\,V$）。


# %%
def block_keeps(job):
    """The bytes that one block keeps for its backward pass, tensor by tensor."""
    shape, tokens = job.shape, job.batch * job.sequence
    wide = 6 * pool(tokens * shape.hidden) + 2 * pool(tokens * shape.groups * shape.head)
    small = pool(tokens * shape.heads) + 2 * pool(tokens) + 4 * pool(job.sequence * shape.head)
    return wide + 4 * pool(tokens * shape.inner) + small


def activations(job):
    """The bytes that wait for the backward pass."""
    tokens = job.batch * job.sequence
    rows = pool(tokens * job.shape.hidden)
    around = 2 * rows + 2 * pool(tokens * job.shape.vocabulary)
    return job.shape.layers * (rows if job.shape.recompute else block_keeps(job)) + around


within(activations(base), measured["activations"], 3)
wide = Job(Shape(layers=4, hidden=192, inner=512, heads=6, groups=3), batch=8)
for changed in (replace(base, batch=32), replace(base, sequence=256, batch=4), wide):
    print(changed, end="\n    ")
    within(activations(changed), measure(changed, 2)["activations"], 3)

# %% [markdown]
# ## 5.4 Recompute, and the peak
#
# With recomputation, a block keeps its input only (1 unit in place of 19) and computes the rest again in the backward pass: one more forward pass,
# which is about a third of the step's work.
#
# What counts in the end is the *peak*. Parameters and moments are there all the time (12 bytes for each parameter). On top of them comes the worst
# moment. It may be the beginning of the backward pass, with all activations and the gradient of the logits. Or it is the backward pass of
# some block: with recomputation its tensors are there again, two gradients of the width $f$ are under way in its SwiGLU, and the parameters
# behind it have their gradients. **Predict:** which is it without recomputation, and which with it?
#
# **重计算与峰值。** 重计算时每个块只保存输入（1 个单位而非 19 个），反向时重算，代价约为一次前向，即整步的三分之一。
# 最终要看**峰值**。参数与动量（每个参数 12 字节）始终存在，再加上最坏的时刻：可能是反向开始时（全部激活值与 logits 的梯度），
# 也可能是某个块的反向：重计算时该块的张量又全部存在，SwiGLU 中有两个宽度为 $f$ 的梯度，而它之后的参数已有梯度。先猜：有无重计算时各是哪一个？


# %%
def peak(job):
    """The most bytes that a training step holds at once."""
    tokens, shape = job.batch * job.sequence, job.shape
    row, wide = pool(tokens * shape.hidden), pool(tokens * shape.inner)
    held = [pool(size) for size in sizes(shape)]
    of_block, of_head = (
        sum(held[:9]),
        held[-1] + held[-2],
    )  # the gradients of a block, and of what is behind the blocks
    moments = [activations(job) + pool(tokens * shape.vocabulary)]  # the backward pass begins
    for left in range(shape.layers, 0, -1):  # the backward pass of this block
        waiting = left * row + block_keeps(job) if shape.recompute else left * block_keeps(job)
        gradients = of_head + (shape.layers - left) * of_block
        moments.append(waiting + 2 * wide + gradients)  # two gradients are under way in SwiGLU
    return 3 * sum(held) + max(moments)


cheap = replace(base, shape=replace(base.shape, recompute=True))
for job in (base, cheap, wide, replace(wide, shape=replace(wide.shape, recompute=True))):
    found = measure(job)
    print(f"recompute {job.shape.recompute!s:5}", end=" ")
    within(peak(job), found["peak"], 10)
    if job is cheap:
        with_recompute = found
within(activations(cheap), with_recompute["activations"], 10)
print(f"time {measured['seconds'] * 1000:.0f} -> {with_recompute['seconds'] * 1000:.0f} ms")
assert with_recompute["activations"] < measured["activations"] / 2

# %% [markdown]
# Are the gradients the same? Bit for bit: the same operators compute the same numbers again.
#
# 梯度是否相同？逐位相同：同样的算子再次计算同样的数。


# %%
def gradient(job):
    torch.manual_seed(0)
    model = Llama(job.shape).to(DEVICE)
    ids, labels = batch(job, torch.Generator().manual_seed(0))
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
# Two processes train the course's model without ZeRO, with stage 1 (`ZeroRedundancyOptimizer`) and with stage 3 (`fully_shard`).
#
# **ZeRO：每个进程只保存一部分。** $d$ 个数据并行进程保存着相同的参数、梯度与动量；ZeRO 把它们切分：
#
# | 阶段 | 切分内容 | 每个参数、每个进程的字节数 |
# |---|---|---|
# | 无 | | $4+4+8 = 16$ |
# | 1（分布式优化器） | 动量 | $4+4+8/d$ |
# | 2 | 以及梯度 | $4+4/d+8/d$ |
# | 3（FSDP） | 以及参数 | $16/d$ |
#
# 下面用两个进程训练本课程的模型：不用 ZeRO、第 1 阶段、第 3 阶段。


# %%
def on_two(way):
    """Runs programs/data_parallel.py on two processes. Returns what each rank printed."""
    told = torchrun(2, HERE / "programs/data_parallel.py", way, folder=work(5))
    return [json.loads(line) for line in sorted(told.splitlines()) if line.startswith("{")]


formula = {"all": 4 + 4 + 8, "moments": 4 + 4 + 8 / 2, "sharded": 16 / 2}
for way, wanted in formula.items():
    ranks = on_two(way)
    each = [FLOAT * (r["parameters"] + r["gradients"] + r["moments"]) / N for r in ranks]
    print(f"{way:8} {[round(b, 2) for b in each]} bytes per parameter on the two ranks, formula {wanted}")
    assert len(each) == 2 and all(abs(b / wanted - 1) < 0.02 for b in each)

# %% [markdown]
# ## 5.6 Overlap: exchange while computing
#
# Data-parallel ranks must add up their gradients. Those of the last layer are ready first. If their exchange begins at once, it runs beside the rest
# of the backward pass; what is left after the end of the backward pass is the *exposed* communication. Let each of eight layers take 3 units of time
# backward and 2 for its exchange. **Predict:** how long does the whole take with and without overlap? And if the exchange takes 4?
#
# **通信重叠。** 数据并行需要把梯度相加。最后一层的梯度最先就绪，若立即开始通信，它就与其余反向计算同时进行；反向结束后还剩下的部分称为**暴露的**通信。
# 设 8 层，每层反向 3 个单位时间、通信 2 个单位。先猜：有无重叠各需多久？若通信需要 4 个单位呢？


# %%
def timeline(layers, compute, exchange, overlap):
    """When each exchange begins and ends: a list of (begin, end)."""
    free, bars = 0.0, []
    for n in range(layers):
        ready = (n + 1) * compute if overlap else layers * compute
        begin = max(ready, free)
        free = begin + exchange
        bars.append((begin, free))
    return bars


pyplot = plot()
for row, (exchange, overlap) in enumerate(((2, False), (2, True), (4, True))):
    bars = timeline(8, 3, exchange, overlap)
    end = bars[-1][1]
    print(f"exchange {exchange}, overlap {overlap!s:5}: {end:.0f} units, of which {end - 24:.0f} are exposed")
    pyplot.broken_barh([(3 * n, 2.8) for n in range(8)], (2 * row, 0.8), color="tab:blue")
    pyplot.broken_barh([(a, b - a - 0.2) for a, b in bars], (2 * row + 0.8, 0.8), color="tab:orange")
pyplot.yticks([0.8, 2.8, 4.8], ["2, no overlap", "2, overlap", "4, overlap"])
pyplot.xlabel("time (blue: backward, orange: exchange)")
pyplot.show()
assert timeline(8, 3, 2, False)[-1][1] == 8 * 3 + 8 * 2
assert timeline(8, 3, 2, True)[-1][1] == 8 * 3 + 2  # only the last exchange is exposed
assert timeline(8, 3, 4, True)[-1][1] == 3 + 8 * 4  # now the exchanges are what takes time

# %% [markdown]
# And for real, on two processes: hooks begin an exchange as soon as a gradient is there (some ten lines in
# [programs/data_parallel.py](programs/data_parallel.py)). The result is the one of exchanges after the backward pass, and the one of PyTorch's
# `DistributedDataParallel`, which puts small gradients together into buckets. In a Megatron run the key is `overlap.gradients`.
#
# 在两个进程上实际运行：每个梯度一就绪就由钩子发起通信，结果与反向之后再通信、以及 `DistributedDataParallel` 的结果相同。

# %%
ways = {way: on_two(way) for way in ("waits", "overlaps", "ddp")}
for way in ("waits", "overlaps"):
    told = ways[way][0]
    print(f"{way:8} {told['early']} of {told['exchanges']} exchanges began during the backward pass")
sums = {round(told["gradient"], 6) for ranks in ways.values() for told in ranks}
print("the sum of the gradient on all ranks, in all three ways:", sums)
assert ways["waits"][0]["early"] == 0 and ways["overlaps"][0]["early"] == 21
totals = [told["gradient"] for ranks in ways.values() for told in ranks]
assert max(totals) / min(totals) - 1 < 1e-6

# %% [markdown]
# ## 5.7 Pipelines and their bubbles
#
# With $p$ stages and $m$ micro-batches, the first and the last stage wait while the pipeline fills and drains. Let a stage's forward take one
# unit of time and its backward two. In the schedule *1F1B* each stage first does $p - i - 1$ forwards, then one forward and one backward in turn,
# then the backwards that are left.
#
# A *virtual* pipeline gives each stage $v$ parts of the model, which lie apart: with $p = v = 2$ the first stage has the first and the third quarter. A
# micro-batch goes round $v$ times, in steps that are $v$ times as short, so filling and draining are shorter too. The code below plays both, in
# the order of Megatron-LM's interleaved schedule.
#
# **流水线与气泡。** 1F1B：第 $i$ 级先做 $p-i-1$ 次前向，然后前向、反向交替，最后做剩余的反向。**虚拟流水线**给每级 $v$ 段不相邻的模型，
# 微批绕行 $v$ 圈，每步时间缩短为 $1/v$，填充和排空也随之变短。下面的代码按 Megatron-LM 的交错顺序模拟两者。


# %%
def tasks(p, m, v, i):
    """What stage i does, in order: ("F" or "B", part of the model, micro-batch)."""

    def number(k, backward):
        rounds, within_round = divmod(k, p * v)
        part = within_round // p
        return v - 1 - part if backward else part, rounds * p + within_round % p

    count = m * v
    warm = min(count, p - i - 1 if v == 1 else 2 * (p - i - 1) + (v - 1) * p)
    order = [("F", k) for k in range(warm)]
    for k in range(count - warm):
        order += [("F", warm + k), ("B", k)]
    order += [("B", k) for k in range(count - warm, count)]
    return [(kind, *(number(k, kind == "B") if v > 1 else (0, k))) for kind, k in order]


def play(p, m, v=1):
    """Plays the schedule. Returns the waiting time of a stage as a share of its work, and the bars of each stage."""
    waiting, free, ends = [tasks(p, m, v, i) for i in range(p)], [0.0] * p, {}
    bars = [[] for _ in range(p)]

    def needs(kind, part, i, micro):
        """The task whose result this one waits for; None if there is none."""
        place = part * p + i  # the position in the whole model
        if kind == "F":
            return None if place == 0 else ("F", place - 1, micro)
        return ("F", place, micro) if place == p * v - 1 else ("B", place + 1, micro)

    while any(waiting):
        moved = False
        for i in range(p):
            if waiting[i]:
                kind, part, micro = waiting[i][0]
                needed = needs(kind, part, i, micro)
                if needed is None or needed in ends:
                    begin = max(free[i], ends.get(needed, 0.0))
                    free[i] = begin + (1 if kind == "F" else 2) / v
                    ends[kind, part * p + i, micro] = free[i]
                    bars[i].append((kind, begin, free[i] - begin))
                    waiting[i].pop(0)
                    moved = True
        assert moved, "the stages wait for one another"
    return max(free) / (3 * m) - 1, bars


for p, m, v in ((2, 4, 1), (4, 4, 1), (4, 8, 1), (4, 16, 1), (2, 4, 2), (4, 8, 2), (4, 8, 4)):
    played, formula = play(p, m, v)[0], (p - 1) / (v * m)
    print(f"p={p}, m={m:2}, v={v}: played {played:.3f}, formula (p-1)/(v m) = {formula:.3f}")
    assert abs(played - formula) < 1e-9
figure, axes = pyplot.subplots(2, 1, figsize=(6, 4), sharex=True)
for axis, v in zip(axes, (1, 2), strict=True):
    for i, stage in enumerate(play(4, 8, v)[1]):
        for kind, color in (("F", "tab:blue"), ("B", "tab:orange")):
            axis.broken_barh([(b, d - 0.05) for k, b, d in stage if k == kind], (-i, 0.8), color=color)
    axis.set_ylabel(f"stages, v = {v}")
    axis.set_yticks([])
axes[1].set_xlabel("time (blue: forward, orange: backward)")
pyplot.show()

# %% [markdown]
# The bubble is $\frac{p-1}{v\,m}$ of the work. A virtual pipeline pays with $v$ times as many messages, and with activations of more micro-batches.
#
# 气泡占计算量的 $\frac{p-1}{v\,m}$。虚拟流水线的代价是 $v$ 倍的通信次数，以及更多微批的激活值。
#
# > **Exercise 5.2.** Four stages, eight micro-batches, two parts for each stage. Which share of the work is the bubble?
# >
# > **练习 5.2。** 4 级、8 个微批次、每级 2 段，气泡占计算量的比例是多少？

# %%
share_5_2 = ...
check("5.2", share_5_2)

# %% [markdown]
# ## 5.8 A dry run, and the planner
#
# On the device `meta` a model has shapes and no memory. So a laptop can ask what a large one would take: here Llama 2 with 7 billion parameters, which
# is the course's model in other sizes.
#
# **空跑与规划器。** 在 `meta` 设备上，模型只有形状而不占内存，笔记本电脑也能询问大模型需要多少。这里是 Llama 2 7B，即本课程模型的另一种尺寸。

# %%
large = Job(Shape(layers=32, hidden=4096, inner=11008, heads=32, groups=32, vocabulary=32000), 1, 4096)
before = torch.cuda.memory_allocated()
with torch.device("meta"):
    model = Llama(large.shape)
    logits = model(torch.zeros(1, 4096, dtype=torch.int64))
count = sum(p.numel() for p in model.parameters())
assert count == sum(sizes(large.shape)) and logits.shape == (1, 4096, 32000)
assert torch.cuda.memory_allocated() - before < 2**20
print(f"{count / 1e9:.3f} billion parameters; model, gradients, moments: {16 * count / 1e9:.1f} GB")

# %% [markdown]
# The toolkit's `plan` does this for Megatron's own layers, with tensor, pipeline, data and expert parallelism, and estimates the time of a step. It must
# agree, where both count the same. **Predict:** Megatron keeps the output of its one matrix for queries, keys and values, because the values are a
# view of it, beside the turned queries and keys; and `plan` counts the gradient of the logits. How many numbers more is that?
#
# 工具集的 `plan` 针对 Megatron 自己的层做同样的事。先猜：Megatron 会保留 q/k/v 合并矩阵的输出（值是它的视图），再加上旋转后的查询与键；
# `plan` 还计入 logits 的梯度。一共多出多少个数？

# %%
(work(5) / "large.yaml").write_text(
    "recipe: llama2-7b\nrun: {processes: 1}\nparallel: {tensor: 1}\n"
    "train: {iterations: 1, micro_batch: 1, global_batch: 1, hidden_dropout: 0.0}\n"
    "dataset: {sequence_length: 4096}\nupstream: {use_flash_attn: true}\n"
)
told = toolkit(work(5), "plan", "large.yaml")
print(told)
_, planned_count, weights, gradients, moments, planned, _ = told.split("all, GB\n")[1].split("\n")[0].split()
numbers = (
    32 * (6 * 4096 + 2 * 4096 + 4 * 11008 + 32 + 2) + 2 * 4096 + 2 * 32000
)  # 5.3, without the sizes of the pool
ours = FLOAT * 4096 * numbers
more = FLOAT * 4096 * (32 * 2 * 4096 + 32000)
print(f"activations: ours {ours / 1e9:.2f} GB, and {more / 1e9:.2f} that only plan counts; plan {planned} GB")
assert int(planned_count) == count
assert abs(float(weights) + float(gradients) + float(moments) - 16 * count / 1e9) < 0.05
assert abs((ours + more) / 1e9 / float(planned) - 1) < 0.01

# %% [markdown]
# ## 5.9 What an NPU is asked to do
#
# On an NPU every operator is a launch of CANN, with a name that begins with `aclnn`. The **simulated** NPU counts them: MindSpore's own Ascend
# plugin runs, over stand-ins for CANN's libraries. [programs/step.py](programs/step.py) trains the course's model for two steps; below are the launches of the
# second, as recorded by `python course/answers/npu.py`. **Predict:** the model has 15 linear layers without a bias. Its attention has no fused
# kernel there: it multiplies queries by keys, and their softmax by values, in both layers. How many products of matrices does a step take? And how
# many launches does the optimizer make for 21 parameters?
#
# **NPU 上的算子。** 在 NPU 上，每个算子都是一次名为 `aclnn...` 的下发。**模拟的** NPU 会计数：运行的是 MindSpore 自己的昇腾插件，CANN 的库由替身代替。
# 下面是本课程模型一步训练的下发记录。先猜：模型有 15 个无偏置的线性层；这里的注意力没有融合内核（两层各两个矩阵乘）。
# 一步要做多少次矩阵乘？优化器为 21 个参数下发多少次？

# %%
recorded = json.loads((HERE / "answers/npu_operators.json").read_text())
print(recorded["origin"])
launches = recorded["operators"]
for name, count in sorted(launches.items(), key=lambda entry: -entry[1]):
    print(f"{count:4d} x {name}")
products = launches["aclnnMatmul"] + launches["aclnnMm"]
linear = sum(isinstance(module, nn.Linear) for module in Llama().modules())
layers = base.shape.layers
print(
    f"{products} products: 3 for each of {linear} linear layers, and 6 for the attention of each of {layers} layers"
)
assert linear == 15 and products == 3 * linear + 6 * layers  # a product forward needs two backward
assert launches["aclnnApplyAdamWV2"] == len(list(Llama().parameters()))
losses = torch.tensor(recorded["losses"])
torch.manual_seed(0)
model = Llama()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(256, (8, 65))
here = []
for _ in range(2):
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    here.append(loss.item())
print("losses: simulated NPU", losses.tolist(), "this machine", here)
assert torch.allclose(losses, torch.tensor(here), atol=1e-3)

# %% [markdown]
# ## 5.10 Where does the time go?
#
# The profiler's table names the operators by their own time, and the trace can be opened at `chrome://tracing` or ui.perfetto.dev.
#
# **时间花在哪里？** 性能分析器按算子自身耗时列表，并可导出 Chrome 跟踪文件。

# %%
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = Llama(base.shape).to(DEVICE)
ids, labels = batch(base, torch.Generator().manual_seed(0))
for _ in range(2):  # the first step sets things up
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        F.cross_entropy(model(ids).flatten(0, 1), labels.flatten()).backward()
recorded.export_chrome_trace(str(work(5) / "trace.json"))
rows = sorted(recorded.key_averages(), key=lambda row: -row.self_cpu_time_total)
whole = sum(row.self_cpu_time_total for row in rows)
for row in rows[:8]:
    print(f"{row.self_cpu_time_total / whole:5.0%}  {row.count:4d} x {row.key}")
assert sum(row.count for row in rows if row.key == "aten::linear") == linear

# %% [markdown]
# A row near the top is called `UnsafeViewBackward0`. Does a view take so much time? The trace itself tells. It is JSON: a list of events, each with a
# name, a beginning and a duration in microseconds. **Predict:** how many events have that name, and how long does a real view
# (`ViewBackward0`) take?
#
# 排在前面的一行名为 `UnsafeViewBackward0`。改变形状真的这么耗时吗？跟踪文件是 JSON：每个事件有名称、开始时间和持续时间（微秒）。直接读它。

# %%
events = json.loads((work(5) / "trace.json").read_text())["traceEvents"]


def durations(name):
    """How long each event of a name took, in milliseconds."""
    return [event["dur"] / 1000 for event in events if event["name"] == name]


for name in ("UnsafeViewBackward0", "ViewBackward0"):
    took = durations(name)
    print(f"{name:20} {len(took):3d} events, {sum(took):8.3f} ms, the longest {max(took):.3f} ms")
assert len(durations("UnsafeViewBackward0")) == linear
assert sum(durations("ViewBackward0")) < sum(durations("UnsafeViewBackward0")) / 10

x = torch.ones(2, 3, 8)
for layer, rows in ((nn.Linear(8, 8, bias=False), x), (nn.Linear(8, 8), x), (nn.Linear(8, 8), x[0])):
    shown = f"bias {layer.bias is not None!s:5}, {rows.dim()} dimensions"
    print(f"a linear layer, {shown}: {type(layer(rows).grad_fn).__name__}")

# %% [markdown]
# So the name is PyTorch's, and the work is not a view's. PyTorch computes a linear layer without a bias on a tensor of three dimensions as
# `view`, `mm`, `_unsafe_view`, and names the result after the last of them. Here one operator does all three, and its backward, two products of
# matrices, stands under the same name. The 15 events are the 15 linear layers; the real views take next to nothing. What would make this row
# smaller is a faster product of matrices, not fewer views.
#
# 名字沿用 PyTorch：无偏置的线性层在三维输入上最后一步是 `_unsafe_view`，节点因此得名；这里一个算子完成全部工作，其反向（两个矩阵乘）也记在这个名字下。
# 15 个事件正是 15 个线性层，真正的 view 几乎不花时间。要让这一行变小，应优化矩阵乘，而不是减少 view。

# %% [markdown]
# > **On Ascend.** `python -m msadapter --simulated-npu program.py` runs a program on a **simulated** NPU: the operators that it launches are what a
# > card would be asked for, its speed is not, and a kernel's own workspace is not counted. [The operators of a training step](../docs/ascend.md).
# > Nothing of this chapter has run on a card yet.
# >
# > **在昇腾上。** `python -m msadapter --simulated-npu program.py` 在**模拟的** NPU 上运行程序：下发的算子与真实卡一致，速度则不是，
# > 内核自身的工作区也不计入。本章内容尚未在真实加速卡上运行过。

# %% [markdown]
# ## 5.11 Meet a budget
#
# A step must see 32 rows of 128 bytes with `Shape(layers=6, hidden=192, inner=576, heads=6, groups=3)`, and the *peak* may be 160 MB
# ($160\cdot10^6$ bytes). You have two flags: the *micro-batch* (the rows that are computed at once; gradients of several micro-batches are added) and
# *recompute*, which costs a third of the work.
#
# **满足内存预算。** 每步 32 行，峰值上限 160 MB。可选的开关：微批大小（梯度累加）与重计算（多花三分之一的计算）。
#
# > **Exercise 5.3.** A pipeline behind it asks for at most eight micro-batches a step. Choose the flags: recompute only if you must, and the
# > largest micro-batch that fits and divides 32. Use `peak`. Choose again for 90 MB. Answer with two pairs (micro-batch, recompute).
# >
# > **练习 5.3。** 每步最多 8 个微批：能不重计算就不重计算，取能整除 32 且放得下的最大微批（用 `peak` 计算）。再为 90 MB 选一次。答案为两对（微批，是否重计算）。

# %%
flags_5_3 = ...  # ((micro-batch, recompute) for 160 MB, the same for 90 MB)
check("5.3", flags_5_3)


# %%
def choose(budget, rows=32, most=8):
    """The job that meets a budget of bytes. Without recomputation comes first."""
    sizes = [size for size in range(rows, 0, -1) if rows % size == 0 and rows // size <= most]
    for recompute in (False, True):
        for size in sizes:
            shape = Shape(layers=6, hidden=192, inner=576, heads=6, groups=3, recompute=recompute)
            if peak(Job(shape, size)) <= budget:
                return Job(shape, size)
    raise ValueError(f"nothing fits into {budget} bytes")


for budget in (160_000_000, 90_000_000):
    job = choose(budget)
    taken = measure(job, 2)["peak"]
    print(f"micro-batch {job.batch}, recompute {job.shape.recompute}: ", end="")
    print(f"measured {taken / 1e6:.1f} MB of {budget / 1e6:.0f}")
    assert taken <= budget
print("Chapter 5 is finished. 第 5 章完成。")
