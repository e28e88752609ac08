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
# At the end of this chapter you have derived by hand what a fine-tuning learns from and what not, written LoRA in thirty lines and merged it, carried
# a model of Hugging Face over to Megatron Core weight by weight, talked with it and scored it. It takes about 60 minutes. You need
# chapter 1, and chapter 2 for the words of Megatron.
#
# **第 3 章 微调：模板、掩码、LoRA、权重转换与对话。** 学完本章，你会亲手推导微调时哪些 token 参与学习，用三十行实现并合并 LoRA，
# 逐个权重地把 Hugging Face 模型搬到 Megatron Core，与它对话并评测。约需 60 分钟。

# %% [markdown]
# ## 3.1 A result first
#
# A tiny Llama with bytes for tokens learns two tasks from instructions: to shout a word (`Shout: rose` becomes `ROSE`) and to spell it (`Spell: rose`
# becomes `r-o-s-e`). A third, to cry it (`Cry: rose` becomes `R-O-S-E`), it learns later with LoRA. The words come from Shakespeare.
#
# **先看结果。** 一个以字节为 token 的小型 Llama 从指令中学会两件事：把单词变成大写，以及逐字母拼读。之后再用 LoRA 学会第三件：大写拼读。
# 单词来自莎士比亚。

# %%
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msadapter

msadapter.install()

import torch
from lesson import FAST, ROOT, check, corpus, plot, work
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

folder = work(3)
words = sorted(set(re.findall(r"\b[a-z]{3,5}\b", corpus())))
held_out, words = words[::10], [w for i, w in enumerate(words) if i % 10]
END = 256  # after the 256 bytes
TASKS = {"Shout": str.upper, "Spell": "-".join, "Cry": lambda word: "-".join(word.upper())}
config = LlamaConfig(
    vocab_size=257,
    hidden_size=64,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    tie_word_embeddings=False,
    bos_token_id=None,
    eos_token_id=END,
    pad_token_id=END,
)
torch.manual_seed(0)
model = LlamaForCausalLM(config)
print(
    f"{len(words)} words to learn from, {len(held_out)} held out; {sum(p.numel() for p in model.parameters())} parameters"
)

# %% [markdown]
# ## 3.2 The template and the mask
#
# A template turns instruction and answer into one text. The model must learn the answer and the end token, and nothing of the question: labels of the
# question are -100, which cross entropy leaves out. **Predict before you run:** how many labels does `Shout: ox` with the answer `OX` have?
#
# **模板与掩码。** 模板把指令与回答拼成一段文本。只有回答与结束符参与学习，问题部分的标签为 -100。先猜：`Shout: ox` / `OX` 有几个有效标签？

# %%
TEMPLATE = "### Instruction:\n{question}\n\n### Response:\n"


def sample_of(question, answer):
    """The ids of a sample, and its labels: -100 where nothing is learned."""
    prompt, reply = list(TEMPLATE.format(question=question).encode()), [*answer.encode(), END]
    return prompt + reply, [-100] * len(prompt) + reply


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
# 工具集支持多种模板，并能显示哪些 token 会被学习。

# %%
(folder / "chat.jsonl").write_text(
    json.dumps({"instruction": "Shout: ox", "input": "", "output": "OX"}) + "\n"
)
(folder / "chat.yaml").write_text(
    "data:\n  task: instruction\n  sources: chat.jsonl\n  tokenizer: bytes\n  template: alpaca\n  output: chat\n  seq_length: 256\n"
)
done = subprocess.run(
    [sys.executable, "-m", "megatron_ms", "data", "chat.yaml", "--show", "1"],
    cwd=folder,
    capture_output=True,
    text=True,
    env=os.environ | {"PYTHONPATH": str(ROOT)},
)
print(done.stdout)
assert done.returncode == 0 and "3 learned" in done.stdout and "⟦OX" in done.stdout, done.stderr

# %% [markdown]
# > **Exercise 3.1.** The sample is the question `Spell: ox` with the answer `o-x`. How many labels are not -100, and what is the first of them
# > (a byte's number)?
# >
# > **练习 3.1。** 样本为 `Spell: ox`，回答 `o-x`：有效标签有几个？第一个是多少（字节值）？

# %%
mask_3_1 = ...  # (how many, the first)
check("3.1", mask_3_1)

# %% [markdown]
# ## 3.3 Full fine-tuning
#
# The loss is the cross entropy of the next token, over the learned labels only. We train all parameters on a mixture of the first two tasks.
#
# **全参数微调。** 损失只在有效标签上计算。先学前两个任务的混合。


# %%
def batch_of(tasks, generator, count=32):
    chosen = [words[i] for i in torch.randint(len(words), (count,), generator=generator).tolist()]
    samples = [
        sample_of(f"{tasks[i % len(tasks)]}: {word}", TASKS[tasks[i % len(tasks)]](word))
        for i, word in enumerate(chosen)
    ]
    longest = max(len(ids) for ids, _ in samples)
    ids = torch.tensor([ids + [END] * (longest - len(ids)) for ids, _ in samples])
    labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in samples])
    return ids, labels


def loss_of(model, ids, labels):
    scores = model(input_ids=ids, use_cache=False).logits
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # -100 is left out


def train(model, tasks, steps, lr):
    generator = torch.Generator().manual_seed(1)
    chosen = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(chosen, lr=lr, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    losses = []
    for _ in range(steps):
        loss = loss_of(model, *batch_of(tasks, generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(chosen, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


ids, labels = batch_of(["Shout"], torch.Generator().manual_seed(3), 4)
assert torch.isclose(
    loss_of(model, ids, labels), model(input_ids=ids, labels=labels).loss, atol=1e-6
)  # transformers' own
chances = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
learned_labels = [
    (row, at) for row in range(4) for at in range(labels.shape[1] - 1) if labels[row, at + 1] != -100
]
by_hand = -sum(chances[row, at, labels[row, at + 1]] for row, at in learned_labels) / len(learned_labels)
assert torch.isclose(loss_of(model, ids, labels), by_hand, atol=1e-5)
STEPS = 250 if FAST else 500
full = train(model, ["Shout", "Spell"], 2 * STEPS, 4e-3)
print(f"loss {full[0]:.3f} -> {full[-1]:.3f}")

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


before = model(input_ids=ids).logits
model.requires_grad_(False)
torch.manual_seed(2)
for module, name in each_linear(model):
    setattr(module, name, LoRA(getattr(module, name)))
assert torch.equal(model(input_ids=ids).logits, before)
learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"{learned} of {sum(p.numel() for p in model.parameters())} parameters are learned")

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
# ## 3.5 Merge
#
# After the training the correction can be added to the weight: the result is an ordinary model, as fast as before, with the adapter's outputs.
#
# **合并。** 训练后把修正加到权重上，就得到普通模型，输出与适配器一致。

# %%
with torch.no_grad():
    adapter = model(input_ids=ids).logits
    for module, name in each_linear(model):
        setattr(module, name, getattr(module, name).merged())
    merged = model(input_ids=ids).logits
print("largest difference", (merged - adapter).abs().max().item())
assert torch.allclose(merged, adapter, atol=1e-3)
from transformers.utils import logging

logging.disable_progress_bar()
model.save_pretrained(folder / "merged")
again = LlamaForCausalLM.from_pretrained(folder / "merged")
assert torch.equal(again(input_ids=ids).logits, merged)

# %% [markdown]
# ## 3.6 Chat and evaluation
#
# To answer, the model continues the template until the end token. Our loop takes the most probable token; transformers' `generate` must give the
# same text.
#
# **对话与评测。** 模型续写模板直到结束符。我们的贪心循环应与 transformers 的 `generate` 一致。


# %%
@torch.no_grad()
def answer(model, question, most=12):
    ids = torch.tensor([list(TEMPLATE.format(question=question).encode())])
    start = ids.shape[1]
    while ids.shape[1] < start + most and ids[0, -1] != END:
        ids = torch.cat([ids, model(input_ids=ids, use_cache=False).logits[:, -1:].argmax(-1)], 1)
    return bytes(i for i in ids[0, start:].tolist() if i < 256).decode(errors="replace")


question = f"Cry: {held_out[5]}"
prompt = torch.tensor([list(TEMPLATE.format(question=question).encode())])
library = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
assert answer(model, question) == bytes(i for i in library[0, prompt.shape[1] :].tolist() if i < 256).decode(
    errors="replace"
)
for word in held_out[:4]:
    print(f"Cry: {word:6} -> {answer(model, f'Cry: {word}')}")


def score(model, task, count=20 if FAST else 60):
    """The share of held-out words whose answer is right to the letter."""
    asked = held_out[:: max(1, len(held_out) // count)][:count]
    return sum(answer(model, f"{task}: {word}") == TASKS[task](word) for word in asked) / len(asked)


scores = {task: score(model, task) for task in TASKS}
print({task: f"{value:.0%}" for task, value in scores.items()})

# %% [markdown]
# **Predict before you look again:** the adapter learned `Cry` alone. What has become of `Shout` and `Spell`? Fine-tuning on a new task alone makes a
# model forget others; a mixture keeps them. While the adapter is not merged, the old model is only a switch away.
#
# **思考：** 适配器只学了 `Cry`，`Shout` 与 `Spell` 的得分为何变化？只在新任务上微调会使模型遗忘旧任务；混合数据可以避免。
# 未合并之前，去掉适配器即可回到原模型。
#
# ## 3.7 Conversion to Megatron by hand
#
# Megatron keeps the same numbers in another order: query, key and value in one matrix, group after group; gate and up in one. Let us carry
# over one model and compare its scores. `python -m megatron_ms convert` does the same for large models, and divides them among ranks.
#
# **手工转换到 Megatron。** 同样的数，不同的排列：q/k/v 按组拼成一个矩阵，gate 与 up 拼成一个矩阵。搬运后比较输出。

# %%
build = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build"))
assert (build / "megatron/megatron/core").is_dir(), (
    "run bash auto_convert.sh first, which converts Megatron Core"
)
sys.path.insert(0, str(build / "megatron"))
for variable, value in {
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29517",
    "RANK": "0",
    "WORLD_SIZE": "1",
}.items():
    os.environ.setdefault(variable, value)
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Megatron warns of each library for CUDA that is absent
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1, inference_rng_tracker=True)
    other = GPTModel(
        TransformerConfig(
            num_layers=2,
            hidden_size=64,
            ffn_hidden_size=192,
            num_attention_heads=4,
            num_query_groups=2,
            normalization="RMSNorm",
            layernorm_epsilon=config.rms_norm_eps,
            gated_linear_unit=True,
            activation_func=F.silu,
            add_bias_linear=False,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            use_cpu_initialization=True,
            gradient_accumulation_fusion=False,
            masked_softmax_fusion=False,
            bias_activation_fusion=False,
            bias_dropout_fusion=False,
            persist_layer_norm=False,
        ),
        get_gpt_layer_local_spec(normalization="RMSNorm"),
        257,
        64,
        position_embedding_type="rope",
        rotary_base=config.rope_parameters["rope_theta"],
        share_embeddings_and_output_weights=False,
    ).eval()


def to_megatron(source, heads=4, groups=2):
    """The weights of transformers' Llama under Megatron's names."""
    result = {
        "embedding.word_embeddings.weight": source["model.embed_tokens.weight"],
        "decoder.final_layernorm.weight": source["model.norm.weight"],
        "output_layer.weight": source["lm_head.weight"],
    }
    for n in range(2):
        old, new = f"model.layers.{n}.", f"decoder.layers.{n}."
        q, k, v = (source[f"{old}self_attn.{part}_proj.weight"].view(groups, -1, 64) for part in "qkv")
        result[f"{new}self_attention.linear_qkv.weight"] = torch.cat([q, k, v], 1).reshape(-1, 64)
        result[f"{new}self_attention.linear_proj.weight"] = source[f"{old}self_attn.o_proj.weight"]
        gate, up = source[f"{old}mlp.gate_proj.weight"], source[f"{old}mlp.up_proj.weight"]
        result[f"{new}mlp.linear_fc1.weight"] = torch.cat([gate, up])
        result[f"{new}mlp.linear_fc2.weight"] = source[f"{old}mlp.down_proj.weight"]
        result[f"{new}input_layernorm.weight"] = source[f"{old}input_layernorm.weight"]
        result[f"{new}pre_mlp_layernorm.weight"] = source[f"{old}post_attention_layernorm.weight"]
    return result


weights = to_megatron(model.state_dict())
missing, unexpected = other.load_state_dict(weights, strict=False)
assert not unexpected and all("_extra_state" in name for name in missing), (missing, unexpected)
length = ids.shape[1]
mask = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), 1)
with torch.no_grad():
    theirs = other(ids, torch.arange(length).expand_as(ids), mask)
    ours = model(input_ids=ids).logits
print("largest difference of the scores", (theirs - ours).abs().max().item())
assert torch.allclose(theirs, ours, atol=1e-3, rtol=1e-4)

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
# ## 3.8 Closing checks
#
# 结束检查

# %%
assert full[-1] < full[0] / 5 and lora[-1] < lora[0] / 5
assert learned == 2 * 8 * (64 + 64 + 2 * (64 + 32) + 64 + 64 + 2 * (64 + 192) + 192 + 64)
assert torch.allclose(merged, adapter, atol=1e-3)
assert scores["Cry"] >= 0.5, "most held-out words should be cried right"
torch.distributed.destroy_process_group()
print("Chapter 3 is finished. 第 3 章完成。")
