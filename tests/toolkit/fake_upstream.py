"""A small program in the place of Megatron-LM's: it parses flags and prints lines like the trainer's, without torch."""

from __future__ import annotations

from pathlib import Path

_PROGRAM = """
import argparse, os, pathlib, sys
parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("num-layers", "hidden-size", "num-attention-heads", "num-query-groups", "ffn-hidden-size", "kv-channels",
             "max-position-embeddings", "seq-length", "train-iters", "micro-batch-size", "global-batch-size", "seed",
             "save-interval", "log-interval", "eval-interval", "eval-iters", "num-workers", "lr-warmup-iters", "vocab-size",
             "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size", "num-experts",
             "expert-model-parallel-size"):
    parser.add_argument("--" + name, type=int)
for name in ("lr", "min-lr", "weight-decay", "clip-grad", "adam-beta1", "attention-dropout",
             "hidden-dropout"):
    parser.add_argument("--" + name, type=float)
for name in ("split", "save", "load", "tensorboard-dir", "tokenizer-type", "tokenizer-model", "data-cache-path", "fail",
             "position-embedding-type"):
    parser.add_argument("--" + name)
for name in ("mock-data", "bf16", "log-throughput", "swiglu", "finetune", "no-load-optim", "no-load-rng", "no-save-optim",
             "no-save-rng", "sequence-parallel", "reset-attention-mask", "use-flash-attn",
             "group-query-attention", "no-rope-fusion", "override-opt_param-scheduler", "use-checkpoint-opt_param-scheduler"):
    parser.add_argument("--" + name, action="store_true")
parser.add_argument("--lr-decay-style", choices=["constant", "cosine"])
parser.add_argument("--ckpt-format", choices=["torch", "torch_dist"])
parser.add_argument("--data-path", nargs="*")
parser.add_argument("--pair", nargs=2, type=int)
parser.add_argument("--profile", action="store_true")
parser.add_argument("--use-pytorch-profiler", action="store_true")
parser.add_argument("--profile-step-start", type=int)
parser.add_argument("--profile-step-end", type=int)
parser.add_argument("--profile-ranks", type=int, nargs="+")
parser.add_argument("--fused", action=argparse.BooleanOptionalAction, default=True)
# MORE
args = parser.parse_args()
if int(os.environ.get("RANK", "0")) == 0:
    first = 1
    if args.load:
        first += int((pathlib.Path(args.load) / "latest_checkpointed_iteration.txt").read_text())
    for number in range(first, args.train_iters + 1):
        if args.fail == str(number):
            raise ValueError("the numbers went bad")
        print(f" [2026-01-01 00:00:00] iteration {number:8}/{args.train_iters:8} | consumed samples: {8 * number} |"
              f" elapsed time per iteration (ms): 10.0 | learning rate: 1.000000E-03 | global batch size: 8 |"
              f" lm loss: {9 - number / 10:.6E} | loss scale: 1.0 | grad norm: 1.500 |", flush=True)
        if args.save and number % args.save_interval == 0:
            place = pathlib.Path(args.save)
            place.mkdir(parents=True, exist_ok=True)
            (place / "latest_checkpointed_iteration.txt").write_text(str(number))
    if args.profile and args.use_pytorch_profiler:
        place = pathlib.Path(args.tensorboard_dir)
        place.mkdir(parents=True, exist_ok=True)
        event = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5000}'
        (place / "host_1.2.pt.trace.json").write_text('{"traceEvents": [' + event + "]}")
"""

_OF_LLM = """
for name in ("lora-r", "lora-alpha", "sliding-window", "padded-vocab-size", "make-vocab-size-divisible-by"):
    parser.add_argument("--" + name, type=int)
for name in ("prompt-type", "tokenizer-name-or-path", "lora-load"):
    parser.add_argument("--" + name)
for name in ("is-instruction-dataset", "is-pairwise-dataset", "use-mcore-models"):
    parser.add_argument("--" + name, action="store_true")
parser.add_argument("--stage", choices=["sft", "dpo"])
parser.add_argument("--lora-target-modules", nargs="+")
parser.add_argument("--attn-logit-softcapping", type=float)
parser.add_argument("--spec", nargs="*")
parser.add_argument("--dpo-loss-type", choices=["sigmoid", "hinge", "ipo"])
"""


def make_llm(folder: Path) -> list[Path]:
    """Trees that look like those of MindSpeed-LLM, MindSpeed and Megatron-LM."""
    llm, mindspeed = folder / "llm", folder / "mindspeed"
    (llm / "mindspeed_llm").mkdir(parents=True)
    (mindspeed / "mindspeed").mkdir(parents=True)
    for name in ("pretrain_gpt.py", "posttrain_gpt.py"):
        (llm / name).write_text(_PROGRAM.replace("# MORE", _OF_LLM))
    return [llm, mindspeed, make(folder / "megatron-lm")]


def make(folder: Path) -> Path:
    """A tree that looks like Megatron-LM's."""
    tree = folder / "megatron"
    (tree / "megatron" / "training").mkdir(parents=True)
    (tree / "megatron" / "core").mkdir()
    (tree / "megatron" / "training" / "arguments.py").write_text("")
    (tree / "pretrain_gpt.py").write_text(_PROGRAM)
    return tree
