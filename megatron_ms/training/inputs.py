"""Looks at the data and at the checkpoint of a training before it starts, so that what does not fit is told by its name."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..plan import estimate, geometry
from ..upstream import trees as upstream_trees
from . import megatron
from .folder import LATEST, named_iteration

if TYPE_CHECKING:
    from ..data.indexed import IndexedData
    from .settings import Settings

_MOST = 2**30  # bytes of a file whose ids are looked at; of longer files as much in equal steps
_BLOCK = 2**24
_PART = "model_optim_rng.pt"
# Flags with which the rows or the layers of a checkpoint are others than those of the geometry.
_UNLIKE = ("spec", "tp_2d", "noop_layers")
Shapes = Mapping[str, tuple[int, ...]]


def check(settings: Settings) -> None:
    """Looks at the files that the configuration names.

    Raises:
        UserError: data is truncated or damaged, or has an id that the model has no embedding for; or `resume.load` has no
            checkpoint, or one that is not complete or of another model. The message names the file and the key.
    """
    # Older releases of Megatron-LM make as many embeddings as the tokenizer has tokens, so there the key has no effect.
    rows = megatron.embedding_rows(settings, upstream_trees.find(settings.run.trees))
    for prefix in megatron.data_prefixes(settings):
        _check_data(settings, prefix, settings.model.vocab_size if rows else None)
    converts = settings.flag("enable_hf2mg_convert")  # MindSpeed-LLM then reads a folder of Hugging Face
    if settings.resume.load and not converts:
        _check_place(settings, "resume.load", Path(settings.resume.load))
        _check_checkpoint(settings, Path(settings.resume.load), rows or 0)
    if settings.tune.load and megatron.adapts(settings):
        _check_place(settings, "tune.load", Path(settings.tune.load))


def _check_data(settings: Settings, prefix: Path, vocabulary: int | None) -> None:
    from ..data import indexed

    try:
        found = indexed.open_indexed(prefix.with_name(prefix.name + ".bin"))
    except UserError as error:
        raise settings.document.error("dataset.path", str(error)) from None
    largest = _largest(found)
    if vocabulary is not None and largest >= vocabulary:
        message = (
            f"{indexed.bin_path(found.prefix)} has the id {largest}, but model.vocab_size is {vocabulary}"
        )
        raise settings.document.error("dataset.path", f"{message}: make the data with the model's tokenizer")


def _largest(data: IndexedData) -> int:
    """The largest of the ids that are looked at; -1 if there is none."""
    count, block = len(data.ids), _BLOCK // data.dtype.itemsize
    blocks = -(-count // block)
    step = max(1, -(-blocks * _BLOCK // _MOST))
    return max((int(data.ids[at : at + block].max()) for at in range(0, count, step * block)), default=-1)


def _check_place(settings: Settings, key: str, checkpoint: Path) -> None:
    """Raises UserError for a folder without a checkpoint. Upstream only prints a warning, and begins with random weights."""
    if (checkpoint / LATEST).is_file():
        return
    message = f"{checkpoint} is no folder of checkpoints, because it has no file {LATEST}"
    # A folder that has both files is an adapter, with the configuration of its model.
    kinds = {"adapter_config.json": "adapter of peft", "config.json": "model of Hugging Face"}
    if kind := next((kind for file, kind in kinds.items() if (checkpoint / file).is_file()), None):
        message += f": make one of this {kind} with convert.to=megatron, and name it in resume.load"
        if key == "tune.load":
            message += ", without tune.load: it has the weights of the model too"
    elif (checkpoint.parent / LATEST).is_file():
        message += ": name the folder above it"
    raise settings.document.error(key, message)


def _check_parts(settings: Settings, folder: Path) -> None:
    """Raises UserError unless an iteration in the format torch has the parts of the layout, each with its file."""
    from ..conversion import checkpoints

    parallel = settings.parallel
    wanted = parallel.tensor * parallel.pipeline * parallel.expert
    parts = sorted(folder.glob("mp_rank_*"))
    if len(parts) != wanted:
        message = (
            f"{folder} has {len(parts)} parts, but {checkpoints.layout(settings)} has {wanted}: copy it again if it is not "
            "complete, or give the sizes that it was trained with"
        )
        raise settings.document.error("resume.load", message)
    for part in parts:
        if not (part / _PART).is_file():
            raise settings.document.error("resume.load", f"{part} has no {_PART}: copy it again")


def _check_checkpoint(settings: Settings, checkpoint: Path, rows: int) -> None:
    """Raises UserError for the first part of the model that the checkpoint has otherwise. rows: of the embedding, or 0."""
    flags = estimate.flags_of(settings)
    model = geometry.of(settings.model, settings.dataset.sequence_length, flags)
    model = replace(model, vocabulary=rows)
    folder = named_iteration(checkpoint)[1]
    if not folder.is_dir():
        message = f"{checkpoint / LATEST} names {folder.name}, which is not there"
        raise settings.document.error("resume.load", message)
    if (folder / ".metadata").is_file():
        megatron.refuse_uneven(settings)
    else:
        _check_parts(settings, folder)
    try:
        tensors, divided = _tensors(folder, settings.parallel.expert > 1)
    except (OSError, ValueError, KeyError, pickle.UnpicklingError, EOFError, zipfile.BadZipFile) as error:
        message = f"{folder} has no checkpoint that can be read: {error}"
        raise settings.document.error("resume.load", message) from None
    for what, there, here in differences(tensors, model, divided):
        message = f"{folder} is of another model: {what} is {there} there, and {here} in this configuration"
        raise settings.document.error("resume.load", message)


def differences(
    tensors: Shapes, model: geometry.Geometry, divided: int
) -> Iterator[tuple[str, object, object]]:
    """What a checkpoint has otherwise than the model: its name, and both values.

    tensors: name -> shape, with a number of its own for each layer. model: a vocabulary of 0 is not compared. divided: among how
    many files a layer's rows are divided, or 0 for a checkpoint in the format torch_dist, in which layers may be stacked.
    """
    flags = model.flags

    def has(ending: str) -> bool:
        return any(name.endswith(ending) for name in tensors)

    words = next((shape for name, shape in tensors.items() if name.endswith("word_embeddings.weight")), None)
    values: list[tuple[str, object, object]] = []
    if words is not None:
        values.append(("hidden_size", words[1], model.hidden))
    latent = bool(flags.get("multi_latent_attention"))
    if divided and not any(flags.get(name) for name in _UNLIKE):
        numbers = {found[1] for name in tensors if (found := re.search(r"decoder\.layers\.(\d+)\.", name))}
        values.append(("num_layers", len(numbers), model.layers))
        if words is not None and model.vocabulary:
            values.append(("vocab_size", words[0] * divided, model.vocabulary))
        wanted = {".mlp.linear_fc1.weight": ("the width of an MLP", model.ffn * (2 if model.gated else 1))}
        if not latent:
            rows = (model.heads + 2 * model.groups) * model.width
            wanted["self_attention.linear_qkv.weight"] = ("the width of queries, keys and values", rows)
        for ending, (what, rows) in wanted.items():
            shape = next((one for name, one in tensors.items() if name.endswith(ending)), None)
            if shape is not None:
                values.append((what, shape[0] * divided, rows))
    values.append(("an MLP with experts", has("mlp.router.weight"), bool(model.experts)))
    if has("input_layernorm.weight"):  # TransformerEngine's layers have it under another name
        values.append(
            ("a bias of norms", has("input_layernorm.bias"), flags.get("normalization") != "RMSNorm")
        )
    if not latent:
        biased = bool(model.bias or flags.get("add_qkv_bias"))
        values.append(("a bias of queries, keys and values", has("linear_qkv.bias"), biased))
        values.append(
            ("a norm of queries and keys", has("q_layernorm.weight"), bool(flags.get("qk_layernorm")))
        )
    learned = flags.get("position_embedding_type", "learned_absolute") == "learned_absolute"
    normed = has("word_embeddings.norm.weight")
    values.append(("a norm after the embeddings", normed, bool(flags.get("embed_layernorm"))))
    values.append(("learned positions", has("position_embeddings.weight"), learned))
    return (row for row in values if row[1] != row[2])


def _tensors(folder: Path, expert: bool = False) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes of a checkpoint's tensors, and among how many files a layer's rows are divided (0: torch_dist).

    expert: several expert parallel ranks have the same layers, and the number of the rank ends the name of a part. The first
    rank's parts are read.
    """
    if (folder / ".metadata").is_file():
        stored = _read(io.BytesIO((folder / ".metadata").read_bytes())).state["state_dict_metadata"]
        sizes = {name: getattr(one, "state", {}).get("size") for name, one in stored.items()}
        return {name: tuple(size.given[0]) for name, size in sizes.items() if size is not None}, 0
    wanted = "mp_rank_00*_000" if expert else "mp_rank_00*"
    first = sorted(folder.glob(f"{wanted}/{_PART}"))
    if not first:
        raise ValueError(f"there is no {wanted}/{_PART}")
    found: dict[str, tuple[int, ...]] = {}
    for stage, file in enumerate(first):
        with zipfile.ZipFile(file) as archive:
            name = next(one for one in archive.namelist() if one.endswith("/data.pkl"))
            state = _read(io.BytesIO(archive.read(name)))
        for chunk, content in state.items():
            if chunk.startswith("model"):
                for key, shape in content.items():
                    if isinstance(shape, tuple):
                        found[_numbered(key, f"{stage:03}{chunk.removeprefix('model'):0>3}")] = shape
    parts = {place.name.split("_")[2] for place in folder.glob("mp_rank_*")}
    return found, len(parts)


def _numbered(name: str, part: str) -> str:
    """A tensor's name with a number of its layer that no other part of the model has."""
    plain = name.replace(".base_layer.", ".")  # of a model with LoRA
    return re.sub(r"(decoder\.layers\.)(\d+)\.", lambda found: f"{found[1]}1{part}{int(found[2]):04}.", plain)


class _Thing:
    """Stands for an object of any class: what it was made of, and its state. Nothing of its class runs."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.state = given, named

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, name: Any, value: Any) -> None:
        self.state[name] = value

    def append(self, value: Any) -> None:
        self.given = (*self.given, value)


class _Dictionary(dict[Any, Any]):
    """Stands for the dictionaries of `collections`, without their factories and attributes."""

    def __init__(self, *given: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        pass


class _Reader(pickle.Unpickler):
    """Reads a pickle without loading any class that it names, and tensors as their shapes."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "collections" and name in ("OrderedDict", "defaultdict"):
            return _Dictionary
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, *rest: tuple(size)
        if name == "_rebuild_parameter":
            return lambda data, *rest: data
        return _Thing

    def persistent_load(self, pid: Any) -> None:
        return None


def _read(file: io.BytesIO) -> Any:
    return _Reader(file).load()
