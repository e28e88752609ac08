"""Sizes that do not fit one another, and flags that are given twice."""

from __future__ import annotations

import pytest

from megatron_ms import config
from megatron_ms.errors import UserError
from megatron_ms.training import megatron, settings


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["run.processes=6", "parallel.tensor=2", "parallel.pipeline=2"],
         "command line, run.processes=6: run.processes: world size 6 is not divisible by tensor 2 x pipeline 2 = 4"),
        (["run.processes=3", "parallel.context=2"], "world size 3 is not divisible by context 2"),
        (["run.processes=8", "parallel.tensor=8"], "line 4: model.num_attention_heads: 4 heads is not divisible by tensor 8"),
        (["model.num_query_groups=3"], "4 heads is not divisible by groups 3"),
        (["run.processes=4", "parallel.tensor=4", "model.num_query_groups=2"], "2 query groups is not divisible by tensor 4"),
        (["model.hidden_size=66"], "hidden size 66 is not divisible by heads 4"),
        (["run.processes=3", "parallel.pipeline=3", "train.global_batch=3"], "4 layers is not divisible by pipeline 3"),
        (["run.processes=2", "parallel.pipeline=2", "parallel.layers_per_virtual_stage=3"],
         "4 layers is not divisible by pipeline 2 x layers of a chunk 3 = 6"),
        (["parallel.layers_per_virtual_stage=1"], "needs parallel.pipeline of 2 or more"),
        (["run.processes=2", "parallel.expert=2"], "is 2, but the model has no experts"),
        (["run.processes=2", "parallel.expert=2", "model.num_experts=3"], "3 experts is not divisible by expert 2"),
        (["run.processes=2", "parallel.tensor=2", "parallel.expert=2", "model.num_experts=4"],
         "world size 2 is not divisible by expert 2 x expert tensor 2 = 4"),
        (["model.num_experts=4", "model.moe_router_topk=5"], "5 of 4 experts cannot be chosen"),
        (["run.processes=2", "parallel.context=2", "dataset.sequence_length=66"],
         "sequence length 66 is not divisible by context 2 x halves 2 = 4"),
        (["run.processes=2", "parallel.tensor=2", "parallel.sequence=true", "dataset.sequence_length=65"],
         "sequence length 65 is not divisible by tensor 2"),
        (["run.processes=2", "train.micro_batch=3"], "global batch 8 is not divisible by micro batch 3 x replicas 2 = 6"),
        (["run.nodes=2"], "run.port must be given for several machines"),
        (["dataset.lr=1", "upstream.adam_beta1=1", "train.adam_beta1=1"], "upstream.adam_beta1: is also given in train"),
        (["upstream.peak_tflops=376"], "upstream.peak_tflops: is not a flag of upstream: write monitor.peak_tflops"),
        (["upstream.async_save=true"], "upstream.async_save: writes files after the manifest"),
        (["train.iterations=0"], "train.iterations: input should be greater than 0"),
        (["name=a/b"], None),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(read, overrides, message) -> None:
    if message is None:
        with pytest.raises(UserError, match="must be letters"):
            read(*overrides).name  # noqa: B018  (a property)
        return
    with pytest.raises(UserError) as error:
        read(*overrides)
    assert message in str(error.value)


FEWER = (
    "run.nodes=3", "run.min_nodes=2", "run.port=29500", "run.id=x", "run.processes=2", "recovery.restarts=3",
    "save.interval=5", "train.global_batch=24",
)  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["run.min_nodes=4"], "min_nodes is 4, but nodes is 3"),
        (["recovery.restarts=0"], "run.min_nodes: needs recovery.restarts"),
        (["save.interval=null"], "run.min_nodes: needs save.interval"),
        (["train.global_batch=null"], "run.min_nodes: needs train.global_batch"),
        (["parallel.distributed_optimizer=true"], "run.min_nodes: needs save.format: torch_dist"),
        (["train.global_batch=18"], "allows 2 machines, with which a size does not fit"),
        (["run.min_nodes=1", "parallel.tensor=2", "parallel.pipeline=2", "run.nodes=2"],
         "allows 1 machine, with which a size does not fit"),
    ],
)  # fmt: skip
def test_each_number_of_machines_must_fit(read, overrides, message) -> None:
    with pytest.raises(UserError) as error:
        read(*FEWER, *overrides)
    assert message in str(error.value)


def test_the_launcher_gets_the_range_of_machines(read) -> None:
    shards = ("parallel.distributed_optimizer=true", "save.format=torch_dist")
    assert megatron._launch(read(*FEWER, *shards))[:4] == ["--nnodes", "2:3", "--node-rank", "0"]
    assert megatron._launch(read(*FEWER, "run.min_nodes=3"))[1] == "3"


def test_safetensors_may_be_asked_for_by_the_name_of_upstreams_flag(read) -> None:
    assert read("upstream.ckpt_format=safetensors").save.format == "safetensors"


def test_all_wrong_keys_of_all_sections_are_told(read) -> None:
    with pytest.raises(UserError) as error:
        read("train.iterations=x", "model.num_layers=0", "run.task=play")
    assert len(str(error.value).splitlines()) == 3


def test_a_training_has_a_length(read) -> None:
    """`plan` needs none; a training needs steps, or what its program has in their place."""
    without = read("train.iterations=null")
    with pytest.raises(UserError, match="train.iterations: is missing: .* or train.train_samples"):
        without.check_length("train_samples")
    read("train.iterations=null", "train.train_samples=100").check_length("train_samples")


def test_uneven_layers_are_upstreams_to_check(read) -> None:
    read("run.processes=3", "parallel.pipeline=3", "train.global_batch=3", "upstream.num_layer_list=1,1,2")


def test_sizes_that_follow_from_others(read) -> None:
    found = read("run.processes=4", "parallel.tensor=2", "train.global_batch=null", "train.micro_batch=2")
    assert (found.replicas, found.global_batch) == (2, 4)


def test_a_flag_of_a_file_goes_before_that_of_its_recipe_in_another_section(tmp_path) -> None:
    """And one of the command line before both. Whether a flag is written under model or train does not matter."""
    (tmp_path / "small.yaml").write_text(
        "model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4, hidden_dropout: 0.0}\n"
        "dataset: {sequence_length: 8}\n"
    )
    file = tmp_path / "run.yaml"
    for section, overrides, expected in (
        ("train", (), 0.1),
        ("upstream", (), 0.1),
        ("train", ("upstream.hidden_dropout=0.2",), 0.2),
        ("train", ("model.hidden_dropout=0.3",), 0.3),
    ):
        file.write_text(f"recipe: {tmp_path}/small.yaml\n{section}: {{hidden_dropout: 0.1}}\n")
        found = settings.read(config.load(file, overrides))
        assert found.flag("hidden_dropout") == expected
        given = [one.model_extra or {} for one in found.sections().values()]
        assert sum("hidden_dropout" in one for one in given) == 1
