"""The command line of upstream's own training program for a configuration."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import load
from ..config.section import flags_of
from ..config.training import About, Parallel
from ..convert.steps import ROOT
from ..convert.upstream import is_newer
from ..errors import UserError
from ..upstream import flags as upstream_flags
from ..upstream import trees as upstream_trees
from ..upstream.flags import Flags, ValueProblem
from ..upstream.trees import LLM, UNKNOWN, Trees
from .settings import Settings, check_window_applies, existing, gives_matrices, place_of

if TYPE_CHECKING:
    from ..data.section import Data

_OBSERVER = ROOT / "megatron_ms" / "monitor" / "rank.py"
LAUNCHER = ROOT / "msadapter" / "distributed" / "_torchrun.py"
# What upstream's programs need on a machine without CUDA's fused kernels. A key of the same name in the file counts instead.
# Those that the version in the tree does not know are left out.
_HERE: Mapping[str, Any] = {
    "transformer_impl": "local",
    "use_mcore_models": True,
    "no_gradient_accumulation_fusion": True,
    "no_masked_softmax_fusion": True,
    "no_bias_gelu_fusion": True,
    "no_bias_swiglu_fusion": True,
    "no_bias_dropout_fusion": True,
    "no_rope_fusion": True,
    "no_persist_layer_norm": True,
    "attention_softmax_in_fp32": True,
    "no_shared_storage": True,
    "distributed_backend": "nccl",
}
_TUNED = ("sft", "lora")
_SCHEDULES = {"new": "override_opt_param_scheduler", "old": "use_checkpoint_opt_param_scheduler"}
_WITHOUT_STATES = ("finetune", "no_load_optim", "no_load_rng")
_WITH_STATES = ("use_checkpoint_opt_param_scheduler", "exit_on_missing_checkpoint")
Entry = tuple[str, str, Any]  # our key, upstream's flag, value
_MOCK = 4096
_OF_A_RULE = "embed_layernorm"  # a flag that MindSpeed-LLM has in trees that this project has converted
_FIXED = "convert"  # the key of flags that loading a checkpoint sets, whatever a file says
_IF_KNOWN = "toolkit"  # the key of flags that are given where upstream has them
# The value of upstream's flag --spec with which a model has a soft cap of scores.
CAPPED_LAYERS = ["megatron_ms.models.gemma2_spec", "layer_spec"]


@dataclass(frozen=True)
class Command:
    """A command with the variables that it needs beside those of the caller."""

    words: tuple[str, ...]
    variables: Mapping[str, str]
    program: int = 0  # the place of upstream's program among the words; 0 if its ranks are not observed

    def watched(self, settings: Path) -> tuple[str, ...]:
        """The same with the observer of the ranks in front of the program. settings: the file that it reads."""
        before, program = self.words[: self.program], self.words[self.program :]
        return (*before, str(_OBSERVER), str(settings), *program)

    def shell(self, folder: Path) -> str:
        """The same as a line for a shell, from any folder."""
        names = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.variables.items())]
        lines = [
            f"cd {shlex.quote(str(folder))} &&",
            "env",
            *("    " + name for name in names),
            *_rows(self.words),
        ]
        return " \\\n".join(lines).replace("&& \\\n", "&& ") + "\n"


def _rows(words: tuple[str, ...]) -> list[str]:
    """The words with a flag and its values on each row."""
    rows: list[str] = []
    for word in words:
        if word.startswith("--") or not rows:
            rows.append("    " + shlex.quote(word))
        else:
            rows[-1] += " " + shlex.quote(word)
    return rows


def command(settings: Settings, folder: Path, resumed: bool = False) -> Command:
    """The command that trains. Checkpoints and events go into `folder`; `resumed`: it goes on from its checkpoint there.

    Raises:
        UserError: trees, data or tokenizer are absent, or a key is not a flag of upstream or has a value that it does not take.
    """
    try:
        trees = upstream_trees.find(settings.run.trees)
    except UserError as error:
        raise settings.document.error("run.trees", str(error)) from None
    tuned = settings.run.task != "pretrain"
    if tuned:
        _check_tunes(settings, trees)
    if settings.save.interval is not None and settings.save.format == "torch_dist" and trees.only_torch():
        message = f"is {settings.save.format}, but {trees.programs} writes torch whatever it is told: use MindSpeed-LLM 26.1.0"
        raise settings.document.error("save.format", message)
    check_trees(settings, trees)
    _check_window(settings, tuned)
    _check_positions(settings, tuned)
    program = "posttrain_gpt.py" if tuned else "pretrain_gpt.py"
    flags = upstream_flags.read(trees, program)
    words = _flag_words(settings, trees, flags, folder, resumed)
    launcher = [sys.executable, str(LAUNCHER), *_launch(settings)]
    variables = trees.environment(settings.run.device, settings.run.processes)
    watched = len(launcher) if settings.monitor.watch else 0
    return Command((*launcher, str(trees.program(program)), *words), variables, watched)


def _check_tunes(settings: Settings, trees: Trees) -> None:
    """Raises UserError if upstream cannot tune, or has no program that tunes this model."""
    task, about = settings.run.task, settings.document.section("about", About)
    other = "tune a folder of Hugging Face with run.backend: hf, which needs no recipe and no trees"
    if about.core:  # a model of a newer Megatron-LM, whose parts MindSpeed-LLM lacks
        message = f"is {task}, which no program of upstream has for {about.family}: {other}"
        raise settings.document.error("run.task", message)
    if trees.upstream != LLM:
        message = (
            f"{task} needs MindSpeed-LLM, but the trees have Megatron-LM alone: bash auto_convert.sh llm"
        )
        raise settings.document.error("run.task", f"{message}; or {other}")


def check_trees(settings: Settings, trees: Trees) -> None:
    """Raises UserError for a device or a vocabulary that upstream refuses, and for a release that lacks parts of the model."""
    if settings.run.device == "cpu":
        fitting = "npu" if trees.upstream == LLM else "cuda"
        message = f"is cpu, which {trees.upstream} refuses: write {fitting}; without an accelerator the CPU takes its place"
        raise settings.document.error("run.device", message)
    size, tensor = settings.model.vocab_size or 0, settings.parallel.tensor
    if trees.upstream == LLM and size % tensor and settings.flag("padded_vocab_size") is None:
        padded = -(-size // tensor) * tensor
        message = f"vocabulary {size} is not divisible by tensor {tensor}: also give model.padded_vocab_size={padded}"
        raise settings.document.error("model.vocab_size", f"{message}, in each configuration of this model")
    wanted = settings.document.section("about", About).core
    found = upstream_trees.version(trees)
    if wanted and (found == UNKNOWN or _numbers(found) < _numbers(wanted)):
        message = f"the model needs Megatron Core {wanted} or newer, but the version of the trees is {found}"
        raise settings.document.error("run.trees", f"{message}: bash auto_convert.sh core --release {wanted}")
    _check_embedding_norm(settings)
    _check_soft_cap(settings)
    if settings.save.format == "torch_dist" and settings.save.interval is not None and uneven(settings):
        message = "torch_dist numbers the layers of stages of different lengths (num_layer_list) wrongly"
        raise settings.document.error("save.format", f"{message}: write torch or safetensors")


def uneven(settings: Settings) -> bool:
    """Whether stages have different numbers of layers, which MindSpeed-LLM does not tell to distributed checkpoints."""
    return unequal(settings.flag("num_layer_list"))


def unequal(layers: Any) -> bool:
    """Whether a value of --num-layer-list, such as 1,3, or None, has different numbers."""
    return len(set(str(layers or "").split(","))) > 1


def refuse_uneven(settings: Settings) -> None:
    """Raises UserError if a distributed checkpoint is to be read in stages of different lengths, which would get other layers."""
    if uneven(settings):
        message = "leave it out: a distributed checkpoint is read in stages of the same length"
        raise settings.document.error("parallel.num_layer_list", message)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _check_window(settings: Settings, tuned: bool) -> None:
    """Raises UserError where MindSpeed-LLM would leave out the window, or end in an operator that takes no other mask with it."""
    window = settings.flag("sliding_window")
    if window is None:
        return
    check_window_applies(settings)
    length = settings.dataset.sequence_length
    if tuned and length > int(str(window)) and not settings.flag("reset_attention_mask"):
        task = settings.run.task
        message = (
            f"must be true, or give fewer tokens: {task} in {length} tokens masks the padding without it"
        )
        raise settings.document.error(
            "dataset.reset_attention_mask",
            f"{message}, and MindSpeed-LLM takes no such mask with sliding_window",
        )


def _check_embedding_norm(settings: Settings) -> None:
    """Raises UserError where MindSpeed-LLM would train or save the norm after the embeddings wrongly, without a word."""
    if not settings.flag("embed_layernorm"):
        return
    if settings.parallel.sequence:
        message = "must be false with model.embed_layernorm, whose gradients MindSpeed-LLM does not add up over the ranks"
        raise settings.document.error("parallel.sequence", message)
    if settings.save.format == "torch_dist" and settings.save.interval is not None:
        message = "torch_dist leaves out the norm of model.embed_layernorm: write torch or safetensors"
        raise settings.document.error("save.format", message)


def _check_soft_cap(settings: Settings) -> None:
    """Raises UserError where MindSpeed-LLM would leave out a soft cap of scores, and for a flag that our layers do not support."""
    spec = settings.flag("spec")
    if spec != CAPPED_LAYERS:
        linear = settings.flag("position_embedding_type") == "alibi" and not settings.flag("use_flash_attn")
        if settings.flag("attn_logit_softcapping") and not linear:
            message = f"is {spec}, but must be {CAPPED_LAYERS}: the layers of MindSpeed-LLM ignore attn_logit_softcapping"
            raise settings.document.error("model.spec", message)
        return
    refused = ("model.use_flash_attn", "dataset.reset_attention_mask", "model.apply_query_key_layer_scaling")
    given = {key: bool(settings.flag(key.partition(".")[2])) for key in refused}
    given["parallel.context"] = settings.parallel.context > 1
    if key := next((key for key in given if given[key]), None):
        raise settings.document.error(key, "is not supported with the layers of Gemma 2: leave it out")


def _check_positions(settings: Settings, tuned: bool) -> None:
    """Raises UserError for a fine-tuning with learned positions whose data has none, which ends in the embedding of positions."""
    kind = settings.flag("position_embedding_type") or "learned_absolute"
    needs = {"dataset.reset_attention_mask": "reset_attention_mask", "model.use_flash_attn": "use_flash_attn"}
    for key, flag in needs.items() if tuned and kind == "learned_absolute" else ():
        if not settings.flag(flag):
            message = f"must be true: MindSpeed-LLM's data for {settings.run.task} has positions, which the model learns, only with"
            raise settings.document.error(key, f"{message} {' and '.join(needs)}")


def loading_command(
    settings: Settings,
    trees: Trees,
    program: Sequence[object],
    checkpoint: Path,
    entries: Sequence[Entry] = (),
    states: bool = False,
) -> Command:
    """The command that starts a program with upstream's flags on the ranks of a layout, and loads a checkpoint's weights.

    program: its words before the flags. entries: further flags. states: optimizer, schedule and random state are loaded too.
    The model drops nothing out, whatever the file says for a training: MindSpeed-LLM's flash attention passes its dropout to the
    operator in the mode `eval` too. Its rows are one text each, so the positions of several texts in a row are not asked for.
    """
    check_trees(settings, trees)
    if ("convert", "ckpt_format", "torch_dist") in entries:
        refuse_uneven(settings)
    flags = upstream_flags.read(trees, "pretrain_gpt.py")
    own: list[Entry] = [
        *entries,
        *((_FIXED, flag, 0.0) for flag in ("attention_dropout", "hidden_dropout")),
        *((_FIXED, flag, False) for flag in ("reset_attention_mask", "reset_position_ids")),
        *_declared(settings),
        *_model(settings, trees),
        (_FIXED, "load", str(checkpoint)),
        *((_FIXED, flag, True) for flag in (_WITH_STATES if states else _WITHOUT_STATES)),
        (_FIXED, "tokenizer_type", "NullTokenizer"),
        ("model.vocab_size", "vocab_size", (settings.model.vocab_size or 1) - 1),  # and a token for the end
        ("train.iterations", "train_iters", 1),
    ]
    launcher = [sys.executable, str(LAUNCHER), *_launch(settings), *map(str, program)]
    variables = trees.environment(settings.run.device, settings.run.processes)
    return Command((*launcher, *_words_of(settings, flags, own)), variables)


def _launch(settings: Settings) -> list[str]:
    """The launcher's own words."""
    run = settings.run
    if run.nodes == 1 and not run.port:
        where = ["--standalone"]
    else:
        nodes = str(run.nodes) if run.fewest == run.nodes else f"{run.fewest}:{run.nodes}"
        where = ["--nnodes", nodes, "--node-rank", str(run.node_rank)]
        where += ["--master-addr", run.master, "--master-port", str(run.port)]
    return [*where, "--nproc-per-node", str(run.processes)]


def _flag_words(settings: Settings, trees: Trees, flags: Flags, folder: Path, resumed: bool) -> list[str]:
    """The words of all flags of a training."""
    return _words_of(settings, flags, _all(settings, trees, folder, resumed))


def _words_of(settings: Settings, flags: Flags, entries: Iterable[Entry]) -> list[str]:
    """The words of flags. Each is checked by what upstream's parser takes, and stands once."""
    words: list[str] = []
    given: set[str] = set()
    extra = {flag: key for key, flag, _ in _extras(settings)}
    for key, flag, value in [*entries, *_extras(settings)]:
        if flag in given:
            continue
        own = key.rpartition(".")[2] == flag
        if flag in extra and extra[flag] != key and key != _FIXED:
            continue  # a flag that is given by its own name counts instead of what we derive
        off = key == _FIXED and not value
        if flag not in flags and (off or not own and key not in settings.document.origins):
            continue  # a default of ours that this version of upstream does not know
        if flag == _OF_A_RULE and flag not in flags:
            message = "is switched off in these trees: make them with `bash auto_convert.sh llm`, a rule of which gives it back"
            raise settings.document.error(key, message)
        try:
            words += flags[flag].line(value)
        except ValueProblem as problem:
            raise settings.document.error(key, str(problem)) from None
        given.add(flag)
    for flag, value in _HERE.items():
        if flag in flags and flag not in given:
            words += flags[flag].line(value)
    return words


def _all(settings: Settings, trees: Trees, folder: Path, resumed: bool) -> Iterator[Entry]:
    yield from _declared(settings)
    yield from _model(settings, trees)
    yield from _tokenizer(settings, trees)
    yield from _data(settings, trees, folder)
    yield from _task(settings, resumed)
    yield from _health(settings)
    yield from _files(settings, folder, resumed)
    yield from _profile(settings, folder)


def _declared(settings: Settings) -> Iterator[Entry]:
    """The keys that are declared with a flag and need nothing else."""
    derived = {
        "dataset.path",
        "dataset.cache",
        "dataset.tokenizer_type",
        "model.vocab_size",
        "model.max_position_embeddings",
    }
    derived |= {"train.global_batch", "tune.load"}
    for name, section in settings.sections().items():
        for flag, own in flags_of(type(section)).items():
            key, value = f"{name}.{own}", getattr(section, own)
            experts = own.startswith("moe_") and not settings.model.num_experts
            if key == "parallel.context" and value == 1:
                continue  # MindSpeed-LLM 26.1.0 with ALiBi compares the text of this flag with a number
            if key == "save.format" and value == "safetensors":
                value = "torch"  # upstream's format, whose tensors the observer of a rank puts apart
            if key not in derived and value is not None and value is not False and not experts:
                yield key, flag, value
    yield "train.global_batch", "global_batch_size", settings.global_batch
    if settings.train.precision != "float32":
        yield "train.precision", settings.train.precision, True


def _model(settings: Settings, trees: Trees) -> Iterator[Entry]:
    model = settings.model
    longest = model.max_position_embeddings or settings.dataset.sequence_length
    yield "model.max_position_embeddings", "max_position_embeddings", longest
    if model.num_query_groups and model.num_query_groups != model.num_attention_heads:
        yield "model.num_query_groups", "group_query_attention", True
    if model.vocab_size and trees.upstream == LLM:
        yield "model.vocab_size", "padded_vocab_size", model.vocab_size
        yield "model.vocab_size", "make_vocab_size_divisible_by", 1
    elif rows := embedding_rows(settings, trees):
        yield _IF_KNOWN, "padded_vocab_size", rows


def embedding_rows(settings: Settings, trees: Trees) -> int | None:
    """The rows of the embedding; None where Megatron-LM derives them from the tokenizer, as releases before 0.15 do."""
    release = upstream_trees.version(trees)
    if trees.upstream != LLM and (release == UNKNOWN or not is_newer(release)):
        return None
    given, tensor = settings.flag("padded_vocab_size"), settings.parallel.tensor
    size = settings.model.vocab_size or 0
    return int(str(given)) if given is not None else -(-size // tensor) * tensor


def _tokenizer(settings: Settings, trees: Trees) -> Iterator[Entry]:
    chosen, key, made = settings.dataset, "dataset.tokenizer", _made(settings)
    path = chosen.tokenizer or (made.tokenizer.path if made is not None else None)
    if path is None:
        yield from _no_tokenizer(settings)
        return
    place = existing(settings.document, key, path)
    kind, flag = "Llama2Tokenizer", "tokenizer_model"
    if place.is_dir() and trees.upstream == LLM:
        kind, flag = "PretrainedFromHF", "tokenizer_name_or_path"
    elif place.is_dir():
        kind = "HuggingFaceTokenizer"
    yield key, "tokenizer_type", chosen.tokenizer_type or kind
    yield key, flag, str(place)


def _no_tokenizer(settings: Settings) -> Iterator[Entry]:
    """The tokenizer's flags where no file of one is named: a kind that needs none, or the one for random tokens."""
    if settings.dataset.tokenizer_type:
        yield "dataset.tokenizer_type", "tokenizer_type", settings.dataset.tokenizer_type
        return
    if not settings.dataset.mock:
        message = "is missing: give the folder of a tokenizer, or a .model file"
        raise settings.document.error("dataset.tokenizer", message)
    size = settings.model.vocab_size or 0
    if size < _MOCK:
        message = f"must be at least {_MOCK}, because Megatron's random data has as many tokens"
        raise settings.document.error("model.vocab_size", message)
    yield "dataset.mock", "tokenizer_type", "NullTokenizer"
    yield "model.vocab_size", "vocab_size", size - 1  # this tokenizer adds a token for the end


def _data(settings: Settings, trees: Trees, folder: Path) -> Iterator[Entry]:
    chosen = settings.dataset
    if chosen.mock:
        if trees.upstream == LLM:
            raise settings.document.error(
                "dataset.mock", "only Megatron-LM has random data: give dataset.path"
            )
        return
    words = [
        repr(part) if isinstance(part, float) else str(_checked(settings, part))
        for part in _sources(settings)
    ]
    yield "dataset.path", "data_path", words
    if chosen.cache or len(words) > 1:
        cache = Path(chosen.cache).absolute() if chosen.cache else folder / "data-cache"
        yield "dataset.cache", "data_cache_path", str(cache)


def _made(settings: Settings) -> Data | None:
    """The section `data` of the same file, from which the command `data` made the data; None without it."""
    from ..data.section import Data

    if "data" not in settings.document.values:
        return None
    return settings.document.section("data", Data)


def _sources(settings: Settings) -> list[float | Path]:
    """The prefixes of the data as absolute paths, and the weights between them."""
    path, made = settings.dataset.path, _made(settings)
    if path is None and made is not None:
        from ..data.reading import megatron_data_path

        path = megatron_data_path(made)
    if path is None:
        raise settings.document.error("dataset.path", "is missing: the prefix of .bin and .idx files")
    found: list[float | Path] = []
    for part in path if isinstance(path, list) else [path]:
        try:
            found.append(float(part))
        except (ValueError, TypeError):
            found.append(place_of(settings.document, "dataset.path", str(part)))
    return found


def _ending(settings: Settings) -> str:
    """What follows a prefix in the names of the files of a task."""
    return {
        "sft": "_packed_input_ids_document",
        "lora": "_packed_input_ids_document",
        "dpo": "_packed_chosen_input_ids_document",
    }.get(settings.run.task, "")


def data_prefixes(settings: Settings) -> list[Path]:
    """The prefixes of the files of ids from which is trained."""
    if settings.dataset.mock:
        return []
    ending = _ending(settings)
    return [part.with_name(part.name + ending) for part in _sources(settings) if not isinstance(part, float)]


def _checked(settings: Settings, prefix: Path) -> Path:
    """The prefix after a look at its files."""
    ending = _ending(settings)
    for file in [prefix.with_name(f"{prefix.name}{ending}{kind}") for kind in (".bin", ".idx")]:
        if not file.is_file():
            hint = "" if not ending else f" ({settings.run.task} wants instruction data: PREFIX{ending}.bin)"
            raise settings.document.error("dataset.path", f"there is no file {file}{hint}")
    return prefix


def _task(settings: Settings, resumed: bool) -> Iterator[Entry]:
    task, tune = settings.run.task, settings.tune
    if task == "pretrain":
        return
    yield "run.task", "stage", "sft" if task in _TUNED else "dpo"
    yield "run.task", "is_instruction_dataset" if task in _TUNED else "is_pairwise_dataset", True
    made = _made(settings)
    if task in _TUNED and settings.dataset.template is None and made is not None and made.template != "chat":
        yield "dataset.template", "prompt_type", made.template  # upstream has no name for the tokenizer's own
    if adapts(settings):
        yield from adapter_flags(settings)
        if tune.load and not resumed:
            if not settings.resume.load:
                message = "names matrices, which upstream reads only beside the weights of the model: name these in resume.load"
                raise settings.document.error("tune.load", message)
            yield "tune.load", "lora_load", str(existing(settings.document, "tune.load", tune.load))


def adapts(settings: Settings) -> bool:
    """True if the training learns matrices of LoRA beside the weights."""
    task = settings.run.task
    return task == "lora" or (task == "dpo" and gives_matrices(settings.document))


def adapter_flags(settings: Settings) -> Iterator[Entry]:
    """The flags with which a model has matrices of LoRA."""
    tune = settings.tune
    yield "tune.rank", "lora_r", tune.rank
    yield "tune.alpha", "lora_alpha", tune.alpha
    yield "tune.targets", "lora_target_modules", tune.targets


def _health(settings: Settings) -> Iterator[Entry]:
    """A step with NaN is skipped by the observer of the rank, so upstream must not stop at it."""
    if settings.health.skip_norm is not None and settings.monitor.watch:
        yield "health.skip_norm", "no_check_for_nan_in_loss_and_grad", True


def _files(settings: Settings, folder: Path, resumed: bool) -> Iterator[Entry]:
    """Checkpoints and events."""
    saves = settings.save.interval is not None
    place = str(checkpoints(folder))
    if saves:
        yield "save.interval", "save", place
        yield "recovery.signals", "exit_signal_handler", True  # SIGTERM writes a checkpoint
        if not settings.save.optimizer:
            yield "save.optimizer", "no_save_optim", True
            yield "save.optimizer", "no_save_rng", True
    if resumed:
        yield "save.interval", "load", place
        if other_layout(settings, folder):
            yield "resume", "no_load_rng", True  # upstream cannot divide it in another way
    elif settings.resume.load:
        yield "resume.load", "load", str(existing(settings.document, "resume.load", settings.resume.load))
        if not settings.resume.whole:
            for flag in ("finetune", "no_load_optim", "no_load_rng"):
                yield "resume.load", flag, True
    elif saves and (settings.recovery.restarts or settings.run.id):
        yield "recovery.restarts", "load", place
    if settings.resume.schedule:
        yield "resume.schedule", _SCHEDULES[settings.resume.schedule], True
    if settings.monitor.tensorboard:
        yield "monitor.tensorboard", "tensorboard_dir", str(folder / "tensorboard")


def _profile(settings: Settings, folder: Path) -> Iterator[Entry]:
    """Traces of some steps. Each program has flags of its own for their place."""
    chosen = settings.profile
    if chosen.steps is None:
        return
    last = settings.train.iterations
    if last is not None and chosen.steps[1] > last:
        message = f"the step {chosen.steps[1]} must still be trained, but train.iterations is {last}"
        raise settings.document.error("profile.steps", message)
    place = str(profiles(folder))
    yield "profile.steps", "profile", True
    yield "profile.steps", "profile_step_start", chosen.steps[0]
    yield "profile.steps", "profile_step_end", chosen.steps[1]
    yield "profile.ranks", "profile_ranks", chosen.ranks
    yield "profile", "profile_save_path", place  # MindSpeed-LLM
    yield "profile", "profile_with_cpu", True
    yield "profile", "use_pytorch_profiler", True  # Megatron-LM, which writes where TensorBoard's events are
    if not settings.monitor.tensorboard:
        yield "profile", "tensorboard_dir", place


def profiles(folder: Path) -> Path:
    """Where a run's traces are."""
    return folder / "profile"


def other_layout(settings: Settings, folder: Path) -> bool:
    """True if the run in the folder has other tensor or pipeline sizes."""
    before = load(folder / "config.yaml").section("parallel", Parallel)
    now = settings.parallel
    return (before.tensor, before.pipeline) != (now.tensor, now.pipeline)


def checkpoints(folder: Path) -> Path:
    """Where a run's checkpoints are."""
    return folder / "checkpoints"


def _extras(settings: Settings) -> Iterator[Entry]:
    for name, section in settings.sections().items():
        for flag, value in (section.model_extra or {}).items():
            yield f"{name}.{flag}", flag, value


def environment(made: Command) -> dict[str, str]:
    """The whole environment of the command."""
    return {**os.environ, **made.variables}
