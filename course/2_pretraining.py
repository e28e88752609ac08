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
# # 2. Pretraining: from a text to a model on several ranks
#
# At the end of this chapter you have written Megatron's binary data format by hand, blended two sources, trained the course's model with Megatron
# Core on one process and on two in three ways, seen that the losses agree, killed and resumed a run without a trace, and pretrained the
# weights from which the next chapters go on. It takes about 60 minutes. You need chapter 1.
#
# **第 2 章 预训练：从文本到多进程训练。** 学完本章，你会亲手写出 Megatron 的二进制数据格式、混合两个数据源，
# 用一个进程以及三种双进程方式训练本课程的模型（Megatron Core）并看到损失一致，中断再恢复训练而不留痕迹，
# 并预训练出后续章节使用的权重。约需 60 分钟。

# %% [markdown]
# ## 2.1 A result first
#
# One YAML file, one command: the toolkit makes a data set of four plays of Shakespeare.
#
# **先看结果。** 一个 YAML 文件、一条命令：由莎士比亚的四部剧本生成数据集。

# %%
import shutil
from pathlib import Path

import msadapter

msadapter.install()

import json
import struct

import numpy
import torch
from lesson import FAST, HERE, ROOT, check, corpus, plot, toolkit, torchrun, work
from model import END, Llama, from_megatron, ids_of, write
from torch.nn import functional as F

folder = work(2)
for name in ("data", "runs"):
    shutil.rmtree(folder / name, ignore_errors=True)
(folder / "data").mkdir()
speeches = corpus().split("\n\n")
half = len(speeches) // 2
for name, part in (("tragedies", speeches[:half]), ("more", speeches[half:])):
    lines = (json.dumps({"text": speech}) for speech in part[: 300 if FAST else 2000])
    (folder / f"data/{name}.jsonl").write_text("\n".join(lines) + "\n")
(folder / "data.yaml").write_text(
    """\
data:
  sources:
    - {path: data/tragedies.jsonl, weight: 0.7, name: tragedies}
    - {path: data/more.jsonl, weight: 0.3, name: more}
  tokenizer: bytes
  output: data/set
"""
)
print(toolkit(folder, "data", "data.yaml"))

# %% [markdown]
# ## 2.2 The format by hand
#
# `PREFIX.bin` holds the ids of all documents, one after the other. `PREFIX.idx` says where each begins: a header, then the lengths, the offsets in
# bytes, and the borders of documents. That is all; let us write it.
#
# **亲手写数据格式。** `.bin` 依次存放所有文档的 token；`.idx` 先是文件头，然后是每个文档的长度、字节偏移和文档边界。仅此而已，我们来写它。


# %%
def write_indexed(prefix, documents):
    """Writes the ids of documents as Megatron's MMapIndexedDataset, in 16-bit numbers."""
    lengths = numpy.array([len(ids) for ids in documents], numpy.int32)
    offsets = numpy.concatenate([[0], numpy.cumsum(lengths[:-1], dtype=numpy.int64) * 2]).astype(numpy.int64)
    with open(f"{prefix}.bin", "wb") as file:
        for ids in documents:
            file.write(numpy.array(ids, numpy.uint16).tobytes())
    with open(f"{prefix}.idx", "wb") as file:
        file.write(
            b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, 8)
        )  # the magic, version 1, and code 8 for uint16
        file.write(struct.pack("<QQ", len(lengths), len(lengths) + 1))
        file.write(
            lengths.tobytes()
            + offsets.tobytes()
            + numpy.arange(len(lengths) + 1, dtype=numpy.int64).tobytes()
        )


made = sorted((folder / "data").glob("set*tragedies*.idx"))[0].with_suffix("")
texts = [json.loads(line)["text"] for line in (folder / "data/tragedies.jsonl").read_text().splitlines()]
# The tokenizer `bytes` has the 256 bytes and an end token, which is the course's END.
write_indexed(folder / "data/mine", [[*ids_of(text), END] for text in texts])
for suffix in (".bin", ".idx"):
    mine, theirs = (folder / f"data/mine{suffix}").read_bytes(), Path(f"{made}{suffix}").read_bytes()
    print(f"{suffix}: {len(mine)} bytes, {'equal' if mine == theirs else 'different'}")
    assert mine == theirs

# %% [markdown]
# > **Exercise 2.1.** A data set in 32-bit numbers has documents of 5, 2 and 4 ids. At which byte of the `.bin` file does each begin?
# >
# > **练习 2.1。** 32 位编号，三个文档长度为 5、2、4：各自从 `.bin` 的第几个字节开始？

# %%
offsets_2_1 = ...  # [?, ?, ?]
check("2.1", offsets_2_1)

# %% [markdown]
# ## 2.3 Blending by hand
#
# With weights 0.7 and 0.3, which source gives the next sample? Megatron's rule: the one that is furthest behind its share.
# **Predict before you run:** the first five sources.
#
# **亲手混合数据。** 权重 0.7 与 0.3 时，下一个样本来自哪里？Megatron 的规则：取落后于其份额最多的来源。先猜前五个。


# %%
def blend(weights, count):
    """The number of the source of each sample."""
    taken, chosen = [0] * len(weights), []
    for n in range(count):
        behind = [w * max(n, 1) - t for w, t in zip(weights, taken, strict=True)]
        source = behind.index(max(behind))
        taken[source] += 1
        chosen.append(source)
    return chosen


from megatron_ms.data.blending import (
    blending_index,
)  # equal to Megatron's C++ helper, which a test of the project shows

by_hand = blend([0.7, 0.3], 1000)
library, places = blending_index([0.7, 0.3], 1000)
print(by_hand[:10], "share of the first:", by_hand.count(0) / 1000)
assert by_hand == library.tolist()

# %% [markdown]
# ## 2.4 One file, three levels
#
# A training is described by one YAML file. There are three levels, each with a template: *basic* has what every run needs, *high* adds
# checkpoints and monitoring, and *advanced* recomputation, overlap, recovery and upstream's own flags. Which keys does each level add?
#
# **一个文件，三个层级。** 基础层（数据、模型、并行、超参数）、高级层（保存与监控）、进阶层（重计算、重叠、恢复、上游参数）。每一层增加了哪些键？

# %%
import yaml


def flat(content, before=""):
    """The keys of a file in one line each: {"train.lr": value}."""
    found = {}
    for key, value in content.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


known = set()
for level in ("basic", "high", "advanced"):
    keys = flat(yaml.safe_load((ROOT / f"megatron_ms/config/templates/{level}.yaml").read_text()))
    print(
        f"{level}:",
        ", ".join(f"{key}={value}" for key, value in keys.items() if key not in known),
        end="\n\n",
    )
    known |= set(keys)

# %% [markdown]
# A value comes from the recipe of the model, from your file above it, and from `KEY=VALUE` on the command line above both. Mistakes are found
# before anything runs, and named by file and key. `plan` says what a run would take. **Predict:** which of the columns does a key of the
# advanced level, `recompute`, change, and in which direction?
#
# 取值的优先级：配方 < 你的文件 < 命令行 `KEY=VALUE`。错误会在运行前按文件和键名报告；`plan` 预估内存与时间。
# 先猜：进阶层的 `recompute` 会改变哪一列？

# %%
(folder / "run.yaml").write_text(
    "recipe: qwen2.5-0.5b\nrun: {processes: 2}\nparallel: {tensor: 2}\n"
    "train: {iterations: 100, micro_batch: 1, global_batch: 8}\ndataset: {sequence_length: 1024}\n"
)
print(toolkit(folder, "plan", "run.yaml", "run.processes=3", expect=2))
plans = [toolkit(folder, "plan", "run.yaml")]
advanced = ("recompute.granularity=full", "recompute.method=uniform", "recompute.layers=1")
plans.append(toolkit(folder, "plan", "run.yaml", *advanced))
for told in plans:
    print(told)
activations, tokens = zip(
    *((float(told.split("\n    0 ")[1].split()[4]), int(told.split("%), ")[1].split()[0])) for told in plans),
    strict=True,
)
assert activations[1] < activations[0] / 2 and tokens[1] < tokens[0]

# %% [markdown]
# ## 2.5 Parallelism by hand
#
# **Tensor parallel.** A rank holds half of the *columns* of the first weight and half of the *rows* of the second. Between them nothing is
# exchanged, because GELU works on each number by itself; at the end the halves are added (one all-reduce).
#
# **张量并行。** 第一个权重按列切分、第二个按行切分；中间无需通信（GELU 逐元素计算），最后把两半相加一次（all-reduce）。

# %%
torch.manual_seed(0)
x, first, second = torch.randn(3, 8), torch.randn(8, 16), torch.randn(16, 8)
whole = F.gelu(x @ first) @ second
halves = [F.gelu(x @ a) @ b for a, b in zip(first.chunk(2, 1), second.chunk(2, 0), strict=True)]
print("largest difference", (sum(halves) - whole).abs().max().item())
assert torch.allclose(sum(halves), whole, atol=1e-5)

# %% [markdown]
# **Data parallel.** Each rank has half of the rows; the mean of the gradients is the gradient of the whole batch, if the losses are means over the
# same number of rows.
#
# **数据并行**：各进程梯度的平均就是整批的梯度（各进程行数相同）。


# %%
def gradient(rows):
    weight = first.clone().requires_grad_()
    F.gelu(rows @ weight).square().mean().backward()
    return weight.grad


rows = torch.randn(8, 8)
assert torch.allclose(gradient(rows), (gradient(rows[:4]) + gradient(rows[4:])) / 2, atol=1e-6)

# %% [markdown]
# **Pipeline parallel.** The first rank has the embedding and the first layer of the course's model, the second rank the rest. What passes between them
# is one tensor each way: the hidden states forward, their gradient backward. Micro-batches follow one another, and their gradients are added.
#
# **流水线并行**：第一级有词嵌入和第一层，第二级有其余部分。两级之间只传两个张量：前向传隐藏状态，反向传它的梯度。各微批的梯度相加。

# %%
torch.manual_seed(0)
model = Llama()
ids = torch.tensor([ids_of(speech[:33]) for speech in speeches if len(speech) > 40][:8])


def stage1(ids):
    return model.model.layers[0](model.model.embed_tokens(ids))


def stage2(hidden, labels):
    return F.cross_entropy(model.lm_head(model.model.norm(model.model.layers[1](hidden))).mT, labels)


F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:]).backward()
whole = {name: p.grad.clone() for name, p in model.named_parameters()}

model.zero_grad()
for rows in ids.split(2):  # four micro-batches
    sent = stage1(rows[:, :-1])
    received = sent.detach().requires_grad_()  # on another rank it has no history
    (stage2(received, rows[:, 1:]) / 4).backward()
    sent.backward(received.grad)  # what the second rank sends back
    # Each stage has only its own parameters.
apart = max((p.grad - whole[name]).abs().max().item() for name, p in model.named_parameters())
print(
    f"sent per micro-batch: {sent.numel() * 4} bytes each way; largest difference of a gradient {apart:.1e}"
)
assert apart < 1e-6

# %% [markdown]
# > **Exercise 2.2.** Two ranks have 6 and 2 rows, and each takes the mean of its own losses. With which weights must their gradients be
# > added?
# >
# > **练习 2.2。** 两个进程分别有 6 行和 2 行，各自对损失取平均。梯度应按什么权重相加？

# %%
weights_2_2 = ...  # [?, ?]
check("2.2", weights_2_2)

# %% [markdown]
# ## 2.6 Parallelism by flags
#
# [model.py](model.py) has the course's model, a Llama over bytes with 131,648 parameters: in plain PyTorch, and the same for Megatron Core.
# [programs/pretrain.py](programs/pretrain.py) is a plain program for PyTorch and Megatron Core. `auto_convert.sh` has put Megatron Core into
# `build/`; `torchrun` starts the ranks. The same two blended sources, four layouts.
#
# **用参数选择并行方式。** [model.py](model.py) 是本课程的模型：以字节为 token、131,648 个参数的 Llama，既有纯 PyTorch 版，也有 Megatron Core 版。
# [programs/pretrain.py](programs/pretrain.py) 是普通的 PyTorch 与 Megatron Core 程序；`auto_convert.sh` 已把 Megatron Core 放入 `build/`，
# `torchrun` 启动各进程。同样的两个混合数据源，四种布局。

# %%
DATA = [
    "--data",
    "data/set_tragedies_text_document",
    "data/set_more_text_document",
    "--weights",
    "0.7",
    "0.3",
]
STEPS = 10 if FAST else 40


def train(name, processes, *flags, steps=STEPS, expect=0):
    """Trains with torchrun in the folder runs/NAME and returns the losses."""
    place = folder / "runs" / name
    place.mkdir(parents=True, exist_ok=True)
    words = [HERE / "programs/pretrain.py", *DATA, "--steps", steps, *flags]
    words += ["--folder", place, "--losses", place / "losses.json"]
    torchrun(processes, *words, folder=folder, expect=expect)
    return None if expect else json.loads((place / "losses.json").read_text())


layouts = {
    "one process": train("one", 1),
    "tensor 2": train("tensor", 2, "--tensor", "2"),
    "pipeline 2": train("pipeline", 2, "--pipeline", "2"),
    "data 2": train("data", 2),
}
for name, losses in layouts.items():
    print(f"{name:12} {losses[0]:.6f} ... {losses[-1]:.6f}")

# %%
pyplot = plot()
for (name, losses), style in zip(layouts.items(), ("-", "--", "-.", ":"), strict=True):
    pyplot.plot(losses, style, linewidth=3 if style == "-" else 2, label=name)
pyplot.xlabel("step")
pyplot.ylabel("loss")
pyplot.legend()
pyplot.show()
apart = {
    name: [abs(a - b) for a, b in zip(losses, layouts["one process"], strict=True)]
    for name, losses in layouts.items()
}
for name, steps in apart.items():
    print(f"{name:12} differs by at most {max(steps[:10]):.1e} in ten steps, and {max(steps):.1e} in {STEPS}")
assert max(map(max, (steps[:10] for steps in apart.values()))) < 5e-5, "the layouts differ"
assert max(map(max, apart.values())) < 5e-3, "the layouts run apart"

# %% [markdown]
# The last digits may differ: sums in another order round otherwise, and the differences grow from step to step, because Adam turns even a
# tiny gradient into a step of full size. That is why layouts are compared over a few steps with a tolerance, and a run with itself without one.
#
# 末位数字可能不同：求和次序不同，舍入也不同，而且差异逐步增大（Adam 会把极小的梯度也变成完整的一步）。因此不同布局之间只比较前若干步并留有容差，
# 而同一次运行与自身比较则不需要容差。
#
# ## 2.7 Kill and resume
#
# We kill a rank in the middle (`SIGKILL`, as when a machine dies). `torchrun` ends the other and reports it. Started again, the program goes on from
# its last checkpoint, and the curve is the one of the run that was not killed, bit for bit.
#
# **中断与恢复。** 在训练途中用 `SIGKILL` 杀死一个进程（如同机器宕机），`torchrun` 会结束另一个进程并报告；再次启动后从最近的检查点继续，
# 损失曲线与未中断的运行逐位相同。

# %%
KILLED = 137  # 128 + 9, the number of SIGKILL
train("killed", 2, "--tensor", "2", "--die-at", STEPS - 3, expect=KILLED)
saved = torch.load(folder / "runs/killed/rank0.pt", weights_only=False)["step"]
print(f"killed before step {STEPS - 3}; the checkpoint is of step {saved}")
resumed = train("killed", 2, "--tensor", "2")
print("equal to the run that was not killed:", resumed == layouts["tensor 2"])
assert resumed == layouts["tensor 2"], "the resumed curve is another one"

# %% [markdown]
# ## 2.8 The model of the next chapters
#
# Forty steps are enough to compare layouts, and too few to learn Shakespeare. We let one process go on for longer, with all rows in one
# micro-batch. Then we carry the weights over to the model in plain PyTorch (`from_megatron` in [model.py](model.py); chapter 3 derives the
# way back by hand) and check that both have the same loss. **Predict:** what does a model with 0.1 million parameters write after a minute?
#
# **后续章节使用的模型。** 再训练久一些，然后把权重搬到纯 PyTorch 的模型中，并核对两者的损失相同。先猜：十三万参数的模型训练一分钟后会写出什么？

# %%
LONG = 60 if FAST else 1000
long = train("long", 1, "--rows", 16, "--micro", 16, "--save-every", LONG, steps=LONG + 1)
state = torch.load(folder / "runs/long/rank0.pt", weights_only=False)["model"]
model.load_state_dict(from_megatron(state))

# The row that Megatron's last step saw first is the one that the blend gives as number 16 * LONG.
sources = blend([0.7, 0.3], 16 * LONG + 16)
streams = [
    numpy.fromfile(folder / f"{name}.bin", numpy.uint16).astype(numpy.int64) for name in (DATA[1], DATA[2])
]
last = []
for n in range(16 * LONG, 16 * LONG + 16):
    stream = streams[sources[n]]
    begin = sources[:n].count(sources[n]) * 64 % (len(stream) - 65)
    last.append(torch.from_numpy(stream[begin : begin + 65]))
last = torch.stack(last)
with torch.no_grad():
    ours = F.cross_entropy(model(last[:, :-1]).mT, last[:, 1:]).item()
print(
    f"loss {long[0]:.3f} -> {long[-1]:.3f}; in plain PyTorch, with the weights before the last step, {ours:.3f}"
)
assert abs(ours - long[-1]) < 1e-4
print(write(model, "ROMEO:\n", 200, torch.Generator().manual_seed(1)))
if (
    not FAST
):  # the short run is of no use to the next chapters, which take the weights that come with the course
    from safetensors.torch import save_file

    save_file(model.state_dict(), folder / "base.safetensors")

# %% [markdown]
# > **On Ascend.** The same command trains on cards with `MSADAPTER_DEVICE=npu`, where HCCL takes the place of MPI; on the **simulated** NPU it can
# > be tried without one. It has not run on a card yet. For Megatron-LM and MindSpeed-LLM themselves use `python -m megatron_ms train`.
# >
# > **在昇腾上。** 设置 `MSADAPTER_DEVICE=npu` 即可使用加速卡（通信由 HCCL 完成），也可在**模拟的** NPU 上试运行。尚未在真实加速卡上运行过。

# %% [markdown]
# ## 2.9 Closing checks
#
# > **Exercise 2.3.** Eight ranks, tensor 2, pipeline 2, global batch 16, micro-batch 2. How many micro-batches does a rank see in a step?
# >
# > **练习 2.3。** 8 个进程，张量并行 2，流水线 2，全局批 16，微批 2：每个进程一步处理多少个微批？

# %%
micro_batches_2_3 = ...
check("2.3", micro_batches_2_3)

# %%
assert layouts["one process"][-1] < layouts["one process"][0] - 1
assert by_hand == library.tolist()
assert long[-1] < 3.0 and long[-1] < layouts["one process"][-1]
print("Chapter 2 is finished. 第 2 章完成。")

# %% [markdown]
# Read on: [prepare data](../docs/toolkit_data.md), [distributed training](../docs/distributed.md), [the toolkit](../docs/toolkit.md).
# Next chapter: [fine-tuning](3_finetuning.ipynb).
