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
# # 1. Overview: a PyTorch program on MindSpore
#
# At the end of this chapter you know what happens between `import torch` and the machine, you have written an operator and a patch of
# your own, and you can say how the project knows that its numbers are PyTorch's. It takes about 40 minutes. You need Python, a laptop,
# and to have trained a small network once.
#
# **第 1 章 概览：在 MindSpore 上运行 PyTorch 程序。** 学完本章，你会知道从 `import torch` 到硬件之间发生了什么，
# 亲手写出一个算子和一条补丁规则，并能说明本项目如何确认它的数值与 PyTorch 一致。约需 40 分钟，只需要一台笔记本电脑。

# %% [markdown]
# ## 1.1 A result first
#
# This is a PyTorch program. It trains a small Llama over bytes on Shakespeare: the model and the text of the whole course. The model is written
# in plain PyTorch in [model.py](model.py). Nothing in it knows of MindSpore, except for the first two lines below.
#
# **先看结果。** 下面是一个普通的 PyTorch 程序：在莎士比亚剧本上训练一个以字节为 token 的小型 Llama。全部五章都使用这个模型（[model.py](model.py)）
# 和这份文本。除了前两行，它与 MindSpore 毫无关系。

# %%
import msadapter

msadapter.install()  # from here on, `import torch` is answered by MindSpore

import torch
from lesson import FAST, ROOT, check, corpus, plot, stored, work
from model import Llama, ids_of, write
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
text = torch.tensor(ids_of(corpus()))
model = Llama()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

losses = []
for step in range(60 if FAST else 250):
    begins = torch.randint(len(text) - 65, (16,))
    rows = torch.stack([text[begin : begin + 65] for begin in begins.tolist()])
    loss = F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:])  # each byte predicts the next
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{sum(p.numel() for p in model.parameters())} parameters; loss {losses[0]:.2f} -> {losses[-1]:.2f}")
print(write(model, "ROMEO:\n", 120, torch.Generator().manual_seed(1)))
assert losses[-1] < losses[0] - 1

# %%
pyplot = plot()
pyplot.plot(losses)
pyplot.xlabel("step")
pyplot.ylabel("cross entropy (nat)")
pyplot.title("Next byte of Shakespeare")
pyplot.show()

# %% [markdown]
# ## 1.2 Who has computed that?
#
# **Predict before you run:** is `torch` a copy of PyTorch that was changed, or another package under its name?
#
# **是谁完成了这些计算？** 先猜一猜：这里的 `torch` 是被修改过的 PyTorch，还是另一个使用它名字的软件包？

# %%
import sys

assert torch is msadapter
assert torch.nn.functional is msadapter.nn.functional
assert sys.modules["torch.optim"] is msadapter.optim
print("torch is the package", torch.__file__.split("/")[-2], "and answers as PyTorch", torch.__version__)

# %% [markdown]
# `torch` *is* msadapter: the same module objects under two names. Importing msadapter changes nothing; `install()` puts a finder at the
# head of `sys.meta_path`, and that finder answers every `import torch...`. In a shell, `source build/env.sh` does the same for every
# program, so that Megatron-LM or transformers need no `install()` line.
#
# The project has four parts:
#
# | part | what it is for | where |
# |---|---|---|
# | adapter | answers `import torch` and `import torch_npu`, with MindSpore below | `msadapter/` |
# | patches | changes sources of an upstream, where an adapter cannot help | `patches/` |
# | kernels | the fused operators of Ascend, with an exact CPU implementation of each | `kernels_ascend/` |
# | toolkit | data, training, generation and evaluation from one YAML file | `megatron_ms/` |
#
# `torch` 就是 msadapter：同一批模块对象，两个名字。导入 msadapter 本身不会改变任何东西；`install()` 会注册一个导入查找器，
# 由它回答所有 `import torch...`。在 shell 中 `source build/env.sh` 对每个程序都有同样效果。项目由四部分组成：
#
# | 部分 | 作用 | 位置 |
# |---|---|---|
# | 适配器 | 回答 `import torch` 与 `import torch_npu`，其下由 MindSpore 计算 | `msadapter/` |
# | 补丁 | 适配器无能为力时，修改上游源码 | `patches/` |
# | 融合算子 | 昇腾的融合算子，各有一个精确的 CPU 实现 | `kernels_ascend/` |
# | 工具集 | 用一个 YAML 文件完成数据、训练、生成与评测 | `megatron_ms/` |

# %% [markdown]
# ## 1.3 One operator, from torch to the machine
#
# Each operator of PyTorch has one *declaration*. It names PyTorch's signature, the operator of MindSpore that computes it, and its
# gradient. Everything else is made from it: the function, the method, the in-place form, `out=`, the rule for `vmap`, the row on the
# coverage page. Let us follow `torch.sigmoid`.
#
# **一个算子的旅程。** PyTorch 的每个算子在这里只有一条“声明”：PyTorch 的签名、负责计算的 MindSpore 算子、以及它的梯度公式。
# 函数、方法、原地形式、`out=`、`vmap` 规则和文档中的一行都由它生成。我们以 `torch.sigmoid` 为例。

# %%
from msadapter.ops import declarations

sigmoid = declarations["sigmoid"]
print("signature:      ", sigmoid.schema.name, [(p.name, p.type) for p in sigmoid.schema.parameters])
print("MindSpore's op: ", sigmoid.mindspore)
print("promotion:      ", sigmoid.promote, "(integers become floats)")
print("names:          ", ", ".join(sigmoid.names))

# %% [markdown]
# On an NPU, MindSpore's operator `Sigmoid` runs on the device. On a CPU, MindSpore lacks many kernels, so the project adds its own below the
# same name; that is why the mapping is the same for both. The profiler shows the calls. **Predict:** how many calls does one training step
# of a linear layer make, forward and backward?
#
# 在 NPU 上由 MindSpore 的 `Sigmoid` 在设备上计算；在 CPU 上，项目在同名算子之下补充了自己的内核，因此两者共用同一份映射。
# 用性能分析器可以看到每一次调用。先猜：一个线性层的一步训练（前向加反向）会产生多少次调用？

# %%
from torch.profiler import ProfilerActivity, profile

layer, x = nn.Linear(4, 3), torch.randn(5, 4)
with profile(activities=[ProfilerActivity.CPU]) as recorded:
    torch.sigmoid(layer(x)).sum().backward()
for event in recorded.key_averages():
    print(f"{event.count:3d} x {event.key}")
assert any("sigmoid" in event.key for event in recorded.key_averages())

# %% [markdown]
# The last station is the kernel. On this machine `Sigmoid` is a C++ function of the project, below MindSpore's name. Here is its source.
#
# 最后一站是内核：在本机上，`Sigmoid` 是项目中的一个 C++ 函数，挂在 MindSpore 的算子名之下。下面是它的源码。

# %%
import re

found = {}
for file in sorted((ROOT / "msadapter/csrc/kernels").glob("*.cpp")):
    source = file.read_text()
    match = re.search(r"^MSA_\w*KERNEL\(" + sigmoid.mindspore + r"\).*?^}", source, re.MULTILINE | re.DOTALL)
    if match:
        found[f"{file.name}, line {source[: match.start()].count(chr(10)) + 1}"] = match[0]
((place, kernel),) = found.items()
print(f"{place}:\n{kernel}")

# %% [markdown]
# Ascend also has *fused* operators, which do the work of several at once. The model's feed-forward part computes
# $\mathrm{silu}(\mathit{gate}) \cdot \mathit{up}$; on an NPU that is the one operator `npu_swiglu`, which MindSpeed calls. `kernels_ascend` declares it
# like any other, with an exact implementation for the CPU. Both must agree, the gradient too.
#
# 昇腾还有**融合**算子：模型前馈部分的 $\mathrm{silu}(gate)\cdot up$ 在 NPU 上是一个算子 `npu_swiglu`。`kernels_ascend` 声明了它，并给出精确的 CPU 实现；
# 数值与梯度都应一致。

# %%
import torch_npu

both = torch.randn(5, 2 * 192, requires_grad=True)
fused = torch_npu.npu_swiglu(both)
(fused_gradient,) = torch.autograd.grad(fused.square().sum(), both)
gate, up = both.chunk(2, -1)
separate = F.silu(gate) * up
(separate_gradient,) = torch.autograd.grad(separate.square().sum(), both)
print("declared as", declarations["torch_npu.npu_swiglu"].names)
print("largest difference:", f"{(fused - separate).abs().max():.1e}", end=", ")
print(f"of the gradient {(fused_gradient - separate_gradient).abs().max():.1e}")
assert torch.allclose(fused, separate, atol=1e-6)
assert torch.allclose(fused_gradient, separate_gradient, atol=1e-5)

# %% [markdown]
# ## 1.4 Write an operator yourself
#
# Let us declare the activation that transformers call *squared ReLU*, $f(x) = \max(0, x)^2$, whose derivative is $f'(x) = 2\max(0, x)$. `ms="Square"`
# would map it onto one operator of MindSpore; ours consists of two, so it is a function that calls them. `raw.X` is MindSpore's operator X.
# The name of an argument in the gradient's formula is what the dispatcher saves for the backward pass: here the input, and nothing else.
#
# **自己写一个算子。** 我们声明 squared ReLU：$f(x)=\max(0,x)^2$，导数为 $f'(x)=2\max(0,x)$。若写 `ms="Square"`，就直接对应一个 MindSpore 算子；
# 这里由两个算子组成，所以写成一个调用它们的函数，`raw.X` 即 MindSpore 的算子 X。
# 梯度公式的参数名决定了反向传播保存哪些张量：这里只保存输入。

# %%
from msadapter.ops import op, raw


@op(
    "course.squared_relu(Tensor self) -> Tensor",
    forms="f",
    grad={"self": lambda g, self: g * 2 * self.clamp(min=0)},
)
def squared_relu(self):
    """max(0, x) squared."""
    return raw.Square(raw.ReLU(self))


mine = declarations["course.squared_relu"].function
x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
mine(x).sum().backward()
print(x.grad)

library = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
(F.relu(library) ** 2).sum().backward()
assert torch.equal(x.grad, library.grad)
assert torch.autograd.gradcheck(mine, (torch.randn(6, dtype=torch.float64, requires_grad=True),))
assert torch.equal(
    torch.func.vmap(mine)(torch.ones(3, 2)), torch.ones(3, 2)
)  # the rule for vmap came with the declaration

# %% [markdown]
# `gradcheck` compared the formula with finite differences: $\frac{f(x+\epsilon)-f(x-\epsilon)}{2\epsilon}$. A formula that is wrong does
# not pass.
#
# `gradcheck` 用有限差分检验公式；错误的公式无法通过。


# %%
@op("course.wrong(Tensor self) -> Tensor", forms="f", grad={"self": lambda g, self: g * self.clamp(min=0)})
def wrong(self):
    """The same function, with the factor 2 forgotten in its gradient."""
    return raw.Square(raw.ReLU(self))


try:
    torch.autograd.gradcheck(
        declarations["course.wrong"].function, (torch.rand(3, dtype=torch.float64, requires_grad=True),)
    )
    noticed = False
except RuntimeError as error:
    noticed = True
    print(str(error).splitlines()[0])
assert noticed

# %% [markdown]
# > **Exercise 1.1.** The derivative of $h(x) = x \cdot \tanh(x)$ is $h'(x) = \tanh(x) + x\,(1 - \tanh^2(x))$. Write the gradient's
# > formula as a function of `g` (the gradient of the output) and `self`.
# >
# > **练习 1.1。** 写出 $h(x)=x\tanh(x)$ 的梯度公式，参数为 `g`（输出的梯度）和 `self`。

# %%
gradient_of_h = ...  # lambda g, self: ...
check("1.1", gradient_of_h)

# %% [markdown]
# ## 1.5 When an adapter cannot help: patches
#
# Some code cannot be answered from below, for example a line in Megatron-LM that refuses to run without a library for CUDA. For that there are
# *rules*. Each changes one place in a copy of the upstream, says why, carries the sha256 of what it was written for, and can be taken
# back. Every patch is a defeat, so there are few. Here is a toy upstream and a rule of ten lines for it.
#
# **当适配器无能为力时：补丁。** 例如 Megatron-LM 中某一行在缺少 CUDA 专用库时拒绝运行。每条规则只修改上游副本的一处，写明原因，
# 记录原文的 sha256，并且可以撤销。每条补丁都是一次失败，所以数量很少。下面是一个玩具上游和一条十行的规则。

# %%
import hashlib
import shutil

from patches import Patch, Upstream, apply, revert, verify
from patches.edits import replace

folder = work(1)
for name in ("upstream", "converted", "other"):
    shutil.rmtree(folder / name, ignore_errors=True)
(folder / "upstream/toy").mkdir(parents=True)
(folder / "upstream/toy/version.txt").write_text("1.4\n")
ENGINE = "def engine():\n    assert has_cuda(), 'this program needs CUDA'\n    return 'running'\n\n\ndef has_cuda():\n    return False\n"
(folder / "upstream/toy/engine.py").write_text(ENGINE)

toy = Upstream("toy", "toy/version.txt", str.strip, since="1.0", before="2.0")
rule = Patch(
    id="no-cuda-needed",
    target="toy/engine.py",
    reason="the engine computes on any device, but refuses to start without CUDA",
    reason_class="environment",
    since="1.0",
    before="2.0",
    fingerprints=(hashlib.sha256(ENGINE.encode()).hexdigest(),),
    edit=replace("    assert has_cuda(), 'this program needs CUDA'\n", ""),
)
manifest = apply(toy, [rule], folder / "upstream", folder / "converted")


def run(tree):
    names = {}
    exec((folder / tree / "toy/engine.py").read_text(), names)
    try:
        return names["engine"]()
    except AssertionError as error:
        return f"refused: {error}"


print("upstream: ", run("upstream"))
print("converted:", run("converted"))
print("rules:    ", [entry["id"] for entry in manifest["patches"]])
verify(folder / "converted")  # every file is what the manifest says
print("reverted: ", revert(folder / "converted"), "->", run("converted"))
assert run("converted") == run("upstream")

# %% [markdown]
# A rule for another file is an error, never a silent change. If upstream's file differs from the one that the rule was written for, nothing
# is written, even if the edit would still find its place. You then read what upstream has changed, and adapt the rule.
#
# 规则若与上游文件不再匹配（哪怕编辑位置仍能找到），会报错而不写入任何内容，绝不会悄悄修改。

# %%
from patches import PatchError

(folder / "upstream/toy/engine.py").write_text(ENGINE.replace("'running'", "'running twice as fast'"))
try:
    apply(toy, [rule], folder / "upstream", folder / "other")
    refused = False
except PatchError as error:
    refused = True
    print(str(error).splitlines()[0])
assert refused and not (folder / "other").exists()

# %% [markdown]
# > **Exercise 1.2.** Write the `edit` of a rule that makes `has_cuda` return `True`, without touching `engine`.
# >
# > **练习 1.2。** 写出一条规则的 `edit`，让 `has_cuda` 返回 `True`，而不修改 `engine`。

# %%
my_edit = ...  # replace("...", "...")
check("1.2", my_edit)

# %% [markdown]
# The rules for the real upstreams are listed by `python -m patches list`:
#
# 真实上游的规则可以用 `python -m patches list` 列出：

# %%
from patches import discover, runtime_rules, upstreams

for upstream in upstreams():
    rules = [*discover(upstream)[1], *runtime_rules(upstream)]
    print(f"{upstream}: {', '.join(rule.id for rule in rules) or 'none'}")

# %% [markdown]
# ## 1.6 How faithful is it, and how is that known?
#
# The oracle is real PyTorch. Its answers are recorded by scripts that are part of the repository, with seed and version, and the tests compare
# with them: some 30,000 operator samples, random programs, files, error messages, the loss curves of Megatron-LM. `answers/pytorch.json`
# holds a few for this course. Let us check one gradient: that of a small attention layer.
#
# **它有多忠实？如何得知？** 裁判是真正的 PyTorch：它的答案由仓库中的脚本录制（含随机种子与版本），测试逐一比较：
# 约三万个算子样本、随机程序、文件、错误信息、Megatron-LM 的损失曲线。`answers/pytorch.json` 中有本课程用到的几个。
# 这里我们验证一个小注意力层的梯度。

# %%
told = stored("attention")
print("recorded with PyTorch", told["torch"], "and seed", told["seed"])
torch.manual_seed(told["seed"])
q, k, v = (torch.randn(1, 2, 5, 4, requires_grad=True) for _ in range(3))
F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum().backward()
for name, ours in (("q", q.grad), ("k", k.grad), ("v", v.grad)):
    theirs = torch.tensor(told[name]).view_as(ours)
    print(f"d{name}: largest difference {(ours - theirs).abs().max():.1e}")
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6)

# %% [markdown]
# Even the random numbers are PyTorch's: `torch.manual_seed` gives the same stream, so that both programs drew the same `q`, `k` and `v`.
#
# 就连随机数也与 PyTorch 相同：同一个种子得到同样的 `q`、`k`、`v`。

# %%
torch.manual_seed(told["seed"])
assert torch.randn(3).tolist() == told["first"]

# %% [markdown]
# What is not supported says so by name, and never answers with made-up numbers:
#
# 不支持的功能会明确报出名字，绝不返回编造的结果：

# %%
try:
    torch.export.export(model, (rows,))
    named = False
except NotImplementedError as error:
    named = "torch.export" in str(error)
    print("NotImplementedError:", str(error)[:100])
assert named

# %% [markdown]
# ## 1.7 Versions
#
# These versions belong together; the table is that of [the page on versions](../docs/versions.md), made from the project's own pins. And these
# are the ones that answer here.
#
# **版本。** 下表由项目自身的版本锁定生成；随后是本机实际使用的版本。

# %%
import platform
from importlib.metadata import version

from IPython.display import Markdown, display
from megatron_ms.convert import versions

display(Markdown(versions.text()))
here = {"Python": platform.python_version(), "MindSpore": version("mindspore"), "NumPy": version("numpy")}
here["names of PyTorch"] = torch.__version__
for name, value in here.items():
    print(f"{name:18} {value}")
assert all(f" {value} |" in versions.text() for name, value in here.items() if name != "Python")

# %% [markdown]
# > **On Ascend.** The same program runs with `device="npu"`. Without a card, `python -m msadapter --simulated-npu program.py` runs it on a
# > **simulated** NPU: MindSpore's own Ascend plugin over stand-ins for CANN's libraries. Nothing in this chapter has run on a card yet.
# >
# > **在昇腾上。** 同一程序使用 `device="npu"` 即可。没有加速卡时，`python -m msadapter --simulated-npu program.py` 在**模拟的** NPU 上运行它。
# > 本章内容尚未在真实加速卡上运行过。

# %% [markdown]
# ## 1.8 Closing checks
#
# > **Exercise 1.3.** `x = torch.tensor([3., 1., 2.], requires_grad=True)`, and `torch.sort(x).values @ torch.tensor([1., 10., 100.])` is
# > differentiated. What is `x.grad`? Answer with a list of three numbers, before you run it.
# >
# > **练习 1.3。** 先不运行，写出 `x.grad` 的三个数。

# %%
my_gradient = ...  # [?, ?, ?]
check("1.3", my_gradient)

# %%
assert torch is msadapter
assert losses[-1] < losses[0] - 1
assert torch.equal(x.grad, library.grad) and torch.allclose(fused, separate, atol=1e-6)
assert not manifest["patches"] == [] and run("converted").startswith("refused")
print("Chapter 1 is finished. 第 1 章完成。")

# %% [markdown]
# Read on: [the architecture on one page](../docs/architecture.md), [every operator](../docs/coverage.md), [all patches](../docs/patches.md).
# Next chapter: [pretraining](2_pretraining.ipynb).
