"""Converts by the tables of `names.py`, with the flags of MindSpeed-LLM's converters.

    names_program.py --model-type-hf KIND --load-model-type hf --save-model-type mg --load-dir FOLDER --save-dir RESULT FLAGS...
    names_program.py --model-type-hf KIND --load-model-type mg --save-model-type hf --load-dir CHECKPOINT --save-dir FOLDER FLAGS...

KIND is a name of TABLES. A folder of Hugging Face has config.json, and the way back writes model.safetensors below mg2hf in it. The
checkpoint is in the format torch, in the layout of --target-tensor-parallel-size and the other sizes, for both directions. Nothing
but tensors is read, and one file at a time is written, so a machine needs memory for the largest part and for one layer's tensors.
Run in the environment of upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from megatron_ms.conversion import names, weights
from megatron_ms.training.folder import LATEST, named_iteration

_FILE = "model_optim_rng.pt"
_SHARD = 5 * 10**9  # bytes of a file of Hugging Face, as transformers writes them


class Layout:
    """The parts of a checkpoint, and the tensors in each of them."""

    def __init__(self, given: argparse.Namespace, facts: names.Facts) -> None:
        self.tensor, self.pipeline, self.expert = given.tensor, given.pipeline, given.expert
        self.table, self.sizes = names.TABLES[given.kind], names.Sizes.of(facts)
        self.tied = bool(facts.get("tie_word_embeddings", self.table.tied))
        self.stages = names.stages(self.sizes.layers, self.pipeline, given.chunk)

    def experts(self, rank: int) -> range:
        """The experts of an expert parallel rank."""
        here = self.sizes.experts // self.expert
        return range(rank * here, (rank + 1) * here)

    def place(self, tensor: int, stage: int, expert: int) -> str:
        """The folder of a part, as Megatron names it."""
        name = f"mp_rank_{tensor:02d}"
        if self.pipeline > 1:
            name += f"_{stage:03d}"
        return name + (f"_{expert:03d}" if self.expert > 1 else "")

    def chunks(self, stage: int, expert: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """The parts of the model on a stage: their key in the file, and what `names.present` says of them."""
        ranges = self.stages[stage]
        for turn, layers in enumerate(ranges):
            first = stage == turn == 0
            last = stage == self.pipeline - 1 and turn == len(ranges) - 1
            found = names.present(self.table, layers, first, last, self.tied, self.experts(expert))
            yield "model" if len(ranges) == 1 else f"model{turn}", list(found)


class Source:
    """The tensors of a folder of Hugging Face, read when they are asked for."""

    def __init__(self, folder: Path, table: names.Table) -> None:
        from safetensors import safe_open

        self.open: dict[str, tuple[Any, str]] = {}
        for file in weights.files(folder):
            stream = safe_open(file, framework="pt")
            stored = list(stream.keys())  # it has no iterator
            self.open |= {table.named(name): (stream, name) for name in stored}
        self.used: set[str] = set()
        self.folder = folder

    def __call__(self, name: str, expert: int | None) -> Any:
        """A tensor, or that of one expert.

        Raises:
            SystemExit: there is none of this name.
        """
        if name not in self.open:
            raise SystemExit(f"{self.folder} has no tensor {name}")
        self.used.add(name)
        stream, stored = self.open[name]
        if expert is None:
            return stream.get_tensor(stored)
        return stream.get_slice(stored)[expert : expert + 1][0]


def to_megatron(given: argparse.Namespace) -> None:
    """Writes a file for each part.

    Raises:
        SystemExit: a tensor is missing, or one has no place.
    """
    import torch

    layout = Layout(given, facts_of(given.load))
    source = Source(given.load, layout.table)
    for stage in range(layout.pipeline):
        for expert in range(layout.expert):
            states: list[dict[str, Any]] = [{} for _ in range(layout.tensor)]
            for chunk, held in layout.chunks(stage, expert):
                for state in states:
                    state[chunk] = {}
                for row, name, layer, number in held:
                    parts = [source(theirs(one, layer), number) for one in row.theirs]
                    whole = names.made(row, parts, layout.sizes)
                    divided = checked(names.divided, row, whole, layout.tensor)
                    for state, part in zip(states, divided, strict=True):
                        state[chunk][name] = part.clone()
            for rank, state in enumerate(states):
                folder = given.save / "iter_0000001" / layout.place(rank, stage, expert)
                folder.mkdir(parents=True)
                torch.save(state | about(layout), folder / _FILE)
    if left := sorted(set(source.open) - source.used):
        raise SystemExit(f"{given.load}: {left[0]} has no place in Megatron's model")
    (given.save / LATEST).write_text("1", encoding="utf-8")


def about(layout: Layout) -> dict[str, Any]:
    """What a checkpoint says beside the weights: the layout, and that it has no other states."""
    arguments = argparse.Namespace(
        tensor_model_parallel_size=layout.tensor,
        pipeline_model_parallel_size=layout.pipeline,
        expert_model_parallel_size=layout.expert,
        no_save_optim=True,
        no_save_rng=True,
    )
    return {"checkpoint_version": 3.0, "iteration": 1, "args": arguments}


def to_huggingface(given: argparse.Namespace) -> None:
    """Writes files of safetensors.

    Raises:
        SystemExit: a part is missing, has other tensors than the table, or ranks have different copies of one.
    """
    import torch

    layout = Layout(given, facts_of(given.save))
    folder = named_iteration(given.load)[1]
    writer = Writer(given.save / "mg2hf")
    for stage in range(layout.pipeline):
        states = {
            (rank, expert): loaded(folder / layout.place(rank, stage, expert) / _FILE)
            for rank in range(layout.tensor)
            for expert in range(layout.expert)
        }
        stacks: dict[tuple[str, int | None], dict[int, Any]] = defaultdict(dict)
        for expert in range(layout.expert):
            for chunk, held in layout.chunks(stage, expert):
                for row, name, layer, number in held:
                    parts = [take(states[rank, expert], chunk, name) for rank in range(layout.tensor)]
                    whole = checked(names.undivided, row, parts)
                    for one, tensor in zip(row.theirs, names.unmade(row, whole, layout.sizes), strict=True):
                        if number is None:
                            writer.add(theirs(one, layer), tensor)
                        else:
                            stacks[one, layer][number] = tensor
        for state in states.values():
            for chunk, held in state.items():
                if chunk.startswith("model"):
                    left = [name for name, value in held.items() if isinstance(value, torch.Tensor)]
                    if left:
                        raise SystemExit(f"{folder}: {min(left)} has no place in Hugging Face's model")
        writer.stack(stacks)
    writer.end()


class Writer:
    """Files of Hugging Face. A tensor that comes again, as from another expert parallel rank, must be the same."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.held: dict[str, Any] = {}
        self.seen: dict[str, list[Any]] = {}
        self.places: dict[str, int] = {}
        self.count = 0

    def add(self, name: str, tensor: Any) -> None:
        """Keeps a tensor for the next file.

        Raises:
            SystemExit: it is there with other values.
        """
        from megatron_ms.conversion.parts import fact

        found = fact(tensor)
        if name in self.seen:
            if self.seen[name] != found:
                raise SystemExit(f"{name} differs between ranks that must have the same")
            return
        self.seen[name] = found
        self.held[name] = tensor.clone().contiguous()
        if sum(one.numel() * one.element_size() for one in self.held.values()) >= _SHARD:
            self.write()

    def stack(self, stacks: dict[tuple[str, int | None], dict[int, Any]]) -> None:
        """Keeps the tensors of experts, with the expert as the first dimension."""
        import torch

        for (name, layer), experts in stacks.items():
            self.add(theirs(name, layer), torch.stack([experts[number] for number in sorted(experts)]))

    def write(self) -> None:
        from safetensors.torch import save_file

        self.count += 1
        save_file(self.held, self.folder / f"part-{self.count:05d}", {"format": "pt"})
        self.places |= dict.fromkeys(self.held, self.count)
        self.held = {}

    def end(self) -> None:
        """Writes the last file, gives all their names, and writes the index if there are several."""
        if self.held:
            self.write()
        named = {
            number: "model.safetensors"
            if self.count == 1
            else f"model-{number:05d}-of-{self.count:05d}.safetensors"
            for number in range(1, self.count + 1)
        }
        for number, name in named.items():
            (self.folder / f"part-{number:05d}").rename(self.folder / name)
        if self.count > 1:
            size = sum((self.folder / name).stat().st_size for name in named.values())
            listed = {name: named[number] for name, number in sorted(self.places.items())}
            content = {"metadata": {"total_size": size}, "weight_map": listed}
            (self.folder / weights.INDEX).write_text(json.dumps(content, indent=1), encoding="utf-8")


def theirs(name: str, layer: int | None) -> str:
    """A name of Hugging Face with the number of the layer."""
    return name.replace(names.LAYER, str(layer))


def take(state: dict[str, Any], chunk: str, name: str) -> Any:
    """Takes a tensor out of a part, so that what is left has no place.

    Raises:
        SystemExit: it is not there.
    """
    held = state.get(chunk, {})
    if name not in held:
        raise SystemExit(f"the checkpoint has no {name} in {chunk}")
    return held.pop(name)


def checked(change: Any, *operands: Any) -> Any:
    """What a function of `names` makes. SystemExit with its message instead of ValueError."""
    try:
        return change(*operands)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def loaded(file: Path) -> dict[str, Any]:
    """The content of a part.

    Raises:
        SystemExit: it is not there.
    """
    import torch

    if not file.is_file():
        raise SystemExit(f"there is no {file}")
    return dict(torch.load(file, map_location="cpu", weights_only=False))


def facts_of(folder: Path) -> dict[str, Any]:
    """The config.json of a folder."""
    return dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))


def parsed() -> argparse.Namespace:
    """The flags. Those of upstream's converters that this one does not need are not taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model-type-hf", dest="kind", choices=sorted(names.TABLES), required=True)
    parser.add_argument("--load-model-type", choices=["hf", "mg"], required=True)
    parser.add_argument("--save-model-type", choices=["hf", "mg"], required=True)
    parser.add_argument("--load-dir", dest="load", type=Path, required=True)
    parser.add_argument("--save-dir", dest="save", type=Path, required=True)
    for name in ("tensor", "pipeline", "expert"):
        parser.add_argument(f"--target-{name}-parallel-size", dest=name, type=int, default=1)
    parser.add_argument("--num-layers-per-virtual-pipeline-stage", dest="chunk", type=int)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.load_model_type == "hf":
        to_megatron(given)
    else:
        to_huggingface(given)


if __name__ == "__main__":
    main()
