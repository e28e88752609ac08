"""Data and checkpoints that do not fit a training are told before it starts, with their file and key."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

import numpy
import pytest

from megatron_ms import commands, config
from megatron_ms.config.training import Model
from megatron_ms.data import indexed
from megatron_ms.errors import UserError
from megatron_ms.inference.engine import provide_torch
from megatron_ms.plan import geometry
from megatron_ms.training import inputs
from megatron_ms.training import settings as checks
from megatron_ms.training.folder import LATEST
from tests.toolkit import fake_upstream


def write(prefix: Path, ids: list[int]) -> None:
    """An indexed data set of one document."""
    array = numpy.array(ids, numpy.uint16)
    indexed.bin_path(prefix).write_bytes(array.tobytes())
    counts = numpy.array([len(ids)], numpy.int32), numpy.array([1], numpy.int64)
    indexed.write_index(indexed.idx_path(prefix), array.dtype, *counts)


def cut(file: str, size: int) -> None:
    Path(file).write_bytes(Path(file).read_bytes()[:size])


@pytest.fixture
def llm(tmp_path, monkeypatch) -> Path:
    """A folder with toy.yaml, data and a tokenizer, and a fake of MindSpeed-LLM."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trees = ", ".join(map(str, fake_upstream.make_llm(tmp_path / "trees")))
    (tmp_path / "toy.yaml").write_text(
        f"run: {{trees: [{trees}]}}\n"
        "dataset: {path: [1, text], tokenizer: tokenizer, sequence_length: 64}\n"
        "model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4, vocab_size: 256}\n"
        "train: {iterations: 2}\n"
    )
    (tmp_path / "tokenizer").mkdir()
    write(tmp_path / "text", [3, 255, 7])
    return tmp_path


def test_truncated_data(llm, capsys) -> None:
    assert commands.main(["train", "toy.yaml"]) == 0
    runs = sorted(Path("runs").rglob("*"))
    capsys.readouterr()
    for file, size, said in (
        ("text.bin", 4, "text.bin: is truncated: it has 4 bytes, and text.idx describes 6"),
        ("text.idx", 40, "text.idx: is truncated: it has 40 bytes"),
        ("text.idx", 0, "text.idx: is truncated: it has 0 bytes"),
    ):
        write(llm / "text", [3, 255, 7])
        cut(file, size)
        assert commands.main(["train", "toy.yaml"]) == 2
        error = capsys.readouterr().err
        assert "dataset.path: " in error and said in error and error.count("\n") == 1
    assert sorted(Path("runs").rglob("*")) == runs


def test_ids_that_have_no_embedding(llm, capsys) -> None:
    write(llm / "text", [3, 256, 7])
    assert commands.main(["train", "toy.yaml"]) == 2
    assert (
        f"dataset.path: {llm / 'text.bin'} has the id 256, but model.vocab_size is 256"
        in capsys.readouterr().err
    )
    write(llm / "rows_packed_input_ids_document", [900])
    words = ["dataset.path=rows", "run.task=sft", "model.position_embedding_type=rope"]
    assert commands.main(["train", "toy.yaml", *words]) == 2
    assert "rows_packed_input_ids_document.bin has the id 900" in capsys.readouterr().err


def test_newer_releases_of_megatron_lm_have_the_vocabulary_of_the_file(llm, capsys) -> None:
    """They have a flag for it; releases before 0.15 derive it from the tokenizer, whatever the file says."""
    tree = fake_upstream.make(llm / "alone")
    program = tree / "pretrain_gpt.py"
    program.write_text(program.read_text().replace("# MORE", fake_upstream._OF_LLM))
    words = ["train", "toy.yaml", f"run.trees=[{tree}]"]
    write(llm / "text", [3, 256, 7])
    for release, code in ((12, 0), (19, 2)):
        facts = f"MAJOR = 0\nMINOR = {release}\nPATCH = 0\n"
        (tree / "megatron/core/package_info.py").write_text(facts)
        assert commands.main(words) == code
    assert "text.bin has the id 256, but model.vocab_size is 256" in capsys.readouterr().err
    layout = ["run.processes=2", "parallel.tensor=2", "model.vocab_size=257", "--print-command"]
    assert commands.main([*words, *layout]) == 0
    assert "--padded-vocab-size 258" in capsys.readouterr().out
    save(llm / "start", [weights(rows=320)])
    assert commands.main([*words, "model.vocab_size=257", "resume.load=start", "train.iterations=6"]) == 2
    assert "vocab_size is 320 there, and 257 in this configuration" in capsys.readouterr().err


def test_long_data_is_looked_at_in_equal_steps(llm, monkeypatch) -> None:
    """All of it below the limit; above it as many blocks as the limit has, the first among them."""
    write(llm / "text", list(range(64)))
    monkeypatch.setattr(inputs, "_BLOCK", 8)  # four ids
    assert inputs._largest(indexed.open_indexed(llm / "text")) == 63
    monkeypatch.setattr(inputs, "_MOST", 32)  # four of 16 blocks: 0, 4, 8, 12
    assert inputs._largest(indexed.open_indexed(llm / "text")) == 51
    write(llm / "text", [])
    assert inputs._largest(indexed.open_indexed(llm / "text")) == -1


def weights(
    hidden: int = 64, rows: int = 256, layers: int = 2, **more: tuple[int, ...]
) -> dict[str, tuple[int, ...]]:
    """The tensors of the model in toy.yaml by their names in Megatron."""
    found = {
        "embedding.word_embeddings.weight": (rows, hidden),
        "embedding.position_embeddings.weight": (64, hidden),
    }
    for number in range(layers):
        layer = f"decoder.layers.{number}."
        found |= {
            layer + "input_layernorm.weight": (hidden,), layer + "input_layernorm.bias": (hidden,),
            layer + "self_attention.linear_qkv.weight": (3 * hidden, hidden),
            layer + "self_attention.linear_qkv.bias": (3 * hidden,),
            layer + "mlp.linear_fc1.weight": (4 * hidden, hidden),
        }  # fmt: skip
    return found | {name.replace("__", "."): shape for name, shape in more.items()}


def save(folder: Path, parts: list[dict[str, tuple[int, ...]]], name: str = "mp_rank_{:02}") -> None:
    """A checkpoint in the format torch, with a part in each file."""
    provide_torch()
    import torch

    for number, part in enumerate(parts):
        place = folder / "iter_0000004" / name.format(number)
        place.mkdir(parents=True)
        content = OrderedDict((key, torch.zeros(shape)) for key, shape in part.items())
        torch.save({"model": content, "args": {"x": Path}, "iteration": 4}, place / "model_optim_rng.pt")
    (folder / LATEST).write_text("4")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([weights()], ""),
        ([weights(hidden=32)], "hidden_size is 32 there, and 64 in this configuration"),
        ([weights(layers=3)], "num_layers is 3 there, and 2"),
        ([weights(rows=320)], "vocab_size is 320 there, and 256"),
        ([weights(decoder__layers__0__mlp__router__weight=(4, 64))], "an MLP with experts is True there, and False"),
        ([weights(decoder__layers__0__self_attention__q_layernorm__weight=(16,))], "a norm of queries and keys is True"),
        ([{k: v for k, v in weights().items() if "qkv.bias" not in k}], "a bias of queries, keys and values is False"),
        ([{k: v for k, v in weights().items() if "norm.bias" not in k}], "a bias of norms is False there, and True"),
        ([{k: v for k, v in weights().items() if "position" not in k}], "learned positions is False there, and True"),
        ([weights(embedding__word_embeddings__norm__weight=(64,))], "a norm after the embeddings is True there, and False"),
        ([weights() | {"decoder.layers.0.mlp.linear_fc1.weight": (512, 64)}], "the width of an MLP is 512 there, and 256"),
        ([weights() | {"decoder.layers.0.self_attention.linear_qkv.weight": (128, 64)}], "keys and values is 128 there"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_model(llm, capsys, parts, said) -> None:
    save(llm / "start", parts)
    code = commands.main(["train", "toy.yaml", "resume.load=start", "train.iterations=6"])
    error = capsys.readouterr().err
    assert (code, said in error) == ((2, True) if said else (0, True))
    if said:
        assert (
            f"resume.load: {Path('start/iter_0000004')} is of another model: " in error
            and not Path("runs").exists()
        )


def test_a_padded_vocabulary_has_more_rows_than_tokens(llm) -> None:
    save(llm / "start", [weights(rows=320)])
    words = ["resume.load=start", "train.iterations=6", "model.padded_vocab_size=320"]
    assert commands.main(["train", "toy.yaml", *words]) == 0


def test_parts_of_tensor_and_pipeline_parallelism(llm, monkeypatch) -> None:
    """Rows are divided among tensor ranks, and each stage numbers its layers from 0."""
    half = {
        name: (shape[0] // 2, *shape[1:]) if "linear" in name or "word" in name else shape
        for name, shape in weights(layers=1).items()
    }
    save(llm / "start", [half, half], "mp_rank_{:02}_000")
    save(llm / "start", [half, half], "mp_rank_{:02}_001")
    found, divided = inputs._tensors(llm / "start/iter_0000004")
    model = geometry.of(Model(num_layers=2, hidden_size=64, num_attention_heads=4, vocab_size=256), 64, {})
    assert divided == 2 and not list(inputs.differences(found, model, divided))
    other = geometry.of(Model(num_layers=1, hidden_size=64, num_attention_heads=4, vocab_size=256), 64, {})
    assert [what for what, _, _ in inputs.differences(found, other, divided)] == ["num_layers"]


def test_parts_of_expert_parallelism_have_the_same_layers(llm) -> None:
    """With and without stages, the last number in a part's name is that of the expert parallel rank."""
    held = weights(decoder__layers__0__mlp__router__weight=(4, 64))
    model = geometry.of(
        Model(num_layers=2, hidden_size=64, num_attention_heads=4, vocab_size=256, num_experts=4), 64, {}
    )
    for rank in ("000", "001"):
        save(llm / "alone", [held], "mp_rank_{:02}_" + rank)
        save(llm / "stages", [weights(layers=1)], "mp_rank_{:02}_000_" + rank)
        save(llm / "stages", [weights(layers=1)], "mp_rank_{:02}_001_" + rank)
    found, divided = inputs._tensors(llm / "alone/iter_0000004", expert=True)
    assert divided == 1 and not list(inputs.differences(found, model, divided))
    found, divided = inputs._tensors(llm / "stages/iter_0000004", expert=True)
    assert [row[:2] for row in inputs.differences(found, model, divided)] == [("an MLP with experts", False)]


def test_a_checkpoint_that_cannot_be_read(llm, capsys) -> None:
    save(llm / "start", [weights()])
    file = Path("start/iter_0000004/mp_rank_00/model_optim_rng.pt")
    cut(str(file), 1000)
    assert commands.main(["train", "toy.yaml", "resume.load=start"]) == 2
    assert "resume.load: start/iter_0000004 has no checkpoint that can be read: " in capsys.readouterr().err
    file.unlink()
    assert commands.main(["train", "toy.yaml", "resume.load=start"]) == 2
    assert "start/iter_0000004/mp_rank_00 has no model_optim_rng.pt: copy it again" in capsys.readouterr().err


def test_a_distributed_checkpoint_is_not_read_in_stages_of_different_lengths(llm) -> None:
    """MindSpeed-LLM would give a stage the layers of others."""
    save(llm / "start", [weights(layers=4)])
    (llm / "start/iter_0000004/.metadata").touch()
    words = ["model.num_layers=4", "parallel.pipeline=2", "run.processes=2", "parallel.num_layer_list='3,1'"]
    settings = checks.read(config.load("toy.yaml", words))
    with pytest.raises(UserError, match="parallel.num_layer_list: leave it out: a distributed checkpoint is"):
        inputs._check_checkpoint(settings, Path("start"), 256)


def test_a_folder_without_a_checkpoint_is_not_taken_for_none(llm, capsys) -> None:
    """Upstream would only warn, and train random weights."""
    for name, file in (("hugging", "config.json"), ("adapter", "adapter_config.json"), ("empty", "")):
        (llm / name).mkdir()
        if file:
            (llm / name / file).touch()
    save(llm / "start", [weights()])
    positions = "embedding.position_embeddings.weight"
    save(llm / "rotary", [{name: shape for name, shape in weights().items() if name != positions}])
    save(llm / "cut", [weights()])
    (llm / "cut" / LATEST).write_text("8")
    lora = ["run.task=lora", "model.position_embedding_type=rope", "dataset.path=rows"]
    write(llm / "rows_packed_input_ids_document", [3])
    none = f"is no folder of checkpoints, because it has no file {LATEST}"
    for words, said in (
        (
            ["resume.load=hugging"],
            f"resume.load: hugging {none}: make one of this model of Hugging Face with",
        ),
        (["resume.load=empty"], f"resume.load: empty {none}\n"),
        (["resume.load=start/iter_0000004"], f"{none}: name the folder above it"),
        (["resume.load=cut"], f"resume.load: cut/{LATEST} names iter_0000008, which is not there"),
        (
            [*lora, "resume.load=rotary", "tune.load=adapter"],
            f"tune.load: adapter {none}: make one of this adapter of peft with convert.to=megatron, and name it in resume.load, "
            "without tune.load: it has the weights of the model too\n",
        ),
    ):
        assert commands.main(["train", "toy.yaml", "train.iterations=6", *words]) == 2
        assert said in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_checkpoint_that_was_half_copied(llm, capsys) -> None:
    half = {
        name: (shape[0] // 2, *shape[1:]) if "linear" in name or "word" in name else shape
        for name, shape in weights().items()
    }
    save(llm / "start", [half, half])
    words = [
        "train",
        "toy.yaml",
        "resume.load=start",
        "parallel.tensor=2",
        "run.processes=2",
        "train.iterations=6",
    ]
    assert commands.main(words) == 0
    place = llm / "start/iter_0000004/mp_rank_01"
    (place / "model_optim_rng.pt").unlink()
    assert commands.main(words) == 2
    assert (
        "resume.load: start/iter_0000004/mp_rank_01 has no model_optim_rng.pt: copy it again"
        in capsys.readouterr().err
    )
    place.rmdir()
    assert commands.main(words) == 2
    assert "start/iter_0000004 has 1 parts, but TP 2 x PP 1 has 2: copy it again" in capsys.readouterr().err


def test_nothing_in_a_checkpoint_runs(llm, tmp_path) -> None:
    """A pickle may name any function; none is called."""
    provide_torch()
    import torch

    class Bad:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    place = tmp_path / "start/iter_0000004/mp_rank_00"
    place.mkdir(parents=True)
    torch.save({"model": {"a.weight": torch.zeros(2, 3)}, "bad": Bad()}, place / "model_optim_rng.pt")
    assert list(inputs._tensors(place.parent)[0].values()) == [(2, 3)]
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(
    "MSADAPTER_REFERENCE" not in os.environ,
    reason="needs MSADAPTER_REFERENCE, with checkpoints of Megatron-LM",
)
@pytest.mark.parametrize("name", ["init_gpt", "init_gpt_dist"])
def test_checkpoints_of_megatron_lm(name) -> None:
    """Both formats, as Megatron-LM on real PyTorch wrote them."""
    folder = Path(os.environ["MSADAPTER_REFERENCE"]) / name / "iter_0000001"
    found, divided = inputs._tensors(folder)
    (hidden,) = {shape[1] for key, shape in found.items() if key.endswith("word_embeddings.weight")}
    for size, expected in ((hidden, []), (hidden + 4, ["hidden_size"])):
        model = geometry.of(Model(num_layers=4, hidden_size=size, num_attention_heads=4), 64, {})
        assert [what for what, _, _ in inputs.differences(found, model, divided)][
            : len(expected) or None
        ] == expected
