"""The sections that a training has in common for all upstreams, in three levels: basic, high and advanced.

A key with a flag is given to upstream under this flag. Further keys of a section are upstream's own flags by their names.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, field_validator, model_validator

from .section import Place, Section, at_home, key

Precision = Literal["float32", "bf16", "fp16"]


class WithFlags(Section):
    """A section whose further keys are flags of upstream."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Run(Section):
    """What is run, where, and on how many processes."""

    level: ClassVar[str] = "basic"

    task: Literal["pretrain", "sft", "lora", "dpo", "grpo"] = key(
        "pretrain", "pretrain, or tune a model: sft, lora, dpo or grpo"
    )
    backend: Literal["megatron", "hf"] = key(
        "megatron",
        "megatron: MindSpeed-LLM or Megatron-LM; hf: transformers' Trainer, which needs no git sources",
    )
    trees: str | list[str] = key(
        "build",
        "the folder that auto_convert.sh wrote, or a list of checkouts: Megatron-LM, or MindSpeed-LLM, MindSpeed and Megatron-LM",
    )
    processes: int = key(1, "processes on this machine", gt=0)
    nodes: int = key(1, "machines; start the same command on each", gt=0)
    min_nodes: int | None = key(
        None,
        "machines may leave and come while at least so many are there; without it all of run.nodes are needed",
        gt=0,
        megatron_only=True,
    )
    node_rank: int = key(0, "the number of this machine, from 0", ge=0)
    master: str = key("127.0.0.1", "address of machine 0", megatron_only=True)
    port: int = key(
        0, "port of machine 0; 0 takes a free one on a single machine", ge=0, lt=65536, megatron_only=True
    )
    device: Literal["cpu", "cuda", "npu"] = key(
        "cuda", "what torch.cuda and torch_npu report: MindSpore's device as cuda or npu, or the CPU alone"
    )
    folder: Place = key("runs", "each run gets the folder FOLDER/NAME/TIME")
    id: str | None = key(
        None,
        "the folder is FOLDER/NAME/ID, in which a second start goes on; several machines need it, on a disk that they share",
        pattern=r"^\w[\w.-]*$",
        megatron_only=True,
    )

    @field_validator("trees")
    @classmethod
    def _at_home(cls, given: str | list[str]) -> str | list[str]:
        return at_home(given) if isinstance(given, str) else [at_home(one) for one in given]

    @model_validator(mode="after")
    def _several_machines(self) -> Run:
        if self.nodes > 1 and not self.port:
            raise ValueError("run.port must be given for several machines, the same for all")
        if self.nodes > 1 and not self.id and self.backend == "megatron":
            raise ValueError(
                "run.id must be given for several machines, the same for all: a name for this run's folder"
            )
        if self.fewest > self.nodes:
            raise ValueError(f"min_nodes is {self.min_nodes}, but nodes is {self.nodes}")
        if self.node_rank >= self.nodes:
            raise ValueError(f"node_rank is {self.node_rank}, but must be from 0 to {self.nodes - 1}")
        return self

    @property
    def world(self) -> int:
        """The processes on all machines."""
        return self.processes * self.nodes

    @property
    def fewest(self) -> int:
        """The fewest machines with which the training goes on."""
        return self.min_nodes or self.nodes


class Dataset(WithFlags):
    """What is trained on."""

    level: ClassVar[str] = "basic"

    path: str | list[Any] | None = key(
        None, "prefix of .bin and .idx, or a list of weights and prefixes: [0.3, a, 0.7, b]", flag="data-path"
    )
    mock: bool = key(
        False, "random tokens instead of data (Megatron-LM)", flag="mock-data", megatron_only=True
    )
    tokenizer: Place | None = key(None, "folder of a Hugging Face tokenizer, or a SentencePiece .model file")
    tokenizer_type: str | None = key(
        None,
        "upstream's name of the kind, when it is not clear from `tokenizer`",
        flag="tokenizer-type",
        megatron_only=True,
    )
    split: str = key("100,0,0", "shares of training, validation and test", flag="split", megatron_only=True)
    sequence_length: int = key(2048, "tokens in a sample", flag="seq-length", gt=0)
    template: str | None = key(
        None, "template of instruction data, such as qwen or llama3", flag="prompt-type", megatron_only=True
    )
    workers: int = key(0, "processes that load data, for each rank", flag="num-workers", ge=0)
    cache: Place | None = key(
        None,
        "folder for indices of blended data (default: in the run's folder)",
        flag="data-cache-path",
        megatron_only=True,
    )


class Model(WithFlags):
    """The geometry of the model, by upstream's own names. Usually a recipe has it."""

    level: ClassVar[str] = "basic"

    num_layers: int = key(help="give it, or name a recipe", flag="num-layers", gt=0)
    hidden_size: int = key(help="give it, or name a recipe", flag="hidden-size", gt=0)
    num_attention_heads: int = key(help="give it, or name a recipe", flag="num-attention-heads", gt=0)
    num_query_groups: int | None = key(
        None, "groups of heads that share keys and values", flag="num-query-groups", gt=0
    )
    ffn_hidden_size: int | None = key(
        None, "width of the MLP (default: 4 times hidden_size)", flag="ffn-hidden-size", gt=0
    )
    kv_channels: int | None = key(
        None, "width of a head (default: hidden_size / heads)", flag="kv-channels", gt=0
    )
    vocab_size: int | None = key(
        None, "tokens of the vocabulary (default: the tokenizer's)", flag="vocab-size", gt=0
    )
    max_position_embeddings: int | None = key(
        None, "longest sequence (default: dataset.sequence_length)", flag="max-position-embeddings", gt=0
    )
    swiglu: bool = key(False, "gated MLP with SiLU", flag="swiglu")
    untie_embeddings_and_output_weights: bool = key(
        False, "the output layer has weights of its own", flag="untie-embeddings-and-output-weights"
    )
    num_experts: int | None = key(None, "experts in an MoE layer", flag="num-experts", gt=0)
    moe_router_topk: int = key(2, "experts for each token", flag="moe-router-topk", gt=0)
    moe_ffn_hidden_size: int | None = key(
        None, "width of an expert (default: ffn_hidden_size)", flag="moe-ffn-hidden-size", gt=0
    )


class Parallel(WithFlags):
    """How the model is divided among processes. What these sizes leave is data parallel."""

    level: ClassVar[str] = "basic"

    tensor: int = key(1, "processes that share each layer", flag="tensor-model-parallel-size", gt=0)
    pipeline: int = key(1, "stages of layers", flag="pipeline-model-parallel-size", gt=0)
    layers_per_virtual_stage: int | None = key(
        None,
        "layers in a chunk of an interleaved pipeline",
        flag="num-layers-per-virtual-pipeline-stage",
        gt=0,
    )
    context: int = key(1, "processes that share each sequence", flag="context-parallel-size", gt=0)
    expert: int = key(1, "processes that share the experts", flag="expert-model-parallel-size", gt=0)
    expert_tensor: int | None = key(
        None, "processes that share each expert (default: tensor)", flag="expert-tensor-parallel-size", gt=0
    )
    sequence: bool = key(False, "norms and dropout are divided along the sequence", flag="sequence-parallel")
    distributed_optimizer: bool = key(
        False, "the optimizer's state is divided among the replicas", flag="use-distributed-optimizer"
    )


class Train(WithFlags):
    """Hyper-parameters."""

    level: ClassVar[str] = "basic"

    iterations: int | None = key(
        None, "number of optimizer steps, without which nothing can be trained", flag="train-iters", gt=0
    )
    micro_batch: int = key(1, "samples in a forward pass of one replica", flag="micro-batch-size", gt=0)
    global_batch: int | None = key(
        None, "samples in a step (default: one micro-batch for each replica)", flag="global-batch-size", gt=0
    )
    lr: float = key(1e-4, "largest learning rate", flag="lr", gt=0)
    min_lr: float = key(0.0, "smallest learning rate", flag="min-lr", ge=0, megatron_only=True)
    decay: str = key(
        "cosine", "shape of the learning rate: constant, linear, cosine ...", flag="lr-decay-style"
    )
    warmup: int = key(0, "steps until the largest learning rate", flag="lr-warmup-iters", ge=0)
    weight_decay: float = key(0.1, "decay of matrices", flag="weight-decay", ge=0)
    clip: float = key(1.0, "largest norm of the gradient", flag="clip-grad", ge=0)
    precision: Precision = key("float32", "numbers of weights and activations: float32, bf16 or fp16")
    seed: int = key(1234, "of weights, dropout and the order of the data", flag="seed")


class Tune(WithFlags):
    """Fine-tuning: LoRA's matrices and DPO's numbers."""

    level: ClassVar[str] = "basic"

    rank: int = key(8, "rank of LoRA's matrices", gt=0)
    alpha: int = key(16, "LoRA adds alpha / rank times their product", gt=0)
    targets: list[str] = key(
        ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"], "layers that get LoRA's matrices"
    )
    load: Place | None = key(None, "checkpoint of LoRA's matrices to start from", flag="lora-load")


class Grpo(WithFlags):
    """Reinforcement learning by rules (the command `grpo`)."""

    level: ClassVar[str] = "basic"

    prompts: str | list[str] | None = key(
        None, "files of JSON lines with `prompt`, a text or messages, and columns for the rules"
    )
    reward: str | list[str] = key(
        "equals",
        "rules, whose rewards are added: equals or number compare with the column `answer`; FILE.py:FUNCTION is your own",
    )
    validation: Place | None = key(
        None, "a file of such rows, whose mean reward is measured before and after, without sampling"
    )
    group: int = key(8, "completions of each prompt, which are compared with each other", gt=1)
    length: int = key(256, "tokens of a completion at most", gt=0)
    temperature: float = key(1.0, "of the sampling", gt=0)
    beta: float = key(0.0, "weight of the KL divergence from the model that the run starts from", ge=0)
    clip: float = key(0.2, "the ratio to the sampling policy counts up to 1 - clip and 1 + clip", gt=0)
    updates: int = key(1, "optimizer steps with the same completions", gt=0)


class Save(WithFlags):
    """Checkpoints, in the run's folder."""

    level: ClassVar[str] = "high"

    interval: int | None = key(
        None, "steps between checkpoints; without it none is written", flag="save-interval", gt=0
    )
    format: Literal["torch", "torch_dist", "safetensors"] = key(
        "torch",
        "upstream's torch or torch_dist, or safetensors: torch with the tensors in files of their own",
        flag="ckpt-format",
        megatron_only=True,
    )
    optimizer: bool = key(True, "with the optimizer's state, without which a run cannot go on exactly")


class Resume(WithFlags):
    """What a new run starts from. (An earlier run goes on with `train --resume`.)"""

    level: ClassVar[str] = "high"

    load: Place | None = key(None, "folder of a checkpoint whose weights the run starts from")
    whole: bool = key(
        False, "also take optimizer, random state and the number of steps from `load`", megatron_only=True
    )
    schedule: Literal["new", "old"] | None = key(
        None,
        "if another number of steps or rate is asked for: take the new schedule, or keep the checkpoint's",
        megatron_only=True,
    )


class Monitor(WithFlags):
    """What is printed and recorded."""

    level: ClassVar[str] = "high"

    interval: int = key(1, "steps between lines of the log", flag="log-interval", gt=0)
    tensorboard: bool = key(True, "TensorBoard events in the run's folder")
    throughput: bool = key(
        True, "with the throughput of each device", flag="log-throughput", megatron_only=True
    )
    validation_interval: int = key(
        1000, "steps between validations", flag="eval-interval", gt=0, megatron_only=True
    )
    validation_steps: int = key(0, "batches of a validation", flag="eval-iters", ge=0, megatron_only=True)
    watch: bool = key(
        True, "observe the steps on each rank, and give checkpoints manifests", megatron_only=True
    )
    parameters: list[str] = key(
        [],
        "regular expressions of names of parameters whose gradient norms are recorded on each rank",
        megatron_only=True,
    )
    weights: bool = key(False, "with the norms of these parameters themselves", megatron_only=True)
    optimizer: bool = key(False, "with the norms of the optimizer's state on each rank", megatron_only=True)
    peak_tflops: float | None = key(
        None, "TFLOP/s of a device, for the share of them that is used (MFU)", gt=0, megatron_only=True
    )
    prometheus: int | None = key(
        None,
        "port on 127.0.0.1 that serves Prometheus metrics; 0 takes a free one",
        ge=0,
        lt=65536,
        megatron_only=True,
    )
    report: bool = key(True, "write report.html at the end of the run", megatron_only=True)
    straggler: float = key(
        1.5, "a rank is named if its own work takes so many times the others' time", gt=1, megatron_only=True
    )

    @field_validator("parameters")
    @classmethod
    def _expressions(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
        return patterns


class Health(Section):
    """When a checkpoint is not trusted, and when a step changes nothing."""

    level: ClassVar[str] = "high"

    skip_norm: float | None = key(
        None, "a step whose gradient norm is over this changes no parameter and is counted", gt=0
    )
    skip_limit: int = key(10, "so many such steps in a row stop the run", gt=0)
    spike: float | None = key(
        None, "loss or norms of so many times their median mark the next checkpoints as unhealthy", gt=1
    )
    window: int = key(20, "steps of this median, and for which a spike counts", gt=1)
    trace: bool = key(True, "after a failure, name the first tensor with NaN or infinity")


class Profile(WithFlags):
    """Where the time of some steps goes: traces for Chrome, and a table of the operators."""

    level: ClassVar[str] = "high"

    steps: tuple[int, int] | None = key(
        None, "the first step that is recorded, and the first that is not: [10, 12]"
    )
    ranks: list[int] = key([0], "the processes that are recorded", min_length=1, megatron_only=True)

    @model_validator(mode="after")
    def _in_order(self) -> Profile:
        if self.steps is not None and not 1 <= self.steps[0] < self.steps[1]:
            raise ValueError(
                "profile.steps must be two numbers in ascending order, the first at least 1, such as [10, 12]"
            )
        return self


class Recompute(WithFlags):
    """Activations that are computed again in the backward pass, to save memory."""

    level: ClassVar[str] = "advanced"

    granularity: Literal["full", "selective"] | None = key(
        None, "whole layers, or their attention alone", flag="recompute-granularity"
    )
    method: Literal["uniform", "block"] | None = key(None, "which layers, for full", flag="recompute-method")
    layers: int | None = key(None, "layers in a unit, for full", flag="recompute-num-layers", gt=0)


class Overlap(WithFlags):
    """Communication that runs while the processes compute."""

    level: ClassVar[str] = "advanced"

    gradients: bool = key(False, "reduce gradients during the backward pass", flag="overlap-grad-reduce")
    parameters: bool = key(False, "gather parameters during the forward pass", flag="overlap-param-gather")


class Recovery(WithFlags):
    """What happens when a process fails."""

    level: ClassVar[str] = "advanced"

    restarts: int = key(0, "how often all processes are started again from the last checkpoint", ge=0)
    backoff: float = key(1.0, "seconds before the first restart; they double with each", ge=0)
    silence: float = key(
        60.0, "seconds after which a rank without a sign of life is ended; 0 waits forever", ge=0
    )
    stall: float = key(
        1800.0, "seconds after which a step that does not end is given up; 0 waits forever", ge=0
    )
    memory: int | None = key(
        None, "steps between checkpoints in the memory of this machine, which a failure does not lose", gt=0
    )


class Upstream(WithFlags):
    """Further flags of upstream, by their own names."""

    level: ClassVar[str] = "advanced"


class About(Section):
    """What a recipe describes. A training needs its release of Megatron Core; the rest has no effect."""

    level: ClassVar[str] = "basic"

    family: str = key("", "the family of the model")
    size: str = key("", "the name of its size")
    published: str = key("", "the published number of parameters in billions")
    core: str = key("", "the first release of Megatron Core that has all parts of the model, such as 0.19.0")
