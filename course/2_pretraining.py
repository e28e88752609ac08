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
# At the end of this chapter you have written Megatron's binary data format by hand, blended two sources, trained a GPT of Megatron Core on one process
# and on two in three ways, seen that the losses agree, and killed and resumed a run without a trace. It takes about 60 minutes. You need chapter
# 1.
#
# **第 2 章 预训练：从文本到多进程训练。** 学完本章，你会亲手写出 Megatron 的二进制数据格式、混合两个数据源，
# 用一个进程以及三种双进程方式训练 Megatron Core 的 GPT 并看到损失一致，还会中断再恢复训练而不留痕迹。约需 60 分钟。

# %% [markdown]
# ## 2.1 A result first
#
# One YAML file, one command: the toolkit makes a data set of four plays of Shakespeare.
#
# **先看结果。** 一个 YAML 文件、一条命令：由莎士比亚的四部剧本生成数据集。

# %%
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msadapter

msadapter.install()

import json
import struct

import numpy
import torch
from lesson import FAST, ROOT, check, corpus, plot, work

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


def toolkit(*words, expect=0):
    """Runs `python -m megatron_ms ...` in the work folder and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "megatron_ms", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == expect, done.stderr[-2000:]
    return done.stdout + done.stderr


print(toolkit("data", "data.yaml"))

# %% [markdown]
# ## 2.2 The format by hand
#
# `PREFIX.bin` holds the ids of all documents, one after the other. `PREFIX.idx` says where each begins: a header, then the lengths, the offsets in
# bytes, and the borders of documents. That is all; let us write it.
#
# **亲手写数据格式。** `.bin` 依次存放所有文档的 token；`.idx` 记录每个文档的长度、字节偏移和边界。


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
END = 256  # the tokenizer `bytes` has the 256 bytes and an end token
write_indexed(folder / "data/mine", [[*text.encode(), END] for text in texts])
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
# A training is described by one YAML file. Its *basic* level has what every run needs, the *high* level adds checkpoints and monitoring, the
# *advanced* level recomputation, overlap and recovery; each has a template. Mistakes are found before anything runs, and named by file and
# key.
#
# **一个文件，三个层级。** 基础层（数据、模型、并行、超参数）、高级层（保存与监控）、进阶层（重计算、重叠、恢复）。错误会在运行前按文件和键名报告。

# %%
import yaml

for level in ("basic", "high", "advanced"):
    content = yaml.safe_load((ROOT / f"megatron_ms/config/templates/{level}.yaml").read_text())
    print(f"{level:9}", ", ".join(content))
(folder / "run.yaml").write_text(
    "recipe: qwen2.5-0.5b\nparallel: {tensor: 2}\ntrain: {iterations: 100, micro_batch: 1, global_batch: 8}\n"
)
print(toolkit("plan", "run.yaml", "run.processes=3", expect=2))
print(toolkit("plan", "run.yaml", "run.processes=2")[:700])

# %% [markdown]
# ## 2.5 Parallelism by hand
#
# **Tensor parallel.** A rank holds half of the *columns* of the first weight and half of the *rows* of the second. Between them nothing is
# exchanged, because GELU works on each number by itself; at the end the halves are added (one all-reduce).
#
# **张量并行。** 第一个权重按列切分、第二个按行切分；中间无需通信，最后相加一次（all-reduce）。

# %%
torch.manual_seed(0)
x, first, second = torch.randn(3, 8), torch.randn(8, 16), torch.randn(16, 8)
whole = torch.nn.functional.gelu(x @ first) @ second
halves = [
    torch.nn.functional.gelu(x @ a) @ b for a, b in zip(first.chunk(2, 1), second.chunk(2, 0), strict=True)
]
print("largest difference", (sum(halves) - whole).abs().max().item())
assert torch.allclose(sum(halves), whole, atol=1e-5)

# %% [markdown]
# **Data parallel.** Each rank has half of the rows; the mean of the gradients is the gradient of the whole batch, if the losses are means over the
# same number of rows. **Pipeline parallel.** Each rank has half of the layers, and micro-batches go through one after the other; their
# gradients are added up, which again is the gradient of the whole.
#
# **数据并行**：各进程梯度的平均就是整批的梯度。**流水线并行**：微批次依次通过各级，梯度累加，结果也相同。


# %%
def gradient(rows):
    weight = first.clone().requires_grad_()
    torch.nn.functional.gelu(rows @ weight).square().mean().backward()
    return weight.grad


rows = torch.randn(8, 8)
assert torch.allclose(gradient(rows), (gradient(rows[:4]) + gradient(rows[4:])) / 2, atol=1e-6)
assert torch.allclose(gradient(rows), sum(gradient(part) for part in rows.split(2)) / 4, atol=1e-6)

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
# [programs/pretrain.py](programs/pretrain.py) is a plain program for PyTorch and Megatron Core. `auto_convert.sh` has put Megatron Core into
# `build/`; `torchrun` starts the ranks. The same two blended sources, four layouts.
#
# **用参数选择并行方式。** 同样的数据、同样的程序，四种布局。

# %%
build = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build"))
assert (build / "megatron/megatron/core").is_dir(), (
    "run bash auto_convert.sh first, which converts Megatron Core"
)
DATA = [
    "--data",
    "data/set_tragedies_text_document",
    "data/set_more_text_document",
    "--weights",
    "0.7",
    "0.3",
]
STEPS = 10 if FAST else 40


def train(name, processes, *flags, steps=STEPS, well=True):
    """Trains with torchrun in the folder runs/NAME and returns the losses."""
    place = folder / "runs" / name
    place.mkdir(parents=True, exist_ok=True)
    paths = (ROOT / "msadapter/alias/shim", build / "megatron", ROOT)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        str(processes),
    ]
    command += [str(ROOT / "course/programs/pretrain.py"), *DATA, "--steps", str(steps), *flags]
    command += ["--folder", str(place), "--losses", str(place / "losses.json")]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "MSADAPTER_DEVICE": "cpu",
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        },
    )
    assert (done.returncode == 0) == well, done.stderr[-2000:]
    return json.loads((place / "losses.json").read_text()) if well else None


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
apart = max(
    abs(a - b) for losses in layouts.values() for a, b in zip(losses, layouts["one process"], strict=True)
)
print(f"largest difference {apart:.1e}")

# %% [markdown]
# The last digits may differ: sums in another order round otherwise, and the differences grow from step to step. That is why layouts are compared with a tolerance, and a run with itself
# without one.
#
# 末位数字可能不同：求和次序不同，舍入也不同。因此不同布局之间比较要有容差，而同一次运行与自身比较则不需要。
#
# ## 2.7 Kill and resume
#
# We kill a rank in the middle (`SIGKILL`, as when a machine dies). `torchrun` ends the other and reports it. Started again, the program goes on from
# its last checkpoint, and the curve is the one of the run that was not killed, bit for bit.
#
# **中断与恢复。** 在训练途中杀死一个进程，再次启动后从检查点继续，损失曲线与未中断的运行逐位相同。

# %%
train("killed", 2, "--tensor", "2", "--die-at", str(STEPS - 3), well=False)
saved = torch.load(folder / "runs/killed/rank0.pt", weights_only=False)["step"]
print(f"killed before step {STEPS - 3}; the checkpoint is of step {saved}")
resumed = train("killed", 2, "--tensor", "2")
print("equal to the run that was not killed:", resumed == layouts["tensor 2"])

# %% [markdown]
# > **On Ascend.** The same command trains on cards with `MSADAPTER_DEVICE=npu`, where HCCL takes the place of MPI; on the **simulated** NPU it can
# > be tried without one. It has not run on a card yet. For Megatron-LM and MindSpeed-LLM themselves use `python -m megatron_ms train`.
# >
# > **在昇腾上。** 设置 `MSADAPTER_DEVICE=npu` 即可使用加速卡（通信由 HCCL 完成），也可在**模拟的** NPU 上试运行。尚未在真实加速卡上运行过。

# %% [markdown]
# ## 2.8 Closing checks
#
# > **Exercise 2.3.** Eight ranks, tensor 2, pipeline 2, global batch 16, micro-batch 2. How many micro-batches does a rank see in a step?
# >
# > **练习 2.3。** 8 个进程，张量并行 2，流水线 2，全局批 16，微批 2：每个进程一步处理多少个微批？

# %%
micro_batches_2_3 = ...
check("2.3", micro_batches_2_3)

# %%
assert apart < 1e-4, "the layouts differ"
assert resumed == layouts["tensor 2"], "the resumed curve is another one"
assert layouts["one process"][-1] < layouts["one process"][0] - 1
assert by_hand == library.tolist()
print("Chapter 2 is finished. 第 2 章完成。")
