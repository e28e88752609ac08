"""A toy task for train_rl.py of Megatron-LM 0.19.0: its data, its arguments, and what its numbers must be.

The environment is upstream's countdown: to reach 7 with the numbers 3 and 4. The vocabulary has whole answers as words, so that a
model with random weights is sometimes right.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy

# The reward of an answer, which upstream's environment gives: 1 if it is right, 0.1 for any other in the right form, 0 for none.
ANSWERS = {
    "<answer>3+4</answer>": 1.0,
    "<answer>4+3+0</answer>": 0.1,  # 0 is not among the numbers
    "<answer>3*4</answer>": 0.1,
    "<answer>4-3</answer>": 0.1,
}
_SPECIAL = [
    "<unk>",
    "<pad>",
    "<s>",
    "</s>",
]  # the padding must not be number 0, which upstream takes for none
WORDS = [*_SPECIAL, *ANSWERS, *["Using", "the", "numbers", "an", "equation", "that", "You", "can"]]

# Packages that train_rl.py imports, and that no environment of auto_convert.sh has.
PACKAGES = "wandb openai httpx_aiohttp quart hypercorn fastapi uvicorn datasets msgpack zmq transformers"

LAYERS, WIDTH, HEADS, GROUPS = 2, 64, 4, 2
VARIABLES = {
    "MSADAPTER_TRITON": "1",
    "MSADAPTER_TRANSFORMER_ENGINE": "1",
    "MSADAPTER_FLASH_ATTN": "1",
    "TRITON_INTERPRET": "1",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}
_ARGUMENTS = """
--perform-rl-step --langrl-env-config {data}/env.yaml --grpo-prompts-per-step 2 --grpo-group-size 8 --grpo-iterations 2
--global-batch-size 16 --micro-batch-size 1 --grpo-clamp-eps-lower 0.2 --grpo-clamp-eps-upper 0.2 --grpo-kl-beta 0
--seq-length {length} --max-position-embeddings {length} --inference-max-seq-length {length} --inference-max-requests 16
--inference-dynamic-batching-buffer-size-gb 0.01 --inference-dynamic-batching-max-tokens 512
--bf16 --transformer-impl transformer_engine --te-rng-tracker --attention-backend flash --no-gradient-accumulation-fusion
--tokenizer-type HuggingFaceTokenizer --tokenizer-model {data} --make-vocab-size-divisible-by 8
--num-layers {layers} --hidden-size {width} --num-attention-heads {heads} --group-query-attention --num-query-groups {groups}
--swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights --disable-bias-linear
--attention-dropout 0 --hidden-dropout 0 --no-rope-fusion --no-bias-swiglu-fusion --no-masked-softmax-fusion
--no-bias-dropout-fusion --attention-softmax-in-fp32 --calculate-per-token-loss --init-method-std 0.1
--optimizer adam --lr 3e-3 --min-lr 3e-3 --lr-decay-style constant --weight-decay 0 --clip-grad 1.0
--mock-data --eval-iters 0 --eval-interval 10000 --log-interval 1 --num-workers 0 --seed 1234
--no-create-attention-mask-in-dataloader --use-mcore-models --ckpt-format torch_dist
"""


@dataclass(frozen=True)
class Case:
    """A run of `updates` updates, two for each collection of answers."""

    processes: int
    layout: str = ""
    updates: int = 4


@dataclass(frozen=True)
class Refusal:
    """A run that ends in an error of upstream, of which `message` is a part; `dropped`: flags that it does not have."""

    what: str
    message: str
    dropped: str = ""
    words: str = ""


# So long that several answers with their questions, of 55 tokens and more, fit into a bin.
_PACKED = (
    "--rl-use-sequence-packing --seq-length 160 --max-position-embeddings 160 --inference-max-seq-length 160"
)
CASES = {
    "reinforcement learning": Case(1, updates=8),
    "reinforcement learning, packed": Case(1, _PACKED),
    "reinforcement learning, data": Case(2),
    "reinforcement learning, tensor": Case(2, "--tensor-model-parallel-size 2"),
}
REFUSALS = {
    "reinforcement learning, float32": Refusal(
        "`train_rl.py` without `--bf16`: `get_logprobs` gives the model an argument that only its wrapper for 16 bits takes",
        "unexpected keyword argument 'fp32_output'",
        dropped="--bf16",
    ),
    "reinforcement learning, local layers": Refusal(
        "`train_rl.py --transformer-impl local`: every sequence is given as a packed one",
        "Please use TEDotProductAttention instead.",
        words="--transformer-impl local --no-persist-layer-norm",
    ),
}
NEAR = 0.05  # how far log probabilities in bfloat16, as low as -6, may be from those of the formulas
LENGTH = 80  # 53 tokens of the question, and at most 27 of the answer


def arguments(data: Path) -> list[str]:
    """The command line without the layout. One collection of answers serves two updates."""
    sizes = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "groups": GROUPS}
    return _ARGUMENTS.format(data=data, length=LENGTH, **sizes).split()


def without_flags(words: list[str], flags: str) -> list[str]:
    """The words without these flags, which have no values."""
    return [word for word in words if word not in flags.split()]


def prepare(folder: Path) -> None:
    """Write a tokenizer, the questions, and the file that names the environment."""
    import pyarrow
    from pyarrow import parquet

    (folder / "questions").mkdir(parents=True)
    count = 327680 + 1024 + 1  # more than the environment divides into its two parts
    questions = {"target": [7] * count, "nums": [[3, 4]] * count}
    parquet.write_table(pyarrow.table(questions), folder / "questions/train.parquet")
    model = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "<unk>"}
    parts = {
        "version": "1.0",
        "model": model,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "added_tokens": [],
    }
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    fast = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": template}
    written = {
        "tokenizer.json": parts,
        "tokenizer_config.json": fast | names,
        "config.json": {"model_type": "llama", "vocab_size": len(WORDS)},
        "env.yaml": [  # JSON is YAML, too
            {
                "agent_type": "CountdownAgent",
                "agent_args": {"hf_dataset_name": str(folder / "questions"), "split": "train"},
                "weight": 1.0,
            }
        ],
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content))


def reward(tokens, generated) -> float:
    """The reward of an answer: that of the last word in the right form among those that were generated."""
    words = [WORDS[token] for token, mine in zip(tokens, generated, strict=True) if mine]
    return next((ANSWERS[word] for word in reversed(words) if word in ANSWERS), 0.0)


def advantages(rewards: numpy.ndarray) -> numpy.ndarray:
    """How much better than its group each answer is, in standard deviations; `rewards` has a row for each group."""
    return (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, keepdims=True) + 1e-4)


def merged(parts: list[dict]) -> dict[str, numpy.ndarray]:
    """The weights of the whole model from those of the ranks of a tensor-parallel group."""
    if len(parts) == 1:
        return parts[0]

    def whole(name: str) -> numpy.ndarray:
        pieces = [part[name] for part in parts]
        if "layer_norm_weight" in name or "layernorm" in name:
            return pieces[0]
        if "linear_fc1" in name:  # each rank has a half of the gates, and the same half of the values
            gates, values = zip(*(numpy.split(piece, 2) for piece in pieces), strict=True)
            return numpy.concatenate([*gates, *values])
        return numpy.concatenate(pieces, int("linear_proj" in name or "linear_fc2" in name))

    return {name: whole(name) for name in parts[0] if "_extra_state" not in name}


def log_probabilities(weights: dict, tokens: numpy.ndarray) -> numpy.ndarray:
    """The log probability of each token after the first one, by the formulas of the model in float64."""
    get = {name: value.astype(numpy.float64) for name, value in weights.items()}
    x = get["embedding.word_embeddings.weight"][tokens]
    for number in range(LAYERS):
        layer = {name.removeprefix(f"decoder.layers.{number}."): value for name, value in get.items()}
        x = x + _attention(layer, _norm(x) * layer["self_attention.linear_qkv.layer_norm_weight"])
        inner = _norm(x) * layer["mlp.linear_fc1.layer_norm_weight"]
        gate, value = numpy.split(inner @ layer["mlp.linear_fc1.weight"].T, 2, -1)
        x = x + (gate / (1 + numpy.exp(-gate)) * value) @ layer["mlp.linear_fc2.weight"].T
    logits = (_norm(x) * get["decoder.final_layernorm.weight"]) @ get["output_layer.weight"].T
    logits = logits[:-1]
    top = logits.max(-1, keepdims=True)
    chosen = numpy.take_along_axis(logits, tokens[1:, None], -1)
    return (chosen - top - numpy.log(numpy.exp(logits - top).sum(-1, keepdims=True)))[:, 0]


def _norm(x: numpy.ndarray) -> numpy.ndarray:
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _attention(layer: dict, x: numpy.ndarray) -> numpy.ndarray:
    count, size, each = len(x), WIDTH // HEADS, HEADS // GROUPS
    mixed = (x @ layer["self_attention.linear_qkv.weight"].T).reshape(count, GROUPS, each + 2, size)
    query, key, value = mixed[:, :, :each], mixed[:, :, each], mixed[:, :, each + 1]
    angles = numpy.arange(count)[:, None] / 10000 ** (numpy.arange(0, size, 2) / size)
    angles = numpy.concatenate([angles, angles], -1)
    query, key = _turned(query, angles[:, None, None]), _turned(key, angles[:, None])
    scores = numpy.einsum("qgrd,kgd->grqk", query, key) / size**0.5
    scores = numpy.where(numpy.tri(count, dtype=bool), scores, -numpy.inf)
    parts = numpy.exp(scores - scores.max(-1, keepdims=True))
    out = numpy.einsum("grqk,kgd->qgrd", parts / parts.sum(-1, keepdims=True), value)
    return out.reshape(count, WIDTH) @ layer["self_attention.linear_proj.weight"].T


def _turned(x: numpy.ndarray, angles: numpy.ndarray) -> numpy.ndarray:
    first, second = numpy.split(x, 2, -1)
    return x * numpy.cos(angles) + numpy.concatenate([-second, first], -1) * numpy.sin(angles)
