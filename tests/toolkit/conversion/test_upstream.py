"""MindSpeed-LLM's converters behind the command `convert`: each family there and back, in several layouts, and what is refused."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from megatron_ms import commands, config
from megatron_ms.conversion import (
    checkpoints,
    forward,
    padding,
    padding_program,
    resharding,
    tools,
    upstream,
    weights,
)
from megatron_ms.errors import UserError
from megatron_ms.models.foreign import FOREIGN
from megatron_ms.models.prove_megatron import make_tokenizer
from megatron_ms.models.toys import TOYS
from megatron_ms.training import megatron
from megatron_ms.training.folder import LATEST
from megatron_ms.upstream import trees as upstream_trees
from tests.toolkit import fake_upstream
from tests.toolkit.llm import laid_out

pytest.importorskip("transformers", reason="needs the extra hf")
# A family, and the layout of its checkpoint.
ROWS = [
    ("LLaMA2", []),
    ("LLaMA3", ["parallel.pipeline=2", "parallel.num_layer_list='1,3'"]),
    ("Qwen2.5", ["parallel.tensor=2", "parallel.pipeline=2"]),
    ("Mistral", ["parallel.pipeline=2", "parallel.layers_per_virtual_stage=1"]),
    ("Mixtral", ["parallel.expert=2"]),
    ("Qwen3", ["parallel.tensor=2"]),
    ("Qwen3-MoE", ["parallel.pipeline=2", "parallel.expert=2"]),
    ("InternLM2", ["parallel.pipeline=2", "parallel.num_layer_list='1,3'"]),
    ("ChatGLM3", ["parallel.tensor=2", "parallel.pipeline=2"]),
    ("GPT-3", ["parallel.pipeline=2", "parallel.layers_per_virtual_stage=1"]),
    ("Bloom", ["parallel.tensor=2", "parallel.pipeline=2"]),
    ("Gemma 2", ["parallel.tensor=2", "parallel.pipeline=2"]),
]
PADDED = ["model.vocab_size=253", "model.padded_vocab_size=256", "parallel.tensor=2"]


@pytest.fixture(scope="module")
def trees() -> Path:
    return laid_out()


@pytest.mark.slow
@pytest.mark.parametrize(("family", "layout"), ROWS, ids=[name for name, _ in ROWS])
def test_there_and_back(trees, tmp_path, monkeypatch, capfd, family, layout) -> None:
    """To Megatron and to Hugging Face again: the same tensors bit for bit, and Megatron's logits are those of transformers.

    Only the older converter knows Mixtral, and that of release 26.1.0 refuses the transformers of its own release.
    """
    monkeypatch.chdir(tmp_path)
    toy = (TOYS | FOREIGN)[family]
    toy.make(tmp_path / "model")
    text = f"recipe: {toy.recipe}\nrun: {{trees: {trees}, device: npu}}\ndataset: {{sequence_length: 64}}\n"
    (tmp_path / "convert.yaml").write_text(f"{text}convert: {{source: model, output: there, to: megatron}}\n")
    words = [*toy.words(), *layout]
    code = commands.main(["convert", "convert.yaml", *words])
    if family == "Mixtral" and "transformers should be less than or equal to 4.57" in capfd.readouterr().err:
        assert code == 1 and not (tmp_path / "there").exists()
        return
    assert code == 0
    proofs = json.loads((tmp_path / "there/manifest.json").read_text())["proofs"]
    assert proofs["back"] == "bit for bit" and proofs["logits"] < 1e-4
    back = ["convert.source=there", "convert.output=back", "convert.to=huggingface", "convert.like=model"]
    assert commands.main(["convert", "convert.yaml", *words, *back]) == 0
    assert weights.difference(weights.tensors(tmp_path / "model"), weights.tensors(tmp_path / "back")) == ""


@pytest.mark.slow
def test_a_padded_vocabulary(trees, tmp_path, monkeypatch) -> None:
    """253 tokens on two tensor ranks: rows are added, trained with, and left out again."""
    monkeypatch.chdir(tmp_path)
    toy = TOYS["Qwen2.5"]
    replace(toy, config=toy.config | {"vocab_size": 253, "pad_token_id": 252}).make(tmp_path / "model")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"text": "1 2 3 {row}"}}\n' for row in range(60)))
    make_tokenizer(tmp_path / "tokenizer", 253)
    text = f"recipe: qwen2.5-0.5b\nrun: {{trees: {trees}, device: npu}}\ndataset: {{sequence_length: 16}}\n"
    text += "data: {sources: rows.jsonl, tokenizer: tokenizer, output: texts}\nconvert: {source: model, output: there}\n"
    (tmp_path / "convert.yaml").write_text(
        f"{text}train: {{iterations: 3, global_batch: 2}}\nresume: {{load: there}}\n"
    )
    words = [*TOYS["Qwen2.5"].words(), *PADDED]
    assert commands.main(["convert", "convert.yaml", *words, "convert.to=megatron"]) == 0
    back = ["convert.source=there", "convert.output=back", "convert.like=model"]
    assert commands.main(["convert", "convert.yaml", *words, *back]) == 0
    assert weights.difference(weights.tensors(tmp_path / "model"), weights.tensors(tmp_path / "back")) == ""
    assert commands.main(["data", "convert.yaml", *words]) == 0
    run = ["run.processes=2", "save.interval=3", "name=padded"]
    assert commands.main(["train", "convert.yaml", *words, *run]) == 0
    (trained,) = (tmp_path / "runs/padded").iterdir()
    back = [f"convert.source={trained / 'checkpoints'}", "convert.output=after", "convert.like=model"]
    assert commands.main(["convert", "convert.yaml", *words, *back]) == 0
    found = weights.tensors(tmp_path / "after")
    assert found["model.embed_tokens.weight"].shape[0] == 253 and weights.difference(
        weights.tensors(tmp_path / "model"), found
    ).endswith("has other values")


def test_rows_are_added_and_left_out(place) -> None:
    """The files of the source stay as they are; a size that does not fit is named with one that does."""
    before = weights.tensors(place / "model")
    (place / "view").mkdir()
    for file in weights.files(place / "model"):
        (place / "view" / file.name).symlink_to(file)
    padding.add(place / "view", 264)
    longer = weights.tensors(place / "view")
    assert longer["model.embed_tokens.weight"].shape[0] == 264 and weights.tensors(place / "model") == before
    padding.leave_out(place / "view", 256)
    assert weights.tensors(place / "view") == before
    for words, said in (
        (
            ["model.padded_vocab_size=250"],
            "is 250, but must be at least 256 and divisible by tensor 1: for example 256",
        ),
        (["model.padded_vocab_size=257", "parallel.tensor=2"], "divisible by tensor 2: for example 256"),
    ):
        settings = checkpoints.settings_of(config.load("convert.yaml", [*TOYS["Qwen2.5"].words(), *words]))
        with pytest.raises(UserError, match=said):
            padding.size(settings, 256)
    part = {"output_layer.weight": numpy.ones((4, 2)), "other": numpy.ones(2)}
    import torch

    part = {name: torch.tensor(value) for name, value in part.items()}
    for rank, rows in ((0, 4), (1, 2), (2, 0)):
        made = padding_program.without_padding(part, rank, 6)
        assert made["output_layer.weight"].sum() == 2 * rows and made["other"].sum() == 2


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A configuration with trees that look like upstream's, and a model."""
    monkeypatch.chdir(tmp_path)
    named = [str(tree) for tree in fake_upstream.make_llm(tmp_path / "trees")]
    text = f"recipe: qwen2.5-0.5b\nrun: {{trees: {json.dumps(named)}}}\ndataset: {{sequence_length: 64}}\n"
    (tmp_path / "convert.yaml").write_text(f"{text}convert: {{source: model, output: there, to: megatron}}\n")
    (tmp_path / "trees/llm/convert_ckpt.py").write_text("raise ValueError('a converter was started')\n")
    TOYS["Qwen2.5"].make(tmp_path / "model")
    return tmp_path


def test_what_does_not_fit_is_named(place, capsys) -> None:
    toy = TOYS["Qwen2.5"].words()
    shutil.copytree(place / "model", place / "strange")
    facts = json.loads((place / "strange/config.json").read_text())
    (place / "strange/config.json").write_text(
        json.dumps(facts | {"auto_map": {"AutoConfig": "code.Config"}})
    )
    shutil.copytree(place / "model", place / "other")
    (place / "other/config.json").write_text(json.dumps(facts | {"model_type": "bert"}))
    shutil.copytree(place / "model", place / "odd")
    (place / "odd/config.json").write_text(json.dumps(facts | {"vocab_size": 255}))
    (place / "old").mkdir()
    (place / "old" / LATEST).write_text("4")
    for words, said in (
        ([], "model.num_layers: is 24, but "),
        ([*toy, "convert.source=old"], "names the iteration '4', which is not there"),
        ([*toy, "model.hidden_size=128"], "model.hidden_size: is 128, but "),
        (
            [*toy, "parallel.tensor=2", "model.vocab_size=255", "convert.source=odd"],
            "model.vocab_size: vocabulary 255 is not divisible by tensor 2: also give model.padded_vocab_size=256",
        ),
        ([*toy, "parallel.tensor=3"], "8 heads is not divisible by tensor 3"),
        ([*toy, "parallel.context=2"], "parallel.context: a checkpoint does not depend on it"),
        ([*toy, "convert.source=strange"], "needs code of its own (auto_map), which is never run"),
        (
            [*toy, "convert.source=other"],
            "model_type is bert; there are converters for aquila, baichuan, bloom, chatglm, deepseek_v3",
        ),
        (
            [*toy, f"run.trees=[{place / 'trees/megatron-lm/megatron'}]"],
            "the converters are those of MindSpeed-LLM",
        ),
        ([*toy, "convert.to=huggingface"], "model is a model of this format already"),
        (
            [*toy, "convert.to=adapter"],
            "convert.to: an adapter can be made only from a checkpoint of Megatron",
        ),
    ):
        assert commands.main(["convert", "convert.yaml", *words]) == 2, said
        assert said in capsys.readouterr().err
        assert not list(place.glob(".there*")) and not (place / "there").exists()


def test_a_loaded_model_drops_nothing_out_and_reads_single_texts(place) -> None:
    """MindSpeed-LLM's flash attention would drop scores out in the mode `eval` too, and want the ends of packed texts."""
    text = (place / "convert.yaml").read_text().replace("recipe: qwen2.5-0.5b\n", "")
    sizes = "num_layers: 2, hidden_size: 64, num_attention_heads: 4, vocab_size: 256"
    (place / "convert.yaml").write_text(f"{text}model: {{{sizes}, attention_dropout: 0.1}}\n")
    words = ["train.hidden_dropout=0.1", "dataset.reset_attention_mask=true"]
    settings = checkpoints.settings_of(config.load("convert.yaml", words))
    trees = upstream_trees.find(settings.run.trees)
    made = megatron.loading_command(settings, trees, ["program.py"], place).words
    for flag in ("--attention-dropout", "--hidden-dropout"):
        assert made.count(flag) == 1 and made[made.index(flag) + 1] == "0.0"
    assert "--reset-attention-mask" not in made


def _facts(**facts: object) -> dict[str, object]:
    return {"max_position_embeddings": 64, **facts}


@pytest.mark.parametrize(
    ("facts", "model", "said"),
    [
        (_facts(model_type="mistral", sliding_window=8), {"sliding_window": 7, "use_flash_attn": True}, ""),
        (_facts(model_type="mistral", sliding_window=8), {}, "sliding_window: is None, but must be 7"),
        (_facts(model_type="mistral", sliding_window=8), {"sliding_window": 8}, "sliding_window: is 8, but must be 7"),
        (_facts(model_type="mistral", sliding_window=8), {"sliding_window": 7}, "use_flash_attn: must be true"),
        (_facts(model_type="mistral", sliding_window=None), {"sliding_window": 7}, "has no window: write null"),
        (_facts(model_type="mistral", sliding_window=None), {}, ""),
        (_facts(model_type="mistral"), {}, ""),  # 4,096 is longer than every text
        ({"model_type": "mistral"}, {}, "must be 4095"),
        (_facts(model_type="qwen2", sliding_window=8, use_sliding_window=False), {}, ""),
        (_facts(model_type="qwen2", sliding_window=8, use_sliding_window=True), {}, "a window to some layers alone"),
        (_facts(model_type="qwen3", sliding_window=8), {"sliding_window": 7}, "has no window"),
        (_facts(model_type="llama"), {}, ""),
    ],
)  # fmt: skip
def test_a_window_is_that_of_the_model(place, facts, model, said) -> None:
    words = [*TOYS["Qwen2.5"].words(), *(f"model.{name}={value}" for name, value in model.items())]
    settings = checkpoints.settings_of(config.load("convert.yaml", words))
    if not said:
        checkpoints.check_geometry(settings, facts, place / "model")
        return
    with pytest.raises(UserError, match=said):
        checkpoints.check_geometry(settings, facts, place / "model")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, ""),
        ({"attn_logit_softcapping": 50.0}, "model.attn_logit_softcapping: is 2.0, but must be 50.0, to fit"),
        ({"final_logit_softcapping": None}, "model.output_logit_softcapping: is 5.0, but must be null, to fit"),
        ({"query_pre_attn_scalar": 256}, "model.query_pre_attn_scalar: is 24, but must be 256"),
        ({"sliding_window": 4096}, "model.interleave_sliding_window: is 8, but must be 4096"),
        ({"layer_types": ["full_attention"] * 4}, "layer_types is .*, and the layers of Gemma 2 have"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
    ],
)  # fmt: skip
def test_the_attention_of_gemma_2_is_that_of_the_model(place, facts, said) -> None:
    """A window that is longer than the texts of the proofs, and a cap that is high, would not be seen in them."""
    text = (place / "convert.yaml").read_text().replace("recipe: qwen2.5-0.5b", "recipe: gemma2-2b")
    (place / "convert.yaml").write_text(text)
    toy = TOYS["Gemma 2"]
    stated = {"model_type": "gemma2", "num_hidden_layers": 4, **toy.config, **facts}
    settings = checkpoints.settings_of(config.load("convert.yaml", toy.words()))
    if not said:
        checkpoints.check_geometry(settings, stated, place / "model")
        return
    with pytest.raises(UserError, match=said):
        checkpoints.check_geometry(settings, stated, place / "model")


def _check_trees(words: list[str], said: str) -> upstream_trees.Trees:
    """The trees of a configuration. They must be accepted, or refused with `said` if that is a text."""
    settings = checkpoints.settings_of(config.load("convert.yaml", words))
    trees = upstream_trees.find(settings.run.trees)
    with pytest.raises(UserError, match=said) if said else contextlib.nullcontext():
        megatron.check_trees(settings, trees)
    return trees


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["parallel.tensor=2", "parallel.sequence=true"], "parallel.sequence: must be false with model.embed_layernorm"),
        (["save.interval=1", "save.format=torch_dist"], "save.format: torch_dist leaves out the norm of model.embed_layernorm"),
        (["save.format=torch_dist"], ""),
    ],
)  # fmt: skip
def test_a_norm_after_the_embeddings_is_not_lost(place, words, said) -> None:
    """MindSpeed-LLM would train it wrongly with sequence parallelism, and leave it out of a distributed checkpoint."""
    words = [*TOYS["Qwen2.5"].words(), *words]
    for more, expected in (([], ""), (["model.embed_layernorm=true"], said)):
        _check_trees([*words, *more], expected)


def test_stages_of_different_lengths_have_no_distributed_checkpoint(place) -> None:
    """MindSpeed-LLM numbers their layers as if stages were of the same length, and would end when it saves the first one."""
    words = [*TOYS["Qwen2.5"].words(), "parallel.pipeline=2", "save.interval=1"]
    for stages, form, said in (
        ("'1,3'", "torch_dist", "save.format: torch_dist numbers the layers of stages of different lengths"),
        ("'2,2'", "torch_dist", ""),
        ("'1,3'", "torch", ""),
    ):
        trees = _check_trees([*words, f"parallel.num_layer_list={stages}", f"save.format={form}"], said)
    document = config.load("convert.yaml", [*words, "parallel.num_layer_list='1,3'"])
    settings = checkpoints.settings_of(document)
    entries = [("convert", "ckpt_format", "torch_dist")]
    with pytest.raises(UserError, match="parallel.num_layer_list: leave it out: a distributed checkpoint is"):
        megatron.loading_command(settings, trees, ["program.py"], place, entries)
    (place / "checkpoint/iter_0000001").mkdir(parents=True)
    (place / "checkpoint" / LATEST).write_text("1")
    even = checkpoints.settings_of(config.load("convert.yaml", words))
    for wanted, layout in ((settings, {}), (even, {"num_layer_list": "1,3"})):
        job = SimpleNamespace(
            document=document,
            source=place / "checkpoint",
            layout=layout,
            wanted=wanted,
            trees=SimpleNamespace(only_torch=lambda: False),
        )
        with pytest.raises(
            UserError, match="convert.to: .* different lengths wrongly: convert to huggingface"
        ):
            resharding._check(job, "torch")


def test_a_norm_after_the_embeddings_is_not_brought_into_another_layout(place) -> None:
    """The way goes through a distributed checkpoint."""
    (place / "checkpoint/iter_0000001").mkdir(parents=True)
    (place / "checkpoint" / LATEST).write_text("1")
    words = [*TOYS["Qwen2.5"].words(), "model.embed_layernorm=true"]
    settings = checkpoints.settings_of(config.load("convert.yaml", words))
    job = SimpleNamespace(
        document=settings.document,
        wanted=settings,
        source=place / "checkpoint",
        layout={},
        trees=SimpleNamespace(only_torch=lambda: False),
    )
    with pytest.raises(UserError, match="convert.to: Megatron's distributed checkpoints leave out the norm"):
        resharding._check(job, "torch")


def test_a_checkpoint_of_another_layout_is_named(place, capsys) -> None:
    source = place / "checkpoint"
    for part in ("mp_rank_00", "mp_rank_01"):
        (source / "iter_0000004" / part).mkdir(parents=True)
    (source / LATEST).write_text("4")
    words = [*TOYS["Qwen2.5"].words(), "convert.source=checkpoint", "convert.to=huggingface"]
    assert commands.main(["convert", "convert.yaml", *words]) == 2
    assert "convert.like: must name a folder" in capsys.readouterr().err
    words += ["convert.like=model", "parallel.pipeline=4"]
    assert commands.main(["convert", "convert.yaml", *words]) == 2
    assert "iter_0000004 has 2 parts, but TP 1 x PP 4 has 4" in capsys.readouterr().err
    (source / LATEST).write_text("5")
    assert commands.main(["convert", "convert.yaml", *words]) == 2
    assert "names the iteration '5', which is not there" in capsys.readouterr().err


def test_a_converter_that_fails_or_is_wrong(place, capsys) -> None:
    """Its last lines are shown; what it made is removed, also when only a tensor is missing."""
    words = ["convert", "convert.yaml", *TOYS["Qwen2.5"].words(), "convert.forward=false"]
    program = place / "trees/llm/convert_ckpt.py"
    program.write_text("raise ValueError('the weights are bad')\n")
    assert commands.main(words) == 1
    assert "ValueError: the weights are bad" in capsys.readouterr().err
    program.write_text(
        "import sys, pathlib, shutil\n"
        "given = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "out = pathlib.Path(given['--save-dir'])\n"
        f"if given['--save-model-type'] == 'hf': shutil.copytree({str(place / 'worse')!r}, out / 'mg2hf')\n"
        "else: out.mkdir()\n"
    )
    shutil.copytree(place / "model", place / "worse")
    weights.remove(place / "worse", "model.norm.weight")
    assert commands.main(words) == 1
    assert "converted there and back: model.norm.weight is missing" in capsys.readouterr().err
    assert not list(place.glob(".there*")) and not (place / "there").exists()


def test_the_newer_converter_is_taken_where_it_knows_the_model(place) -> None:
    """The kinds are read from the program; one without a list is believed to know all."""
    trees = upstream_trees.find(
        [str(place / "trees" / name) for name in ("llm", "mindspeed", "megatron-lm/megatron")]
    )
    older, newer = (trees.programs / name for name in ("convert_ckpt.py", "convert_ckpt_v2.py"))
    declared = "parser.add_argument('--model-type-hf', type=str, choices=[{}])\n"
    older.write_text(declared.format("'llama2', 'mixtral'"))
    newer.write_text(declared.format("'qwen25', 'glm45', 'glm45-air'"))
    for facts, program, name in (
        ({"model_type": "qwen2"}, "convert_ckpt_v2.py", "qwen25"),
        ({"model_type": "llama"}, "convert_ckpt.py", "llama2"),
        ({"model_type": "mixtral"}, "convert_ckpt.py", "mixtral"),
        ({"model_type": "glm4_moe", "use_qk_norm": True}, "convert_ckpt_v2.py", "glm45"),
        ({"model_type": "glm4_moe"}, "convert_ckpt_v2.py", "glm45-air"),
    ):
        found = tools.tool_for(trees, facts, place / "config.json")
        assert (found.program, found.name) == (program, name)
    newer.write_text(declared.format("'qwen3'"))
    found = tools.tool_for(trees, {"model_type": "qwen2"}, place / "config.json")
    assert (found.program, found.name, found.flags) == ("convert_ckpt.py", "llama2", ("--add-qkv-bias",))
    with pytest.raises(
        UserError, match="config.json: model_type is gemma, which needs gemma in convert_ckpt.py"
    ):
        tools.tool_for(trees, {"model_type": "gemma"}, place / "config.json")


def test_config_json_for_older_readers() -> None:
    rope = {"rope_type": "default", "rope_theta": 5.0}
    assert upstream._older({"dtype": "bfloat16", "rope_parameters": rope, "a": 1}) == {
        "a": 1,
        "torch_dtype": "bfloat16",
        "rope_theta": 5.0,
    }
    far = {"rope_type": "yarn", "rope_theta": 5.0, "factor": 2.0}
    assert upstream._older({"rope_parameters": far})["rope_scaling"] == {"rope_type": "yarn", "factor": 2.0}


def test_logits_that_differ_are_refused() -> None:
    one = numpy.array([[1.0, -4.0]], numpy.float32)
    assert forward.compare(one, one + 2e-4, "F32", "x") == pytest.approx(5e-5, rel=1e-2)
    for other in (one + 1e-3, one * numpy.nan, one[:, :1]):
        with pytest.raises(forward.ProofError):
            forward.compare(one, other, "F32", "x")


def test_the_layout_decides_the_number_of_processes(place) -> None:
    words = [*TOYS["Qwen2.5"].words(), "parallel.tensor=2", "parallel.pipeline=2", "run.processes=3"]
    assert checkpoints.settings_of(config.load("convert.yaml", words)).run.processes == 4
    with pytest.raises(UserError, match="4 layers is not divisible by pipeline 3"):
        checkpoints.settings_of(config.load("convert.yaml", [*words, "parallel.pipeline=3"]))
