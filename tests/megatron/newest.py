"""Trainings with Megatron-LM core_v0.19.0, each compared with one process, and the page that shows them.

python -m pytest tests/megatron/test_newest.py tests/megatron/test_newest_layouts.py tests/megatron/test_newest_rl.py \\
    --junitxml=results.xml
python -m tests.megatron.newest results.xml    # adds what passed, removes what failed, and writes the page again
python -m tests.megatron.newest                # only writes the page again
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.megatron import lm_checkout as tools
from tests.megatron import newest_rl as rl
from tests.megatron.layouts import ROWS
from tests.npu import llm_measured as measured

RELEASE = "0.19.0"
TABLE = Path(__file__).with_name("newest_measured.tsv")
PAGE = Path(__file__).resolve().parents[2] / "docs/megatron_newest.md"

TENSOR, PIPELINE = "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2"
_TODAY = """--group-query-attention --num-query-groups 4 --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --disable-bias-linear"""
_LATENT = f"""{_TODAY} --multi-latent-attention --q-lora-rank 32 --kv-lora-rank 32 --qk-head-dim 16
    --qk-pos-emb-head-dim 16 --v-head-dim 16""".replace("--group-query-attention --num-query-groups 4", "")
_EXPERTS = f"{_TODAY} --num-experts 4 --moe-router-topk 2 --moe-aux-loss-coeff 0.01 --moe-ffn-hidden-size 64"
_HYBRID = """--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec --position-embedding-type none
    --hybrid-layer-pattern"""
_WORDS = "--split 100,0,0 --vocab-file {data}/vocab.txt --data-path {data}/text --tokenizer-type"
_IMAGES = "--img-h 28 --img-w 28 --patch-dim 14 --ckpt-format torch"
_SHARDED = "--use-megatron-fsdp --ckpt-format fsdp_dtensor --use-distributed-optimizer"


@dataclass(frozen=True)
class Case:
    """A training on one process, and a second one of the same model in a layout.

    start: "goes on", the second one starts from a checkpoint of the first in the middle; "weights", both start from the weights of
    a checkpoint, because Megatron cannot load the optimizer of experts in another layout; "anew", both make the same weights.
    engine: with the adapter's transformer_engine. data: needs the data set of sentences.
    dropped: options of the common arguments that the script does not take. connections: CUDA_DEVICE_MAX_CONNECTIONS of the second,
    for which Megatron has demands.
    """

    what: str
    model: str
    layout: str
    processes: int = 2
    script: str = "pretrain_gpt.py"
    engine: bool = False
    start: str = "goes on"
    data: bool = False
    dropped: str = ""
    connections: str = "1"

    @property
    def common(self) -> list[str]:
        """The arguments of the reference that the script takes."""
        words = tools.without(tools.COMMON, *self.dropped.split())
        return [*words, "--transformer-impl", "transformer_engine"] if self.engine else words


def _bert(layout: str) -> Case:
    words = f"{_WORDS} BertWordPieceLowerCase"
    dropped = "--mock-data --vocab-size --tokenizer-type"
    return Case(
        "BERT",
        words,
        layout,
        script="examples/bert/pretrain_bert.py",
        engine=True,
        data=True,
        dropped=dropped,
    )


def _t5(layout: str) -> Case:
    # 305 words are padded to 400 on one process and on two: a checkpoint of another size is refused.
    words = f"{_WORDS} BertWordPieceCase --seq-length 64 --decoder-seq-length 32 --make-vocab-size-divisible-by 100"
    dropped = "--mock-data --vocab-size --tokenizer-type --seq-length"
    return Case("T5", words, layout, script="examples/t5/pretrain_t5.py", data=True, dropped=dropped)


def _hybrid(pattern: str, layout: str, more: str = "", start: str = "goes on") -> Case:
    return Case(
        f"`pretrain_hybrid.py`, layers {pattern}",
        f"{_HYBRID} {pattern} {more}",
        layout,
        script="pretrain_hybrid.py",
        engine=True,
        start=start,
        dropped="--num-layers",
    )


def _sharded(strategy: str) -> Case:
    words = f"{_SHARDED} --data-parallel-sharding-strategy {strategy}"
    return Case(f"Megatron-FSDP, {strategy}", "", words, start="anew", connections="8")


CASES: dict[str, Case] = {
    "model of today, tensor": Case("grouped queries, SwiGLU, RMSNorm, rotary", _TODAY, TENSOR),
    "model of today, pipeline": Case("grouped queries, SwiGLU, RMSNorm, rotary", _TODAY, PIPELINE),
    "experts, all to all": Case(
        "experts",
        _EXPERTS,
        "--expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall",
        start="weights",
    ),
    "experts, all gather": Case(
        "experts",
        _EXPERTS,
        "--expert-model-parallel-size 2 --moe-token-dispatcher-type allgather",
        start="weights",
    ),
    "experts in one product, engine": Case(
        "experts in one product",
        f"{_EXPERTS} --moe-grouped-gemm",
        "--expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall",
        start="weights",
        engine=True,
    ),
    "latent attention, engine, tensor": Case("latent attention (MLA)", _LATENT, TENSOR, engine=True),
    "latent attention, engine, pipeline": Case("latent attention (MLA)", _LATENT, PIPELINE, engine=True),
    "latent attention with experts, engine": Case(
        "latent attention with experts",
        f"{_LATENT} --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 64",
        "--expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall",
        start="weights",
        engine=True,
    ),
    "several tokens predicted, engine": Case(
        "multi-token prediction", f"{_TODAY} --mtp-num-layers 1", TENSOR, engine=True
    ),
    "hybrid of attention and MLP": _hybrid("*-*-", TENSOR),
    "hybrid with experts": _hybrid(
        "*-*E",
        "--expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall",
        "--num-experts 4 --moe-router-topk 2 --moe-grouped-gemm --disable-bias-linear",
        start="weights",
    ),
    "BERT, engine, tensor": _bert(TENSOR),
    "BERT, engine, pipeline": _bert(PIPELINE),
    "T5, tensor": _t5(TENSOR),
    "LLaVA, engine, tensor": Case(
        "LLaVA (`pretrain_vlm.py`)", _IMAGES, TENSOR, script="pretrain_vlm.py", engine=True, start="anew"
    ),
    "Megatron-FSDP, optimizer sharded": _sharded("optim"),
    "Megatron-FSDP, gradients too": _sharded("optim_grads"),
    "Megatron-FSDP, parameters too": _sharded("optim_grads_params"),
    "PyTorch's FSDP2": Case(
        "`--use-torch-fsdp2`",
        "--untie-embeddings-and-output-weights",
        "--use-torch-fsdp2 --ckpt-format torch_dist",
        start="anew",
        connections="8",
    ),
}


@dataclass(frozen=True)
class Generation:
    """A program that generates the tokens of the engine for static batches on one process, with the same log probabilities."""

    processes: int
    layout: str = ""
    program: str = "gpt_static_inference.py"
    words: str = "--use-legacy-static-engine"
    variables: tuple[tuple[str, str], ...] = ()


_PAGES = "--inference-dynamic-batching-buffer-size-gb 0.01 --inference-dynamic-batching-max-tokens 64"
_DYNAMIC = (
    "gpt_dynamic_inference.py",
    _PAGES,
    (("MSADAPTER_FLASH_ATTN", "1"), ("TRITON_INTERPRET", "1")),
)
GENERATED: dict[str, Generation] = {
    "static inference engine, tensor": Generation(2, TENSOR),
    "static inference engine, pipeline": Generation(2, PIPELINE),
    "dynamic inference engine": Generation(1, "", *_DYNAMIC),
    "dynamic inference engine, tensor": Generation(2, TENSOR, *_DYNAMIC),
}


@dataclass(frozen=True)
class Refusal:
    """A program or a part of a model that does not run here, and a part of the last error that it prints.

    outcome: who refuses, and how. packages: modules that the environment must have, or the case is skipped; an environment that
    `auto_convert.sh` makes does not have them.
    """

    what: str
    words: str
    message: str
    script: str = "pretrain_gpt.py"
    engine: bool = False
    dropped: str = ""
    outcome: str = "refused by upstream"
    packages: str = ""


_SERVED = "--load {weights} --ckpt-format torch_dist --prompts 1 --num-tokens-to-generate 4"

REFUSALS: dict[str, Refusal] = {
    "latent attention, local layers": Refusal(
        "`--multi-latent-attention --transformer-impl local`",
        _LATENT,
        "unexpected keyword argument 'k_channels'",
    ),
    "Mamba layers": Refusal(
        "layers M of `pretrain_hybrid.py` and `pretrain_mamba.py`",
        f"{_HYBRID} M-*-",
        "MambaSSM is not installed",
        script="pretrain_hybrid.py",
        engine=True,
        dropped="--num-layers",
    ),
    "gated delta net": Refusal(
        "layers G of `pretrain_hybrid.py`",
        f"{_HYBRID} G-*-",
        "FLA is not installed",
        script="pretrain_hybrid.py",
        engine=True,
        dropped="--num-layers",
    ),
    "LLaVA, local layers": Refusal(
        "`pretrain_vlm.py --transformer-impl local`",
        _IMAGES,
        "LayerNorm.__init__() got an unexpected keyword argument 'config'",
        script="pretrain_vlm.py",
    ),
    "BERT, local layers": Refusal(
        "`examples/bert/pretrain_bert.py --spec local` without the engine",
        f"{_WORDS} BertWordPieceLowerCase --spec local",
        "Transformer Engine is not installed. Please use local Bert layer spec instead.",
        script="examples/bert/pretrain_bert.py",
        dropped="--mock-data --vocab-size --tokenizer-type",
    ),
    "LLaVA with energon": Refusal(
        "`examples/multimodal/train.py`, with torchvision and megatron-energon installed",
        "--language-model-type mistral_7b --tokenizer-prompt-format mistral",
        "name 'pretrain_cfg_container_from_args' is not defined",
        script="examples/multimodal/train.py",
        outcome="fails upstream: the function is not imported, and `pretrain` is called without the settings that it makes",
        packages="torchvision megatron.energon",
    ),
    "T5, pipeline": Refusal(
        "T5 with pipeline parallelism",
        f"{_WORDS} BertWordPieceCase --seq-length 64 --decoder-seq-length 32 {PIPELINE}",
        "Pipeline parallelism is not supported for T5.",
        script="examples/t5/pretrain_t5.py",
        dropped="--mock-data --vocab-size --tokenizer-type --seq-length",
    ),
    "dynamic inference engine": Refusal(
        "`gpt_dynamic_inference.py` without `MSADAPTER_FLASH_ATTN=1`",
        _SERVED,
        "flash_attn",
        script="examples/inference/advanced/gpt_dynamic_inference.py",
    ),
}


def name_of_layout(row: str) -> str:
    """The name under which one of the layouts of core_v0.12.1 is recorded."""
    return f"layout: {row}"


_HEAD = f"""# Megatron-LM {RELEASE}

Generated by `python -m tests.megatron.newest` from tables of test cases (`tests/megatron/newest.py`, `tests/megatron/layouts.py`)
and from what was measured (`tests/megatron/newest_measured.tsv`). `bash auto_convert.sh core --release {RELEASE}` makes the
environment, for which Megatron-LM demands Python 3.12, and `tests/README.md` says how to run the cases.

All runs are on CPU processes, in float32 where nothing else is said. Rows with "engine" use the adapter's `transformer_engine`.

## Models and programs

The tree is converted with [the rules](patches.md). Each row trains a toy model on one process, and again in the layout. In most
rows the second training goes on from a checkpoint that the first one wrote after two of four steps; with experts both start from
its weights. The number is the largest
difference of a loss, relative to the loss. A case demands at most 1e-5. The rows of the inference engines generate the same
tokens, and the number is the largest difference of a log probability.

"""
_LAYOUTS = """
## Parallel layouts

These are the layouts of the GPT with which core_v0.12.1 is tested. The curve of twenty steps is compared with that of real
PyTorch on core_v0.12.1, or, in the rows with float16 and with a growing batch, with one process. In 16 bits a case demands 1e-3,
and leaves out `--use-cpu-initialization`: with it this release leaves the model on the CPU, where its optimizer refuses 16 bits.
Rows without "engine" use [the rule](patches.md) that lets PyTorch's norms run under sequence parallelism.

"""
_REFUSED = """
## What does not run

A test runs each of these and demands this part of the message.

"""
_LEARNING = f"""
## Reinforcement learning

`train_rl.py --perform-rl-step` runs unmodified with `--bf16 --transformer-impl transformer_engine`, `MSADAPTER_FLASH_ATTN=1` and
`TRITON_INTERPRET=1`: it starts its servers, generates answers by HTTP, scores them in upstream's countdown environment, computes
the log probabilities, and updates the policy. The padding token of the tokenizer must not have the number 0, which upstream takes
for none. It imports packages that must be installed in the environment of `auto_convert.sh`, which does not have them:
`{rl.PACKAGES}`.

A toy GPT learns a toy task (`tests/megatron/newest_rl.py`) for {min(one.updates for one in rl.CASES.values())} updates, or
{max(one.updates for one in rl.CASES.values())} in the first row, two for each collection of 16 answers. The test demands:

- Each reward is that of the rules of the environment, and each advantage that of its group.
- Before the first update, the log probabilities of the policy (by the engine's attention over packed sequences) and those that the
  inference engine reported are those of the formulas of the model in float64. The number is the largest difference, of numbers down
  to -6 in 16 bits. With several sequences in a bin, formulas that let them see each other are off by more than {10 * rl.NEAR}.
- At the first update all ratios to the old policy are 1, the divergence from the reference is 0, and the loss is the negated
  advantage. At the second update of the same answers they have changed.
- In the first row, the mean reward rises by more than 0.2.

Real PyTorch cannot be compared: there is no TransformerEngine for it on a CPU, and upstream's other attention refuses the
sequences.

"""
_NOT_LEARNT = """
What ends in an error of upstream, before the first update:

"""


def page() -> str:
    """The page for what is measured now."""
    known = {row.row: row for row in measured.read(TABLE)}

    def result(name: str) -> str:
        return f"{known[name].difference} | {known[name].day}" if name in known else "not measured | "

    trainings = [
        f"| {name} | {case.what} | {case.processes} | `{' '.join(case.layout.split())}` | {result(name)} |"
        for name, case in CASES.items()
    ]
    trainings += [
        f"| {name} | {_program(one)} | {one.processes} | {f'`{one.layout}`' if one.layout else ''} | {result(name)} |"
        for name, one in GENERATED.items()
    ]
    layouts = [
        f"| {name} | {row.processes} | `{' '.join(row.arguments.split()) or 'none'}` | {result(name_of_layout(name))} |"
        for name, row in ROWS.items()
    ]
    refusals = [
        f"| {name} | {case.what} | {case.outcome} | {case.message} |" for name, case in REFUSALS.items()
    ]
    learnt = [
        f"| {name} | {one.processes} | {f'`{one.layout}`' if one.layout else ''} | {result(name)} |"
        for name, one in rl.CASES.items()
    ]
    return (
        _HEAD
        + _table("case | model | processes | layout | largest difference | measured on", trainings)
        + _LAYOUTS
        + _table("layout | processes | arguments | largest difference | measured on", layouts)
        + _REFUSED
        + _table("case | what | outcome | message", refusals)
        + _LEARNING
        + _table("case | processes | layout | largest difference | measured on", learnt)
        + _NOT_LEARNT
        + _table(
            "case | what | message",
            [f"| {n} | {one.what} | {one.message} |" for n, one in rl.REFUSALS.items()],
        )
    )


def _program(one: Generation) -> str:
    return " ".join([f"`{one.program}`", *(f"`{name}={value}`" for name, value in one.variables)])


def _table(header: str, rows: list[str]) -> str:
    return "\n".join([f"| {header} |", "|" + "---|" * (header.count("|") + 1), *rows]) + "\n"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        good, bad = measured.results(path)
        measured.write(measured.merged(measured.read(TABLE), good, bad), TABLE)
        print(f"{len(good)} rows passed, {len(bad)} failed; see {TABLE}")
    PAGE.write_text(page(), encoding="utf-8")
