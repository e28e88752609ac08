"""Trains a GPT of Megatron Core on an indexed data set, on one device.

This is a plain PyTorch script; nothing in it depends on msadapter. With PyTorch, run `python train_gpt.py ...`. On
MindSpore, run `python -m msadapter train_gpt.py ...`, or the first command in a shell that has sourced build/env.sh.

The folder --save receives checkpoint.pt (model, optimizer, schedule, random states), losses.json, loss.png and
TensorBoard events. If the script is started again with the same arguments, it resumes from the checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from pathlib import Path

import numpy
import sentencepiece
import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.megatron_tokenizer import MegatronTokenizer
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--data-prefix", type=Path, required=True, help="PREFIX of PREFIX.bin, .idx and .model"
    )
    files.add_argument("--save", type=Path, required=True, help="folder for the results")
    files.add_argument("--save-interval", type=int, default=100, help="iterations between checkpoints")
    files.add_argument("--log-interval", type=int, default=10, help="iterations between printed lines")
    model = parser.add_argument_group("model")
    model.add_argument("--num-layers", type=int, default=4)
    model.add_argument("--hidden-size", type=int, default=128)
    model.add_argument("--num-attention-heads", type=int, default=8)
    model.add_argument("--seq-length", type=int, default=128)
    model.add_argument(
        "--dropout", type=float, default=0.0, help="probability, for hidden states and attention"
    )
    training = parser.add_argument_group("training")
    training.add_argument("--train-iters", type=int, default=200)
    training.add_argument("--micro-batch-size", type=int, default=4)
    training.add_argument("--global-batch-size", type=int, default=8)
    training.add_argument("--lr", type=float, default=2e-3)
    training.add_argument("--min-lr", type=float, default=2e-4)
    training.add_argument("--lr-warmup-iters", type=int, default=20)
    training.add_argument("--weight-decay", type=float, default=0.01)
    training.add_argument("--clip-grad", type=float, default=1.0)
    training.add_argument(
        "--eval-iters", type=int, default=10, help="number of batches in the final validation"
    )
    training.add_argument("--seed", type=int, default=1234)
    args = parser.parse_args()
    if args.global_batch_size % args.micro_batch_size:
        parser.error("--global-batch-size must be a multiple of --micro-batch-size")
    return args


class SentencePieceTokenizer(MegatronTokenizer):
    """The tokenizer that preprocess.py trained, with the interface that Megatron's data sets expect."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def tokenize(self, text: str) -> list[int]:
        return self.model.encode(text)

    def detokenize(self, ids: list[int]) -> str:
        return self.model.decode([int(token) for token in ids])

    @property
    def vocab(self) -> dict[str, int]:
        return {piece: index for index, piece in self.inv_vocab.items()}

    @property
    def inv_vocab(self) -> dict[int, str]:
        return {index: self.model.id_to_piece(index) for index in range(self.vocab_size)}

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size()

    @property
    def eod(self) -> int:
        return self.model.piece_to_id("<eod>")


def initialise(args: argparse.Namespace) -> torch.device:
    """Initialises a process group of one process, Megatron's parallel state and the seeds. Returns the training device."""
    on_accelerator = torch.cuda.is_available()
    for variable, value in {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29513",
        "RANK": "0",
        "WORLD_SIZE": "1",
    }.items():
        os.environ.setdefault(variable, value)
    torch.distributed.init_process_group(backend="nccl" if on_accelerator else "gloo")
    parallel_state.initialize_model_parallel()
    random.seed(args.seed)
    numpy.random.seed(args.seed)
    torch.manual_seed(args.seed)
    # Without an accelerator there is a single generator, so a tracker that does not switch states is used.
    tensor_parallel.model_parallel_cuda_manual_seed(args.seed, inference_rng_tracker=not on_accelerator)
    return torch.device("cuda", torch.cuda.current_device()) if on_accelerator else torch.device("cpu")


def build_model(args: argparse.Namespace, vocab_size: int, device: torch.device) -> GPTModel:
    config = TransformerConfig(
        num_layers=args.num_layers,
        hidden_size=args.hidden_size,
        num_attention_heads=args.num_attention_heads,
        hidden_dropout=args.dropout,
        attention_dropout=args.dropout,
        attention_softmax_in_fp32=True,
        use_cpu_initialization=True,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        persist_layer_norm=False,
        pipeline_dtype=torch.float32,
    )
    padded_vocab_size = math.ceil(vocab_size / 128) * 128
    model = GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=padded_vocab_size,
        max_sequence_length=args.seq_length,
        position_embedding_type="learned_absolute",
        share_embeddings_and_output_weights=True,
    )
    return model.to(device)


def build_datasets(args: argparse.Namespace, tokenizer: MegatronTokenizer) -> tuple[GPTDataset, GPTDataset]:
    config = GPTDatasetConfig(
        random_seed=args.seed,
        sequence_length=args.seq_length,
        blend=([str(args.data_prefix)], None),
        split="95,5,0",
        path_to_cache=str(args.save / "index-cache"),
        tokenizer=tokenizer,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=True,
    )
    samples = [args.train_iters * args.global_batch_size, args.eval_iters * args.micro_batch_size, 0]
    train, validation, _ = BlendedMegatronDatasetBuilder(GPTDataset, samples, lambda: True, config).build()
    return train, validation


def batches(dataset: GPTDataset, first: int, size: int) -> DataLoader:
    """Batches of `size` samples in the order of the data set, which is already shuffled, starting with sample `first`."""
    return DataLoader(
        torch.utils.data.Subset(dataset, range(first, len(dataset))), batch_size=size, drop_last=True
    )


def loss_of(model: GPTModel, batch: dict[str, torch.Tensor], device: torch.device) -> torch.Tensor:
    """The mean cross entropy over the tokens of the loss mask, as a 0-dim tensor."""
    batch = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
    losses = model(batch["tokens"], batch["position_ids"], batch["attention_mask"], labels=batch["labels"])
    mask = batch["loss_mask"].float()
    return (losses.float() * mask).sum() / mask.sum()


def build_optimizer(
    args: argparse.Namespace, model: GPTModel
) -> tuple[torch.optim.AdamW, OptimizerParamScheduler]:
    """AdamW without weight decay for biases and norms, and a schedule with warm-up and cosine decay."""
    decayed = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [{"params": decayed, "wd_mult": 1.0}, {"params": others, "wd_mult": 0.0}]
    optimizer = torch.optim.AdamW(
        groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=args.weight_decay
    )
    scheduler = OptimizerParamScheduler(
        optimizer,
        init_lr=0.0,
        max_lr=args.lr,
        min_lr=args.min_lr,
        lr_warmup_steps=min(args.lr_warmup_iters, max(args.train_iters - 1, 0)) * args.global_batch_size,
        lr_decay_steps=args.train_iters * args.global_batch_size,
        lr_decay_style="cosine",
        start_wd=args.weight_decay,
        end_wd=args.weight_decay,
        wd_incr_steps=args.train_iters * args.global_batch_size,
        wd_incr_style="constant",
    )
    return optimizer, scheduler


def save_checkpoint(path: Path, iteration: int, history: list[dict], model, optimizer, scheduler) -> None:
    """Writes a temporary file and renames it, so an interruption leaves the earlier checkpoint."""
    state = {
        "iteration": iteration,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "history": history,
    }
    beside = path.with_name(path.name + ".part")
    with open(beside, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def load_checkpoint(path: Path, model, optimizer, scheduler) -> tuple[int, list[dict]]:
    """Loads a checkpoint. Returns (finished iterations, their records), or (0, []) if there is no checkpoint."""
    if not path.exists():
        return 0, []
    # Megatron puts byte buffers (io.BytesIO) into the state dict, which weights_only would refuse.
    state = torch.load(path, map_location="cpu", weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"])
    return state["iteration"], state["history"]


def report_line(args: argparse.Namespace, record: dict) -> str:
    return (
        f" iteration {record['iteration']:8d}/{args.train_iters:8d} |"
        f" consumed samples: {record['iteration'] * args.global_batch_size:12d} |"
        f" elapsed time per iteration (ms): {record['milliseconds']:.1f} |"
        f" learning rate: {record['lr']:.6E} |"
        f" global batch size: {args.global_batch_size:5d} |"
        f" lm loss: {record['loss']:.6E} |"
        f" loss scale: 1.0 |"
        f" grad norm: {record['grad_norm']:.3f} |"
        f" number of skipped iterations: {record['skipped']:3d} |"
        f" number of nan iterations: {record['nan']:3d} |"
    )


def train_step(args, model, loader, optimizer, scheduler, device) -> dict:
    """Runs one optimizer step on a global batch. The step is skipped if the gradient is not finite."""
    began = time.perf_counter()
    micro_batches = args.global_batch_size // args.micro_batch_size
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for _ in range(micro_batches):
        loss = loss_of(model, next(loader), device) / micro_batches
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad).item()
    finite = math.isfinite(norm)
    if finite:
        optimizer.step()
    lr = optimizer.param_groups[0]["lr"]
    scheduler.step(increment=args.global_batch_size)
    return {
        "loss": total,
        "grad_norm": norm,
        "lr": lr,
        "skipped": int(not finite),
        "nan": int(math.isnan(total)),
        "milliseconds": (time.perf_counter() - began) * 1000,
    }


def evaluate(args, model, dataset, device) -> float:
    """The mean loss over at most --eval-iters batches of the validation data."""
    model.eval()
    with torch.no_grad():
        losses = [
            loss_of(model, batch, device).item()
            for _, batch in zip(
                range(args.eval_iters), batches(dataset, 0, args.micro_batch_size), strict=False
            )
        ]
    model.train()
    return sum(losses) / len(losses)


def plot(history: list[dict], vocab_size: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    axes.plot(
        [record["iteration"] for record in history], [record["loss"] for record in history], label="lm loss"
    )
    axes.axhline(
        math.log(vocab_size), color="grey", linestyle="--", label=f"ln({vocab_size}): a uniform guess"
    )
    axes.set(xlabel="iteration", ylabel="loss", title="GPT on Shakespeare")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    beside = path.with_name(path.name + ".part")
    figure.savefig(beside, dpi=120, format="png")
    os.replace(beside, path)


def train(args, model, loader, optimizer, scheduler, device, done: int, history: list, writer) -> None:
    """Train from iteration `done` + 1 to the last one. Adds records to `history`, writes events and checkpoints."""
    model.train()
    bar = tqdm(
        range(done + 1, args.train_iters + 1),
        initial=done,
        total=args.train_iters,
        desc="train",
        unit="it",
        dynamic_ncols=True,
        disable=None,
    )
    skipped = nan = 0
    for iteration in bar:
        record = {"iteration": iteration, **train_step(args, model, loader, optimizer, scheduler, device)}
        history.append(record)
        skipped, nan = skipped + record["skipped"], nan + record["nan"]
        bar.set_postfix(loss=f"{record['loss']:.3f}", refresh=False)
        for name in ("loss", "lr", "grad_norm", "milliseconds"):
            writer.add_scalar(f"train/{name}", record[name], iteration)
        if iteration % args.log_interval == 0 or iteration in (1, args.train_iters):
            recent = history[-args.log_interval :]
            means = {
                name: sum(entry[name] for entry in recent) / len(recent) for name in ("loss", "milliseconds")
            }
            bar.write(report_line(args, {**record, **means, "skipped": skipped, "nan": nan}))
            skipped = nan = 0
        if iteration % args.save_interval == 0 or iteration == args.train_iters:
            save_checkpoint(args.save / "checkpoint.pt", iteration, history, model, optimizer, scheduler)


def main() -> None:
    args = parse_args()
    args.save.mkdir(parents=True, exist_ok=True)
    checkpoint = args.save / "checkpoint.pt"
    device = initialise(args)
    tokenizer = SentencePieceTokenizer(args.data_prefix.with_name(args.data_prefix.name + ".model"))
    model = build_model(args, tokenizer.vocab_size, device)
    optimizer, scheduler = build_optimizer(args, model)
    train_data, validation_data = build_datasets(args, tokenizer)
    done, history = load_checkpoint(checkpoint, model, optimizer, scheduler)
    if done:
        print(f"continuing from {checkpoint} at iteration {done}")
    else:
        scheduler.step(0)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(
        f"GPT of {parameters} parameters on {device}, {len(train_data)} training samples of {args.seq_length} tokens"
    )

    writer = SummaryWriter(str(args.save / "tensorboard"), purge_step=done + 1)
    loader = iter(batches(train_data, done * args.global_batch_size, args.micro_batch_size))
    train(args, model, loader, optimizer, scheduler, device, done, history, writer)
    validation = evaluate(args, model, validation_data, device)
    writer.add_scalar("validation/loss", validation, args.train_iters)
    writer.close()
    summary = {
        "validation_loss": validation,
        "ln_vocabulary": math.log(tokenizer.vocab_size),
        "iterations": history,
    }
    (args.save / "losses.json").write_text(json.dumps(summary, indent=1))
    plot(history, tokenizer.vocab_size, args.save / "loss.png")
    print(
        f" validation loss at iteration {args.train_iters} | lm loss value: {validation:.6E} |"
        f" lm loss PPL: {math.exp(validation):.6E} | ln(vocabulary): {math.log(tokenizer.vocab_size):.3f}"
    )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
