"""The tables of our own converter: each family there and back in several layouts, what ranks have, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from megatron_ms import commands, config
from megatron_ms.conversion import checkpoints, names, names_program, weights
from megatron_ms.errors import UserError
from megatron_ms.inference.engine import provide_torch
from megatron_ms.models.foreign import FOREIGN
from megatron_ms.models.toys import TOYS
from megatron_ms.training.folder import LATEST
from tests.toolkit import fake_upstream
from tests.toolkit.conversion.test_forms import in_form

pytest.importorskip("transformers", reason="needs the extra hf")


@pytest.fixture
def model(tmp_path, request) -> Path:
    """A folder in the form of a class of transformers."""
    family = request.param
    if family in TOYS:
        return TOYS[family].make(tmp_path / "model")
    return in_form(FOREIGN[family].make(tmp_path / "own"), family, tmp_path / "model")


def run(monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["names_program.py", *map(str, words)])
    names_program.main()


def kind_of(model: Path) -> str:
    return json.loads((model / "config.json").read_text())["model_type"]


def to_megatron(monkeypatch, model: Path, result: Path, *layout: object) -> None:
    ways = ["--load-model-type", "hf", "--save-model-type", "mg", "--load-dir", model, "--save-dir", result]
    run(monkeypatch, "--model-type-hf", kind_of(model), *ways, *layout)


def to_huggingface(monkeypatch, checkpoint: Path, like: Path, *layout: object) -> dict[str, weights.Tensor]:
    """The tensors that come back. `like` is a folder with config.json, which gets the files."""
    ways = [
        "--load-model-type",
        "mg",
        "--save-model-type",
        "hf",
        "--load-dir",
        checkpoint,
        "--save-dir",
        like,
    ]
    run(monkeypatch, "--model-type-hf", kind_of(like), *ways, *layout)
    return weights.tensors(like / "mg2hf")


def sizes(tensor: int = 1, pipeline: int = 1, expert: int = 1) -> list[object]:
    given = {"tensor": tensor, "pipeline": pipeline, "expert": expert}
    return [word for name, size in given.items() for word in (f"--target-{name}-parallel-size", size)]


CHUNKS = ["--num-layers-per-virtual-pipeline-stage", 1]
ROWS = [
    ("GPT-OSS", sizes(), 1),
    ("GPT-OSS", sizes(expert=2, pipeline=2), 4),
    ("GPT-OSS", sizes(tensor=2, expert=4), 8),
    ("GPT-3", sizes(tensor=4), 4),
    ("GPT-3", [*sizes(tensor=2, pipeline=2), *CHUNKS], 4),
    ("ChatGLM3", sizes(tensor=2, pipeline=4), 8),
    ("Bloom", sizes(tensor=4), 4),
    ("Bloom", [*sizes(pipeline=2), *CHUNKS], 2),
]


@pytest.mark.parametrize(
    ("model", "layout", "parts"), ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS], indirect=["model"]
)
def test_there_and_back(monkeypatch, tmp_path, model, layout, parts) -> None:
    to_megatron(monkeypatch, model, tmp_path / "there", *layout)
    assert len(list((tmp_path / "there/iter_0000001").iterdir())) == parts
    assert (tmp_path / "there" / LATEST).read_text() == "1"
    found = to_huggingface(monkeypatch, tmp_path / "there", model, *layout)
    assert weights.difference(weights.tensors(model), found) == ""


@pytest.mark.parametrize("model", ["GPT-OSS"], indirect=True)
def test_what_a_rank_has(monkeypatch, tmp_path, model) -> None:
    """Checked by hand: the rows of a group's queries, key and value; gate and values of an expert; heads of the sinks."""
    provide_torch()
    import torch
    from safetensors.torch import load_file

    whole = load_file(model / "model.safetensors")
    to_megatron(monkeypatch, model, tmp_path / "there", *sizes(tensor=2, expert=2))
    part = tmp_path / "there/iter_0000001/mp_rank_01_001/model_optim_rng.pt"
    state = torch.load(part, weights_only=False)["model"]
    q, k, v = (whole[f"model.layers.3.self_attn.{name}_proj.weight"] for name in "qkv")
    # 8 heads of 16 rows in 4 groups: the second tensor rank has the groups 2 and 3.
    rows = [q[64:96], k[32:48], v[32:48], q[96:], k[48:], v[48:]]
    layer = "decoder.layers.3."
    assert torch.equal(state[f"{layer}self_attention.linear_qkv.weight"], torch.cat(rows))
    sinks = whole["model.layers.3.self_attn.sinks"]
    assert torch.equal(state[f"{layer}self_attention.core_attention.softmax_offset"], sinks[4:])
    # 4 experts with a width of 176: the second expert rank has the experts 2 and 3, of which a tensor rank has 88 of each half.
    both = whole["model.layers.3.mlp.experts.gate_up_proj"][3].T
    rows = [both[0::2][88:], both[1::2][88:]]
    assert torch.equal(state[f"{layer}mlp.experts.local_experts.1.linear_fc1.weight"], torch.cat(rows))
    down = whole["model.layers.3.mlp.experts.down_proj"][3].T
    assert torch.equal(state[f"{layer}mlp.experts.local_experts.1.linear_fc2.weight"], down[:, 88:])
    assert f"{layer}mlp.experts.local_experts.2.linear_fc2.weight" not in state


@pytest.mark.parametrize("model", ["Bloom"], indirect=True)
def test_what_a_rank_of_bloom_has(monkeypatch, tmp_path, model) -> None:
    """The norm after the embeddings is on the first stage, whole on each rank; 12 heads of 3 x 8 rows are divided by heads."""
    provide_torch()
    import torch
    from safetensors.torch import load_file

    whole = load_file(model / "model.safetensors")
    to_megatron(monkeypatch, model, tmp_path / "there", *sizes(tensor=2, pipeline=2))
    states = {
        part.parent.name: torch.load(part, weights_only=False)["model"]
        for part in (tmp_path / "there/iter_0000001").glob("*/*.pt")
    }
    norm = "embedding.word_embeddings.norm.bias"
    assert sorted(name for name, state in states.items() if norm in state) == [
        "mp_rank_00_000",
        "mp_rank_01_000",
    ]
    theirs = whole["transformer.word_embeddings_layernorm.bias"]
    assert torch.equal(states["mp_rank_01_000"][norm], theirs)
    packed = whole["transformer.h.2.self_attention.query_key_value.weight"]
    assert torch.equal(
        states["mp_rank_01_001"]["decoder.layers.0.self_attention.linear_qkv.weight"], packed[144:]
    )
    out = whole["transformer.h.2.self_attention.dense.weight"]
    assert torch.equal(
        states["mp_rank_01_001"]["decoder.layers.0.self_attention.linear_proj.weight"], out[:, 48:]
    )


@pytest.mark.parametrize("model", ["Bloom"], indirect=True)
def test_names_without_the_prefix(monkeypatch, tmp_path, model) -> None:
    """As in the published folders of Bloom. The names that come back have it, and transformers reads both."""
    provide_torch()
    from safetensors.torch import load_file, save_file

    before = weights.tensors(model)
    file = model / "model.safetensors"
    plain = {name.removeprefix("transformer."): tensor for name, tensor in load_file(file).items()}
    assert "h.0.mlp.dense_h_to_4h.bias" in plain
    save_file(plain, file, {"format": "pt"})
    to_megatron(monkeypatch, model, tmp_path / "there", *sizes(tensor=2))
    assert (
        weights.difference(before, to_huggingface(monkeypatch, tmp_path / "there", model, *sizes(tensor=2)))
        == ""
    )


def test_layers_of_stages() -> None:
    assert names.stages(8, 2, None) == [[range(4)], [range(4, 8)]]
    assert names.stages(8, 2, 2) == [[range(2), range(4, 6)], [range(2, 4), range(6, 8)]]


@pytest.mark.parametrize("model", ["GPT-3"], indirect=True)
def test_the_last_stage_has_a_copy_of_a_tied_embedding(monkeypatch, tmp_path, model) -> None:
    """The way back finds out if the copies differ."""
    provide_torch()
    import torch

    to_megatron(monkeypatch, model, tmp_path / "there", *sizes(pipeline=2))
    first, last = sorted((tmp_path / "there/iter_0000001").glob("*/*.pt"))
    held = torch.load(last, weights_only=False)
    words = torch.load(first, weights_only=False)["model"]["embedding.word_embeddings.weight"]
    assert torch.equal(held["model"]["output_layer.weight"], words)
    held["model"]["output_layer.weight"][0, 0] += 1
    torch.save(held, last)
    with pytest.raises(SystemExit, match=r"transformer.wte.weight differs between ranks"):
        to_huggingface(monkeypatch, tmp_path / "there", model, *sizes(pipeline=2))


@pytest.mark.parametrize("model", ["GPT-OSS"], indirect=True)
def test_tensors_without_a_place_and_missing_ones(monkeypatch, tmp_path, model) -> None:
    provide_torch()
    import torch
    from safetensors.torch import load_file, save_file

    file = model / "model.safetensors"
    whole = load_file(file)
    save_file({**whole, "model.layers.0.new": torch.ones(2)}, file)
    with pytest.raises(SystemExit, match=r"model.layers.0.new has no place in Megatron's model"):
        to_megatron(monkeypatch, model, tmp_path / "there")
    save_file({name: one for name, one in whole.items() if "layers.2.self_attn.sinks" not in name}, file)
    with pytest.raises(SystemExit, match=r"has no tensor model.layers.2.self_attn.sinks"):
        to_megatron(monkeypatch, model, tmp_path / "second")
    save_file(whole, file)
    to_megatron(monkeypatch, model, tmp_path / "third", *sizes(expert=2))
    part = tmp_path / "third/iter_0000001/mp_rank_00_001/model_optim_rng.pt"
    held = torch.load(part, weights_only=False)
    held["model"]["decoder.layers.0.new.weight"] = torch.ones(2)
    torch.save(held, part)
    with pytest.raises(SystemExit, match=r"decoder.layers.0.new.weight has no place in Hugging Face's model"):
        to_huggingface(monkeypatch, tmp_path / "third", model, *sizes(expert=2))
    with pytest.raises(SystemExit, match=r"there is no .*mp_rank_00_002"):
        to_huggingface(monkeypatch, tmp_path / "third", model, *sizes(expert=4))


@pytest.mark.parametrize("model", ["GPT-OSS"], indirect=True)
def test_large_models_are_written_in_several_files(monkeypatch, tmp_path, model) -> None:
    before = weights.tensors(model)
    to_megatron(monkeypatch, model, tmp_path / "there")
    monkeypatch.setattr(names_program, "_SHARD", 200_000)
    found = to_huggingface(monkeypatch, tmp_path / "there", model)
    files = sorted(file.name for file in (model / "mg2hf").glob("*.safetensors"))
    assert len(files) > 2 and files[0] == f"model-00001-of-{len(files):05}.safetensors"
    assert weights.difference(before, found) == ""
    assert not list((model / "mg2hf").glob("part-*"))


def test_a_vocabulary_that_ranks_do_not_divide(monkeypatch, tmp_path) -> None:
    row = names.TABLES["gpt_oss"].rows[0]
    provide_torch()
    import torch

    with pytest.raises(ValueError, match=r"\[253, 4\] cannot be divided among 2 tensor ranks"):
        names.divided(row, torch.ones(253, 4), 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["parallel.tensor=2"], "parallel.tensor: is 2, but Megatron does not divide experts with biases"),
        (["parallel.tensor=2", "parallel.expert_tensor=1"], "expert_tensor: is 1, but a conversion of this family divides experts"),
        (["parallel.pipeline=2", "parallel.num_layer_list='1,3'"], "model.num_layer_list: a conversion of this family has stages"),
        (["model.moe_grouped_gemm=true"], "model.moe_grouped_gemm: a conversion of this family has experts one by one"),
        (["about.core=0.20.0"], "run.trees: the model needs Megatron Core 0.20.0 or newer, but the version of the trees is 0.19.0"),
    ],
)  # fmt: skip
def test_layouts_that_are_refused(tmp_path, monkeypatch, capsys, words, said) -> None:
    """With a tree of Megatron-LM alone, which is enough for this converter."""
    monkeypatch.chdir(tmp_path)
    tree = fake_upstream.make(tmp_path / "alone")
    (tree / "megatron/core/package_info.py").write_text("MAJOR = 0\nMINOR = 19\nPATCH = 0\n")
    toy = TOYS["GPT-OSS"]
    toy.make(tmp_path / "model")
    (tmp_path / "convert.yaml").write_text(
        f"recipe: {toy.recipe}\nrun: {{trees: [{tree}]}}\ndataset: {{sequence_length: 64}}\n"
        "convert: {source: model, output: there, to: megatron}\n"
    )
    assert commands.main(["convert", "convert.yaml", *toy.words(), *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob(".there*")) and not (tmp_path / "there").exists()


def settings_of(tmp_path: Path, family: str, **model: object):
    toy = (TOYS | FOREIGN)[family]
    (tmp_path / "convert.yaml").write_text(f"recipe: {toy.recipe}\ndataset: {{sequence_length: 64}}\n")
    words = [*toy.words(), *(f"model.{name}={value}" for name, value in model.items())]
    return checkpoints.settings_of(config.load(str(tmp_path / "convert.yaml"), words))


@pytest.mark.parametrize(
    ("family", "facts", "model", "said"),
    [
        ("GPT-OSS", {}, {}, ""),
        ("GPT-OSS", {"sliding_window": 9}, {}, "window_size: is 7,0, but must be 8,0"),
        ("GPT-OSS", {}, {"window_attn_skip_freq": 3}, "window_attn_skip_freq: is 3, but must be 2"),
        ("GPT-OSS", {"layer_types": ["full_attention"] * 4}, {}, "layer_types is .* and Megatron's GPT-OSS has"),
        ("GPT-OSS", {"swiglu_limit": 6.0}, {}, "activation_func_clamp_value: is 7.0, but must be 6.0"),
        ("GPT-OSS", {"swiglu_alpha": 1.5}, {}, "swiglu_alpha is 1.5"),
        ("GPT-OSS", {"intermediate_size": 88}, {"ffn_hidden_size": 88}, "moe_ffn_hidden_size: is 176, but must be 88"),
        ("GPT-OSS", {"rope_parameters": {"rope_type": "default"}}, {}, "only YaRN is known"),
        ("GPT-OSS", {}, {"rotary_base": 10000}, "rotary_base: is 10000, but must be 150000"),
        ("GPT-OSS", {}, {"no_yarn_correction_range_round_to_int": "false"}, "is False, but must be true"),
        ("GPT-3", {}, {}, ""),
        ("GPT-3", {}, {"no_bias_gelu_fusion": "null"}, "no_bias_gelu_fusion: is True, but must be false"),
        ("GPT-3", {"activation_function": "gelu"}, {}, "no_bias_gelu_fusion: is False, but must be true"),
        ("GPT-3", {"activation_function": "relu"}, {}, "activation_function is relu"),
        ("GPT-3", {"scale_attn_by_inverse_layer_idx": True}, {}, "scale_attn_by_inverse_layer_idx is true"),
        ("Bloom", {}, {}, ""),
        ("Bloom", {}, {"embed_layernorm": "false"}, "embed_layernorm: is False, but must be true"),
        ("Bloom", {}, {"no_bias_gelu_fusion": "null"}, "no_bias_gelu_fusion: is True, but must be false"),
        ("Bloom", {}, {"position_embedding_type": "rope"}, "position_embedding_type: is rope, but must be alibi"),
        ("Bloom", {}, {"norm_epsilon": 1e-6}, "norm_epsilon: is 1e-06, but must be 1e-05"),
        ("Bloom", {"layer_norm_epsilon": 1e-6}, {}, "layer_norm_epsilon is 1e-06, and MindSpeed-LLM's Bloom has 1e-05"),
        ("Bloom", {"apply_residual_connection_post_layernorm": True}, {}, "apply_residual_connection_post_layernorm is True"),
        ("ChatGLM3", {}, {}, ""),
        ("ChatGLM3", {}, {"use_glm_rope": "false"}, "use_glm_rope: is False, but must be true"),
        ("ChatGLM3", {}, {"rotary_percent": 1.0}, "rotary_percent: is 1.0, but must be 0.5"),
    ],
)  # fmt: skip
def test_flags_are_those_of_the_model(tmp_path, family, facts, model, said) -> None:
    """A short forward pass would not find out about a window that is longer than its text."""
    toy = (TOYS | FOREIGN)[family]
    place = toy.make(tmp_path / "model")
    stated = checkpoints.facts_of(place) | facts
    settings = settings_of(tmp_path, family, **model)
    if not said:
        checkpoints.check_geometry(settings, stated, place)
        return
    with pytest.raises(UserError, match=said):
        checkpoints.check_geometry(settings, stated, place)
