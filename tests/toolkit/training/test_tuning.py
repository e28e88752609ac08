"""The command lines of MindSpeed-LLM: pretraining, fine-tuning, LoRA and DPO, with a fake of it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from megatron_ms import commands
from tests.toolkit import fake_upstream

FILE = """\
name: toy
run: {{trees: [{trees}]}}
data: {{task: instruction, sources: alpaca.json, tokenizer: tokenizer, output: out/alpaca, template: qwen}}
dataset: {{sequence_length: 64}}
model: {{num_layers: 2, hidden_size: 64, num_attention_heads: 4, vocab_size: 256, position_embedding_type: rope}}
train: {{iterations: 2}}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("llm")
    fake_upstream.make_llm(folder)
    return folder


@pytest.fixture
def line(shared, tmp_path, monkeypatch, capsys):
    """What --print-command prints after the launcher, in one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    trees = [shared / "llm", shared / "mindspeed", shared / "megatron-lm" / "megatron"]
    (tmp_path / "toy.yaml").write_text(FILE.format(trees=", ".join(map(str, trees))))
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("alpaca_packed_input_ids_document", "pairs_packed_chosen_input_ids_document", "text"):
        for ending in (".bin", ".idx"):
            (tmp_path / "out" / (name + ending)).write_text("")

    def printed(*words: str) -> str:
        assert commands.main(["train", "toy.yaml", "--print-command", *words]) == 0
        return " ".join(shlex.split(capsys.readouterr().out.replace("\\\n", " ")))

    return printed


def test_pretraining(line, tmp_path) -> None:
    found = line("dataset.path=out/text")
    assert "/llm/pretrain_gpt.py " in found
    assert f"--data-path {tmp_path}/out/text" in found and "--stage" not in found
    assert "--padded-vocab-size 256 --make-vocab-size-divisible-by 1" in found
    assert f"--tokenizer-type PretrainedFromHF --tokenizer-name-or-path {tmp_path}/tokenizer" in found


def test_fine_tuning_with_what_the_command_data_made(line, tmp_path) -> None:
    found = line("run.task=sft")
    assert "/llm/posttrain_gpt.py " in found and f"--data-path {tmp_path}/out/alpaca " in found
    assert "--stage sft --is-instruction-dataset --prompt-type qwen" in found and "--lora" not in found
    assert "--prompt-type llama3" in line("run.task=sft", "dataset.template=llama3")


def test_lora(line) -> None:
    found = line("run.task=lora", "tune.rank=4")
    assert (
        "--lora-r 4 --lora-alpha 16 --lora-target-modules linear_qkv linear_proj linear_fc1 linear_fc2"
        in found
    )


def test_preference_pairs(line) -> None:
    found = line("run.task=dpo", "dataset.path=out/pairs")
    assert "--stage dpo --is-pairwise-dataset" in found and "--lora" not in found
    assert "--lora-r 8" in line("run.task=dpo", "dataset.path=out/pairs", "tune.alpha=16")
    found = line("run.task=dpo", "dataset.path=out/pairs", "tune.dpo_loss_type=ipo")
    assert "--dpo-loss-type ipo" in found and "--lora" not in found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run.task=sft", "dataset.path=out/text"],
            "sft wants instruction data: PREFIX_packed_input_ids_document.bin",
        ),
        (["dataset.mock=true", "dataset.path=null"], "only Megatron-LM has random data"),
        (["run.trees=[llm]"], "the folder "),
    ],
)
def test_wrong_input(line, capsys, words, message) -> None:
    assert commands.main(["train", "toy.yaml", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_flag_that_a_rule_gives_back(line, capsys) -> None:
    """Trees that were not converted lack it, and so do those of an earlier conversion."""
    words = ["train", "toy.yaml", "--print-command", "dataset.path=out/text", "model.embed_layernorm=true"]
    assert commands.main(words) == 2
    said = capsys.readouterr().err
    assert (
        "model.embed_layernorm: is switched off in these trees: make them with `bash auto_convert.sh llm`"
        in said
    )


def test_trees_that_are_missing(line, shared, capsys) -> None:
    assert commands.main(["train", "toy.yaml", f"run.trees=[{shared}/llm]"]) == 2
    assert "MindSpeed-LLM also needs a tree of MindSpeed and of Megatron-LM" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["megatron", "hf"])
def test_qlora_is_refused(line, capsys, backend) -> None:
    words = ["tune.qlora=true", "run.task=lora"]
    if backend == "hf":
        file = Path("toy.yaml")
        text = [
            one for one in file.read_text().splitlines() if not one.startswith(("run:", "data:", "model:"))
        ]
        file.write_text("\n".join([*text, "run: {backend: hf}", "resume: {load: model}"]) + "\n")
    assert commands.main(["train", "toy.yaml", *words]) == 2
    assert "tune.qlora: is not supported: weights of 4 bits need" in capsys.readouterr().err


def test_a_vocabulary_that_ranks_cannot_divide(line, capsys) -> None:
    words = ["dataset.path=out/text", "model.vocab_size=255", "parallel.tensor=2", "run.processes=2"]
    assert commands.main(["train", "toy.yaml", "--print-command", *words]) == 2
    assert "model.vocab_size: vocabulary 255 is not divisible by tensor 2" in capsys.readouterr().err
    assert "--padded-vocab-size 256 " in line(*words, "model.padded_vocab_size=256")


def test_the_device_cpu_is_refused(line, capsys) -> None:
    """MindSpeed-LLM imports torch_npu, which a program with the CPU alone does not have."""
    assert "/llm/pretrain_gpt.py " in line("dataset.path=out/text", "run.device=npu")
    assert commands.main(["train", "toy.yaml", "dataset.path=out/text", "run.device=cpu"]) == 2
    assert "run.device: is cpu, which MindSpeed-LLM refuses: write npu;" in capsys.readouterr().err


def test_a_window_is_applied_or_refused(line, capsys) -> None:
    """MindSpeed-LLM applies it in flash attention alone, and not together with a mask of the padding."""
    window = ["model.sliding_window=8", "model.use_flash_attn=true"]
    assert "--sliding-window 8" in line("dataset.path=out/text", *window)
    assert "--sliding-window 8" in line("run.task=sft", *window, "dataset.reset_attention_mask=true")
    assert "--sliding-window 64" in line(
        "run.task=sft", "model.sliding_window=64", "model.use_flash_attn=true"
    )
    for words, said in (
        (["dataset.path=out/text", *window[:1]], "model.use_flash_attn: must be true: nothing else"),
        (["run.task=lora", *window], "dataset.reset_attention_mask: must be true, or give fewer tokens: lora in 64"),
    ):  # fmt: skip
        assert commands.main(["train", "toy.yaml", "--print-command", *words]) == 2
        assert said in capsys.readouterr().err


def test_a_soft_cap_is_applied_or_refused(line, capsys) -> None:
    """MindSpeed-LLM's own layers apply it with linear biases alone, and ours have it without fused kernels."""
    cap, own = "model.attn_logit_softcapping=50.0", "model.spec=[megatron_ms.models.gemma2_spec,layer_spec]"
    data = ["dataset.path=out/text", "dataset.sequence_length=64"]
    found = line(*data, cap, own)
    assert "--attn-logit-softcapping 50.0 --spec megatron_ms.models.gemma2_spec layer_spec" in found
    assert "--attn-logit-softcapping 50.0" in line(*data, cap, "model.position_embedding_type=alibi")
    theirs = "model.spec=[mindspeed_llm.tasks.models.spec.gemma2_spec,layer_spec]"
    for words, said in (
        ([cap], "model.spec: is None, but must be ['megatron_ms.models.gemma2_spec', 'layer_spec']: the layers of"),
        ([cap, theirs], "ignore attn_logit_softcapping"),
        ([cap, "model.position_embedding_type=alibi", "model.use_flash_attn=true"], "model.spec: is None, but must be"),
        ([cap, own, "model.use_flash_attn=true"], "model.use_flash_attn: is not supported with the layers of Gemma 2"),
        ([cap, own, "dataset.reset_attention_mask=true"], "dataset.reset_attention_mask: is not supported with the"),
        ([cap, own, "parallel.context=2", "run.processes=2"], "parallel.context: is not supported with the layers"),
    ):  # fmt: skip
        assert commands.main(["train", "toy.yaml", "--print-command", *data, *words]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("task", ["sft", "lora", "dpo"])
def test_a_model_that_upstream_cannot_tune_is_refused(line, shared, capsys, task) -> None:
    """GPT-OSS is in the newest Megatron-LM, which has no tuning. The message names the backend that has it."""
    text = Path("toy.yaml").read_text()
    Path("toy.yaml").write_text("".join(row for row in text.splitlines(True) if not row.startswith("model:")))
    words = ["train", "toy.yaml", "recipe=gpt-oss-20b", f"run.task={task}"]
    for trees in ([], [f"run.trees={shared}/megatron-lm/megatron"]):
        assert commands.main([*words, *trees]) == 2
        said = capsys.readouterr().err
        assert f"run.task: is {task}, which no program of upstream has for GPT-OSS: tune a folder" in said
        assert "with run.backend: hf, which needs no recipe and no trees" in said
    assert commands.main([*words, "run.backend=hf"]) == 2
    assert "model: has no effect with run.backend: hf; leave the recipe out" in capsys.readouterr().err
    Path("toy.yaml").write_text(text)
    assert commands.main([*words[:2], f"run.task={task}", *trees]) == 2
    assert (
        "bash auto_convert.sh llm; or tune a folder of Hugging Face with run.backend: hf"
        in capsys.readouterr().err
    )


def test_matrices_need_the_weights_of_the_model(line, tmp_path, capsys) -> None:
    """Without --load, MindSpeed-LLM would not look at --lora-load."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "base").mkdir()
    assert commands.main(["train", "toy.yaml", "run.task=lora", "tune.load=matrices", "--print-command"]) == 2
    assert "tune.load: names matrices, which upstream reads only beside" in capsys.readouterr().err
    assert f"--lora-load {tmp_path}/matrices" in line(
        "run.task=lora", "tune.load=matrices", "resume.load=base"
    )


def test_learned_positions_must_be_in_the_data(line, capsys) -> None:
    """MindSpeed-LLM's instruction data has none otherwise, and the training would end in the embedding of positions."""
    learned, flags = "model.position_embedding_type=learned_absolute", ("model.use_flash_attn=true",)
    assert "--position-embedding-type learned_absolute" in line("dataset.path=out/text", learned)
    for words, key in (
        ((), "dataset.reset_attention_mask"),
        (("dataset.reset_attention_mask=true",), "model.use_flash_attn"),
    ):
        assert commands.main(["train", "toy.yaml", "run.task=sft", learned, *words]) == 2
        assert f"{key}: must be true: MindSpeed-LLM's data for sft has positions" in capsys.readouterr().err
    assert "--reset-attention-mask" in line(
        "run.task=sft", learned, "dataset.reset_attention_mask=true", *flags
    )


def test_a_format_that_upstream_ignores_is_refused(tmp_path, monkeypatch, capsys) -> None:
    """MindSpeed-LLM 2.3.0 writes torch whatever it is told; the message names the key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trees = fake_upstream.make_llm(tmp_path / "trees")
    (tmp_path / "toy.yaml").write_text(FILE.format(trees=", ".join(map(str, trees))))
    (tmp_path / "tokenizer").mkdir()
    for ending in (".bin", ".idx"):
        (tmp_path / f"text{ending}").write_text("")
    words = [
        "train",
        "toy.yaml",
        "--print-command",
        "dataset.path=text",
        "dataset.tokenizer=tokenizer",
        "save.interval=2",
    ]
    assert commands.main([*words, "save.format=torch_dist"]) == 0
    assert "--ckpt-format torch_dist" in capsys.readouterr().out
    source = trees[0] / "mindspeed_llm" / "training" / "arguments.py"
    source.parent.mkdir()
    source.write_text("args.ckpt_format = 'torch'\n")
    assert commands.main([*words, "save.format=torch_dist"]) == 2
    assert "save.format: is torch_dist, but " in capsys.readouterr().err
    assert commands.main(words) == 0
