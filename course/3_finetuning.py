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
# # 3. Fine-tuning: templates, masks, LoRA, conversion, chat
#
# At the end of this chapter you have derived by hand what a fine-tuning learns from and what not, written LoRA in thirty lines, compared it with
# peft and merged it, carried a model of Hugging Face over to Megatron Core weight by weight, talked with it and scored it. It takes about 60
# minutes. You need chapter 1, and chapter 2 for the words of Megatron.
#
# **第 3 章 微调：模板、掩码、LoRA、权重转换与对话。** 学完本章，你会亲手推导微调时哪些 token 参与学习，用三十行实现 LoRA、与 peft 核对并合并，
# 逐个权重地把 Hugging Face 模型搬到 Megatron Core，与它对话并评测。约需 60 分钟。

# %% [markdown]
# ## 3.1 A result first
#
# We begin with the weights that chapter 2 has pretrained on Shakespeare. (If you have not run it, those that come with the course.) The model
# knows letters and some words, and nothing of instructions. Half a minute of fine-tuning teaches it two tasks: to shout a word
# (`Shout: rose` becomes `ROSE`) and to spell it (`Spell: rose` becomes `r-o-s-e`). A third, to cry it (`Cry: rose` becomes `R-O-S-E`), it will learn
# later with LoRA. All the code is in one cell; the next sections take it apart.
#
# **先看结果。** 从第 2 章预训练的权重开始（若未运行，则用随课程提供的权重）。模型认识字母和一些单词，但不懂指令。
# 不到一分钟的微调就让它学会两件事：把单词变成大写（Shout），以及逐字母拼读（Spell）；第三件（Cry，大写拼读）稍后用 LoRA 学习。
# 全部代码在一个单元里，后面各节逐一讲解。

# %%
import json
import os
import re
import sys
import warnings

import msadapter

os.environ.setdefault("MSADAPTER_DEVICE", "cuda")  # Megatron asks for it; without an NPU it is the host
msadapter.install()

import torch
from lesson import FAST, base, check, corpus, megatron, plot, toolkit, work
from model import END, FILL, Llama, from_megatron, hugging_face, ids_of, text_of, tokenizer, write
from model import megatron as megatron_model
from torch import nn
from torch.nn import functional as F

folder = work(3)
words = sorted(set(re.findall(r"\b[a-z]{3,5}\b", corpus())))
held_out, words = words[::10], [w for i, w in enumerate(words) if i % 10]
TASKS = {"Shout": str.upper, "Spell": "-".join, "Cry": lambda word: "-".join(word.upper())}
TEMPLATE = "### Instruction:\n{question}\n\n### Response:\n"


def sample_of(question, answer):
    """The ids of a sample, and its labels: -100 where nothing is learned."""
    prompt, reply = ids_of(TEMPLATE.format(question=question)), [*ids_of(answer), END]
    return prompt + reply, [-100] * len(prompt) + reply


def batch_of(tasks, generator, count=96):
    """Ids and labels of random words, with the tasks in turn; the shorter rows are filled up."""
    chosen = [words[i] for i in torch.randint(len(words), (count,), generator=generator).tolist()]
    samples = [
        sample_of(f"{tasks[i % len(tasks)]}: {word}", TASKS[tasks[i % len(tasks)]](word))
        for i, word in enumerate(chosen)
    ]
    longest = max(len(ids) for ids, _ in samples)
    ids = torch.tensor([ids + [FILL] * (longest - len(ids)) for ids, _ in samples])
    labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in samples])
    return ids, labels


def loss_of(scores, labels):
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # -100 is left out


def train(model, tasks, steps, lr):
    generator = torch.Generator().manual_seed(1)
    chosen = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(chosen, lr=lr, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    losses = []
    for _ in range(steps):
        ids, labels = batch_of(tasks, generator)
        loss = loss_of(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(chosen, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def answer(model, question):
    """The most probable answer: our model continues the template until the end token."""
    return write(model, TEMPLATE.format(question=question), 12)


def score(model, task, count=20 if FAST else 60):
    """The share of held-out words whose answer is right to the letter."""
    asked = held_out[:: max(1, len(held_out) // count)][:count]
    return sum(answer(model, f"{task}: {word}") == TASKS[task](word) for word in asked) / len(asked)


model = Llama()
model.load_state_dict(base())
print("before:", repr(answer(model, "Shout: rose")))
STEPS = 250 if FAST else 500
full = train(model, ["Shout", "Spell"], 2 * STEPS, 6e-3)
print(f"loss {full[0]:.3f} -> {full[-1]:.3f}")
for question in ("Shout: rose", "Spell: rose"):
    print(f"after: {question} -> {answer(model, question)}")
before_lora = {task: score(model, task) for task in TASKS}
print({task: f"{value:.0%}" for task, value in before_lora.items()}, "of words that it has never seen")
assert before_lora["Shout"] > 0.5 and before_lora["Spell"] > 0.5 and before_lora["Cry"] < 0.2

# %% [markdown]
# ## 3.2 The template and the mask
#
# A template turns instruction and answer into one text. The model must learn the answer and the end token, and nothing of the question: labels of the
# question are -100, which cross entropy leaves out. **Predict before you run:** how many labels does `Shout: ox` with the answer `OX` have?
#
# **模板与掩码。** 模板把指令与回答拼成一段文本。只有回答与结束符参与学习，问题部分的标签为 -100。先猜：`Shout: ox` / `OX` 有几个有效标签？

# %%
ids, labels = sample_of("Shout: ox", "OX")
shown = "".join(
    f"[{chr(i) if i < 256 else '<end>'}]" if known != -100 else chr(i) for i, known in zip(ids, labels)
)
print(shown)
assert sum(known != -100 for known in labels) == 3

# %% [markdown]
# The toolkit does this for many templates, and its mask check shows what is learned. Its `alpaca` template has a sentence before ours; the
# learned part is the same.
#
# 工具集支持多种模板，并能显示哪些 token 会被学习。它的 `alpaca` 模板在前面多一句话，参与学习的部分相同。

# %%
(folder / "chat.jsonl").write_text(
    json.dumps({"instruction": "Shout: ox", "input": "", "output": "OX"}) + "\n"
)
(folder / "chat.yaml").write_text(
    "data:\n  task: instruction\n  sources: chat.jsonl\n  tokenizer: bytes\n  template: alpaca\n  output: chat\n  seq_length: 256\n"
)
told = toolkit(folder, "data", "chat.yaml", "--show", "1")
print(told)
assert "3 learned" in told and "⟦OX" in told

# %% [markdown]
# > **Exercise 3.1.** The sample is the question `Spell: ox` with the answer `o-x`. How many labels are not -100, and what is the first of them
# > (a byte's number)?
# >
# > **练习 3.1。** 样本为 `Spell: ox`，回答 `o-x`：有效标签有几个？第一个是多少（字节值）？

# %%
mask_3_1 = ...  # (how many, the first)
check("3.1", mask_3_1)

# %% [markdown]
# ## 3.3 The loss
#
# The loss is the cross entropy of the next token, over the learned labels only. Let us compute it once by hand, and once by transformers, whose
# Llama takes the same weights under the same names. All three must agree, and so must the scores.
#
# **损失。** 只在有效标签上计算下一个 token 的交叉熵。分别手算一次、用 transformers 算一次（同样的权重、同样的名字），三者必须一致。

# %%
ids, labels = batch_of(["Shout"], torch.Generator().manual_seed(3), 4)
chances = model(ids)[:, :-1].log_softmax(-1)
learned_labels = [
    (row, at) for row in range(4) for at in range(labels.shape[1] - 1) if labels[row, at + 1] != -100
]
by_hand = -sum(chances[row, at, labels[row, at + 1]] for row, at in learned_labels) / len(learned_labels)

library = hugging_face()
library.load_state_dict(model.state_dict())
theirs = library(input_ids=ids, labels=labels)
print(f"ours {loss_of(model(ids), labels):.6f}, by hand {by_hand:.6f}, transformers {theirs.loss:.6f}")
assert torch.isclose(loss_of(model(ids), labels), by_hand, atol=1e-5)
assert torch.isclose(theirs.loss, by_hand, atol=1e-5)
assert torch.allclose(theirs.logits, model(ids), atol=1e-3)

# %% [markdown]
# ## 3.4 LoRA in thirty lines
#
# LoRA leaves a weight $W$ ($m \times n$) alone and learns a correction of rank $r$: $W + \frac{\alpha}{r} B A$ with $A$ of $r \times n$ and $B$ of
# $m \times r$. $B$ begins at zero, so that the model begins unchanged. There are $r(m+n)$ new parameters in place of $mn$.
#
# **三十行实现 LoRA。** 冻结 $W$，只学习秩为 $r$ 的修正 $\frac{\alpha}{r}BA$；$B$ 从零开始，所以起点不变。新增参数为 $r(m+n)$。


# %%
class LoRA(nn.Module):
    """A linear layer whose weight stays, with a correction of a low rank."""

    def __init__(self, layer, rank=8, alpha=16):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.a.T @ self.b.T)

    def merged(self):
        """An ordinary layer with the correction in its weight."""
        result = nn.Linear(self.layer.in_features, self.layer.out_features, bias=False)
        result.weight.data = self.layer.weight + self.scale * self.b @ self.a
        return result


NAMES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def each_linear(model):
    """(module, name of its child) for every linear layer of the blocks."""
    return [
        (m, name)
        for m in model.model.layers.modules()
        for name, _ in list(m.named_children())
        if name in NAMES
    ]


before = model(ids)
model.requires_grad_(False)
torch.manual_seed(2)
for module, name in each_linear(model):
    setattr(module, name, LoRA(getattr(module, name)))
assert torch.equal(model(ids), before)
learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"{learned} of {sum(p.numel() for p in model.parameters())} parameters are learned")
assert learned == 2 * 8 * (64 + 64 + 2 * (64 + 32) + 64 + 64 + 2 * (64 + 192) + 192 + 64)

# %% [markdown]
# > **Exercise 3.2.** How many parameters does LoRA of rank 8 add to one layer of this model: q (64 to 64), k and v (64 to 32), o (64 to 64),
# > gate and up (64 to 192), down (192 to 64)?
# >
# > **练习 3.2。** 秩为 8 时，该模型一层的 LoRA 共增加多少参数？

# %%
count_3_2 = ...
check("3.2", count_3_2)

# %%
frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
lora = train(model, ["Cry"], STEPS, 1e-2)
assert all(torch.equal(p, frozen[name]) for name, p in model.named_parameters() if name in frozen)
pyplot = plot()
pyplot.plot(full, label="Shout and Spell, all parameters")
pyplot.plot(lora, label="Cry, LoRA")
pyplot.yscale("log")
pyplot.xlabel("step")
pyplot.ylabel("loss of the answers")
pyplot.legend()
pyplot.show()

# %% [markdown]
# ## 3.5 The same with peft
#
# peft is the usual library for adapters. We give its adapter our matrices and ask for scores, and for the gradients of one batch. **Predict:** which
# of its 28 matrices have a gradient of zero in the first step of a training, when `B` is zero?
#
# **与 peft 核对。** 把我们的矩阵装进 peft 的适配器，输出与梯度必须一致。先猜：训练第一步（`B` 为零）时，哪些矩阵的梯度为零？

# %%
from peft import LoraConfig, get_peft_model
from transformers.utils import logging

logging.disable_progress_bar()
warnings.filterwarnings("ignore", "`is_gradient_checkpointing`")  # peft uses an older name of transformers'
pretuned = hugging_face()  # the model before the adapter
pretuned.load_state_dict({name.replace(".layer.", "."): p for name, p in frozen.items()})
pretuned.save_pretrained(folder / "tuned")
tokens = tokenizer()
tokens.chat_template = (
    "{% for m in messages %}{% if m['role'] == 'user' %}"
    + TEMPLATE.format(question="{{ m['content'] }}")
    + "{% else %}{{ m['content'] }}<end>{% endif %}{% endfor %}"
)
tokens.save_pretrained(folder / "tuned")
pretuned.name_or_path = str(folder / "tuned")  # the adapter notes what it belongs to
theirs = get_peft_model(
    pretuned, LoraConfig(r=8, lora_alpha=16, target_modules=list(NAMES), task_type="CAUSAL_LM")
)
assert sum(p.numel() for p in theirs.parameters() if p.requires_grad) == learned

# A task that the adapter has not learned, so that there is something to learn and the gradients are large.
ids, labels = batch_of(["Shout"], torch.Generator().manual_seed(5), 8)
zero = theirs(input_ids=ids, labels=labels)
zero.loss.backward()  # B is zero still
still = [name for name, p in theirs.named_parameters() if p.requires_grad and not p.grad.any()]
print(len(still), "matrices without a gradient, all of them A:", all("lora_A" in name for name in still))
assert len(still) == 14 and all("lora_A" in name for name in still)

ours = dict(model.named_parameters())
theirs.zero_grad()
with torch.no_grad():
    for name, p in theirs.named_parameters():
        if p.requires_grad:
            short = name.removeprefix("base_model.model.").replace("lora_A.default.weight", "a")
            p.copy_(ours[short.replace("lora_B.default.weight", "b")])
theirs.eval()
result = theirs(input_ids=ids, labels=labels)
result.loss.backward()
model.zero_grad()
loss_of(model(ids), labels).backward()
far, largest = 0.0, 0.0
for name, p in theirs.named_parameters():
    if p.requires_grad:
        short = name.removeprefix("base_model.model.").replace("lora_A.default.weight", "a")
        by_us = ours[short.replace("lora_B.default.weight", "b")].grad
        far, largest = max(far, (p.grad - by_us).abs().max().item()), max(largest, by_us.abs().max().item())
print(f"largest difference of the scores {(result.logits - model(ids)).abs().max():.1e}")
print(f"largest gradient {largest:.2f}, largest difference {far:.1e}")
assert torch.allclose(result.logits, model(ids), atol=1e-3) and far < 1e-3 * largest and largest > 0.01
theirs.save_pretrained(folder / "adapter")

# %% [markdown]
# ## 3.6 Merge
#
# After the training the correction can be added to the weight: the result is an ordinary model, as fast as before, with the adapter's outputs. We
# do it by hand, and the toolkit's `convert` does it with the adapter that peft has just written. It also proves the result.
#
# **合并。** 训练后把修正加到权重上，就得到普通模型，输出与适配器一致。我们亲手合并一次，再用工具集的 `convert` 合并 peft 写出的适配器，两者比较。

# %%
with torch.no_grad():
    adapter = model(ids)
    for module, name in each_linear(model):
        setattr(module, name, getattr(module, name).merged())
    merged = model(ids)
print("largest difference of the scores", (merged - adapter).abs().max().item())
assert torch.allclose(merged, adapter, atol=1e-3)

# %%
import shutil

from safetensors.torch import load_file

shutil.rmtree(folder / "merged", ignore_errors=True)
(folder / "merge.yaml").write_text("convert: {source: adapter, output: merged}\n")
print(toolkit(folder, "convert", "merge.yaml"))
converted = load_file(folder / "merged/model.safetensors")
by_hand = model.state_dict()
print("largest difference of a weight", max((converted[n] - by_hand[n]).abs().max().item() for n in by_hand))
assert set(converted) == set(by_hand) and all(
    torch.allclose(converted[n], by_hand[n], atol=1e-5) for n in by_hand
)

# %% [markdown]
# ## 3.7 Chat and evaluation
#
# To answer, the model continues the template until the end token. Our loop takes the most probable token; the toolkit's `chat`, which calls
# transformers' `generate` and takes the template from the tokenizer, must say the same.
#
# **对话与评测。** 模型续写模板直到结束符。我们的贪心循环应与工具集的 `chat`（内部为 transformers 的 `generate`）一致。

# %%
asked = [f"Cry: {word}" for word in held_out[:4]]
(folder / "talk.yaml").write_text("generate: {model: merged, max_new_tokens: 12}\n")
typed = [line for question in asked for line in (question, "/clear")]  # each question by itself
told = toolkit(folder, "chat", "talk.yaml", typed="\n".join([*typed, "/exit", ""]))
print(told)
for question in asked:
    assert answer(model, question) in told, question

scores = {task: score(model, task) for task in TASKS}
print("before LoRA:", {task: f"{value:.0%}" for task, value in before_lora.items()})
print("after LoRA: ", {task: f"{value:.0%}" for task, value in scores.items()})

# %% [markdown]
# **Predict before you look again:** the adapter learned `Cry` alone. What has become of `Shout` and `Spell`, which the model knew before? Fine-tuning
# on a new task alone makes a model forget others; a mixture keeps them. While the adapter is not merged, the old model is only a switch away:
#
# **思考：** 适配器只学了 `Cry`，之前会的 `Shout` 与 `Spell` 得分为何变化？只在新任务上微调会使模型遗忘旧任务；混合数据可以避免。
# 未合并之前，关掉适配器即可回到原模型：

# %%
assert scores["Shout"] < before_lora["Shout"] and scores["Spell"] < before_lora["Spell"]
with theirs.disable_adapter(), torch.no_grad():
    prompt = torch.tensor([ids_of(TEMPLATE.format(question="Shout: rose"))])
    old = theirs.generate(
        input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False
    )
print("without the adapter: Shout: rose ->", text_of(old[0, prompt.shape[1] :].tolist()))
print("with it, merged:     Shout: rose ->", answer(model, "Shout: rose"))

# %% [markdown]
# Benchmarks often score without writing: which of four endings does the model find the most probable? We make 24 questions in the form of HellaSwag from
# half lines of Shakespeare, for the pretrained model: one ending is the real one. By hand, an ending's score is the sum of the log-probabilities of its
# bytes. The toolkit's `evaluate` (with lm-eval's prompts and measures) must find the same numbers. **Predict:** what share does chance
# get, and how far will 0.1 million parameters come?
#
# **不写出答案的评测。** 四个结尾中，模型认为哪个概率最大？我们用莎士比亚的半行诗做 24 道 HellaSwag 形式的题来评测预训练模型。手算：结尾的得分是各字节对数概率之和。
# 工具集的 `evaluate`（使用 lm-eval 的提示与指标）必须得到同样的数。先猜：随机猜能得多少？

# %%
import random

pretrained = Llama()
pretrained.load_state_dict(base())
library = hugging_face()
library.load_state_dict(base())
library.save_pretrained(folder / "pretrained")
tokens.save_pretrained(folder / "pretrained")

chooser, lines, questions = random.Random(0), [], []
for line in corpus().splitlines():
    if 30 < len(line) < 50:
        parts = line.split()
        lines.append((" ".join(parts[: len(parts) // 2]), " ".join(parts[len(parts) // 2 :])))
for number in range(24):
    (begin, right), *others = chooser.sample(lines, 4)
    endings = [right, *(ending for _, ending in others)]
    chooser.shuffle(endings)
    question = {
        "ind": number,
        "activity_label": "Shakespeare",
        "ctx_a": begin,
        "ctx_b": "",
        "endings": endings,
    }
    more = {"ctx": begin, "split": "val", "split_type": "indomain", "source_id": "course"}
    questions.append(question | more | {"label": endings.index(right)})
(folder / "scenes").mkdir(exist_ok=True)
(folder / "scenes/hellaswag_val.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
(folder / "scores.yaml").write_text(
    "generate: {model: pretrained}\nevaluate: {benchmarks: {hellaswag: scenes}, output: scores}\n"
)
shutil.rmtree(folder / "scores", ignore_errors=True)
print(toolkit(folder, "evaluate", "scores.yaml"))


@torch.no_grad()
def likelihood(model, prompt, ending):
    """The log-probability of an ending behind a prompt."""
    ids = torch.tensor([ids_of(prompt + ending)])
    chances = model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])
    return chances[0, len(ids_of(prompt)) - 1 :].sum().item()


samples = [json.loads(line) for line in (folder / "scores/samples.jsonl").read_text().splitlines()]
of_prompt = {sample["prompt"]: sample["answers"] for sample in samples}
hits, apart = 0, 0.0
for question in questions:
    prompt = f"Shakespeare: {question['ctx_a']}"
    by_hand = [likelihood(pretrained, prompt, " " + ending) for ending in question["endings"]]
    apart = max(apart, *(abs(a - b) for a, (b, _) in zip(by_hand, of_prompt[prompt], strict=True)))
    hits += by_hand.index(max(by_hand)) == question["label"]
share = json.loads((folder / "scores/results.json").read_text())["results"]["hellaswag"]["score"]
print(f"by hand {hits} of 24; largest difference of a score {apart:.1e}")
assert apart < 1e-2 and abs(share - hits / 24) < 1e-9

# %% [markdown]
# ## 3.8 Conversion to Megatron by hand
#
# Megatron keeps the same numbers in another order: query, key and value in one matrix, group after group; gate and up in one. Chapter 2 has
# carried weights from Megatron to transformers' names; now we derive the other direction and compare the scores. For large models
# `python -m megatron_ms convert` with `convert.to=megatron` does the same, divides the weights among ranks and proves the result (with MindSpeed-LLM's
# converters, after `bash auto_convert.sh llm`).
#
# **手工转换到 Megatron。** 同样的数，不同的排列：q/k/v 按组拼成一个矩阵，gate 与 up 拼成一个矩阵。第 2 章做了相反的方向。搬运后比较输出。
# 对大模型，`python -m megatron_ms convert` 完成同样的工作，并切分到各进程、验证结果。


# %%
def to_megatron(source, heads=4, groups=2, width=64):
    """The weights of transformers' Llama under Megatron's names."""
    result = {
        "embedding.word_embeddings.weight": source["model.embed_tokens.weight"],
        "decoder.final_layernorm.weight": source["model.norm.weight"],
        "output_layer.weight": source["lm_head.weight"],
    }
    for n in range(2):
        old, new = f"model.layers.{n}.", f"decoder.layers.{n}."
        q, k, v = (source[f"{old}self_attn.{part}_proj.weight"].view(groups, -1, width) for part in "qkv")
        result[f"{new}self_attention.linear_qkv.weight"] = torch.cat([q, k, v], 1).reshape(-1, width)
        result[f"{new}self_attention.linear_proj.weight"] = source[f"{old}self_attn.o_proj.weight"]
        gate, up = source[f"{old}mlp.gate_proj.weight"], source[f"{old}mlp.up_proj.weight"]
        result[f"{new}mlp.linear_fc1.weight"] = torch.cat([gate, up])
        result[f"{new}mlp.linear_fc2.weight"] = source[f"{old}mlp.down_proj.weight"]
        result[f"{new}input_layernorm.weight"] = source[f"{old}input_layernorm.weight"]
        result[f"{new}pre_mlp_layernorm.weight"] = source[f"{old}post_attention_layernorm.weight"]
    return result


sys.path.insert(0, str(megatron()))
for variable, value in {
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29517",
    "RANK": "0",
    "WORLD_SIZE": "1",
}.items():
    os.environ.setdefault(variable, value)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Megatron warns of each library for CUDA that is absent
    from megatron.core import parallel_state, tensor_parallel

    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1, inference_rng_tracker=True)
    other = megatron_model().eval()

weights = to_megatron(model.state_dict())
missing, unexpected = other.load_state_dict(weights, strict=False)
assert not unexpected and all("_extra_state" in name for name in missing), (missing, unexpected)
length = ids.shape[1]
mask = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), 1)
with torch.no_grad():
    in_megatron = other(ids, torch.arange(length).expand_as(ids), mask)
print("largest difference of the scores", (in_megatron - model(ids)).abs().max().item())
assert torch.allclose(in_megatron, model(ids), atol=1e-3, rtol=1e-4)
back = from_megatron(weights)
assert all(
    torch.equal(back[name], p) for name, p in model.state_dict().items()
)  # there and back, bit for bit

# %% [markdown]
# > **Exercise 3.3.** 4 query heads, 2 groups, head size 16. In Megatron's `linear_qkv`, at which row do the keys of the second group begin?
# >
# > **练习 3.3。** 4 个查询头、2 组、头维度 16：在 `linear_qkv` 中，第二组的 key 从第几行开始？

# %%
row_3_3 = ...
check("3.3", row_3_3)

# %% [markdown]
# > **On Ascend.** `python -m megatron_ms train run.yaml run.task=lora` fine-tunes with MindSpeed-LLM, `run.backend=hf` with transformers; both also on the
# > **simulated** NPU. They have not run on a card yet.
# >
# > **在昇腾上。** `run.task=lora` 使用 MindSpeed-LLM 微调，`run.backend=hf` 使用 transformers；两者也可在**模拟的** NPU 上运行。尚未在真实加速卡上运行过。

# %% [markdown]
# ## 3.9 Closing checks
#
# 结束检查

# %%
assert full[-1] < full[0] / 5 and lora[-1] < lora[0] / 5
assert torch.allclose(merged, adapter, atol=1e-3) and far < 1e-3 * largest
assert scores["Cry"] >= 0.5, "most held-out words should be cried right"
torch.distributed.destroy_process_group()
print("Chapter 3 is finished. 第 3 章完成。")

# %% [markdown]
# Read on: [prepare data](../docs/toolkit_data.md), [convert models](../docs/toolkit_conversion.md), [generate, chat,
# evaluate](../docs/toolkit_inference.md). Next chapter: [reinforcement learning](4_reinforcement_learning.ipynb).
