"""torch.distributed.pipelining: each check of jobs/pipelining.py on two and on four ranks, and the orders against PyTorch's."""

import pytest

import msadapter as torch
from msadapter.distributed.pipelining import (
    PipelineStage,
    ScheduleZBVZeroBubble,
    SplitPoint,
    pipe_split,
    pipeline,
)
from msadapter.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from msadapter.distributed.pipelining.schedules import get_schedule_class
from tests.batches import together
from tests.distributed.pipelining_orders import SEVERAL, SINGLE, name_of, written
from tests.distributed.ranks import checks_of, outcomes_of
from tests.golden import store
from tests.golden.suites import cases
from tests.golden.verdict import check

ORDERS = store.load("pipelining_orders").cases
CASES = cases("pipelining")
CHECKS = checks_of("pipelining.py")


@pytest.fixture(scope="module", params=[2, 4])
def outcomes(request, tmp_path_factory):
    return outcomes_of("pipelining.py", request.param, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


def _stages(ranks, each):
    """The stages of rank 0 of a job of some ranks, which this process pretends to be."""
    made = [PipelineStage(torch.nn.Identity(), i * ranks, ranks * each, "cpu") for i in range(each)]
    for stage in made:
        stage.group_size = ranks
        stage.stage_index_to_group_rank = {i: i % ranks for i in range(ranks * each)}
    return made


@pytest.mark.parametrize("case", SINGLE + SEVERAL, ids=name_of)
def test_order(world, case):
    name, ranks, each, count = case
    stages, want = _stages(ranks, each), ORDERS[name_of(case)]
    kind = get_schedule_class(name)
    if "error" in want:
        with pytest.raises(ValueError) as caught:
            kind(stages, count)
        assert str(caught.value) == want["error"][1]
        return
    schedule = kind(stages[0] if case in SINGLE else stages, count)
    assert written(case, schedule.pipeline_order) == want


def test_all_stages_on_one_rank(world):
    """Neighbours on the same rank pass tensors on without messages."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(3, 3) for _ in range(3)]
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    loss = torch.nn.functional.mse_loss
    loss(torch.nn.Sequential(*layers)(x), y).backward()
    wanted = [layer.weight.grad.clone() for layer in layers]
    for name in ("Interleaved1F1B", "LoopedBFS"):
        for layer in layers:
            layer.zero_grad()
        stages = [PipelineStage(layer, i, 3, "cpu") for i, layer in enumerate(layers)]
        losses: list = []
        get_schedule_class(name)(stages, 2, loss_fn=loss).step(x, target=y, losses=losses)
        assert len(losses) == 2
        assert all(
            torch.allclose(layer.weight.grad, want) for layer, want in zip(layers, wanted, strict=True)
        )


def test_microbatches():
    x = torch.arange(12.0).view(6, 2)
    with pytest.warns(UserWarning, match="downsizing the number of chunks from 4 to 2"):
        args, kwargs = split_args_kwargs_into_chunks((x, 3), {"k": x[:2]}, 4)
    assert [a[0].tolist() for a in args] == [
        x[:3].tolist(),
        x[3:].tolist(),
    ]  # as many as the shortest has rows
    assert [a[1] for a in args] == [3, 3]
    assert [k["k"].tolist() for k in kwargs] == [x[:1].tolist(), x[1:2].tolist()]
    columns = split_args_kwargs_into_chunks((x,), None, 2, TensorChunkSpec.from_tuple((1,)))[0]
    assert torch.equal(merge_chunks([a[0] for a in columns], TensorChunkSpec(1)), x)
    assert torch.equal(merge_chunks([x[:1], x[1:]], None), x)
    with pytest.raises(
        ValueError, match=r"Unsupported chunk spec: TensorChunkSpec\(0\) and value: 3 combination"
    ):
        split_args_kwargs_into_chunks((3,), None, 2, TensorChunkSpec.from_tuple((0,)))


def test_refusals(world):
    with pytest.raises(
        NotImplementedError, match=r"ScheduleZBVZeroBubble: a backward pass.*docs/coverage\.md"
    ):
        ScheduleZBVZeroBubble([], 2)
    with pytest.raises(ValueError, match="Unknown schedule name 'foo'"):
        get_schedule_class("foo")
    with pytest.raises(ValueError, match="Stage index 1 is out of range of 1"):
        PipelineStage(torch.nn.Identity(), 1, 1, "cpu")
    with pytest.raises(NotImplementedError, match="dw_builder"):
        PipelineStage(torch.nn.Identity(), 0, 1, "cpu", dw_builder=list)
    schedule = get_schedule_class("gpipe")(
        PipelineStage(torch.nn.Linear(1, 1), 0, 1, "cpu"), 2, loss_fn=torch.dist
    )
    with pytest.raises(ValueError, match="the last stage needs a target"):
        schedule.step(torch.ones(2, 1))
    with pytest.raises(ValueError, match="Expecting 2 arg_mbs but got 1"):
        schedule._step_microbatches([()])


@together(CASES)
def test_split(case):
    check("pipelining", case, CASES[case], torch)


def test_splits_of_a_policy():
    """A policy puts the splits into the graph; a parameter of two stages is refused."""

    def after_each_module(whole):
        for node in list(whole.graph.nodes):
            if node.op == "call_module":
                with whole.graph.inserting_after(node):
                    whole.graph.call_function(pipe_split)
        return whole

    layer = torch.nn.Linear(2, 2)
    model, x = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(2, 2)), torch.ones(1, 2)
    pipe = pipeline(model, (x,), split_policy=after_each_module)
    assert [sorted(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)] == [
        ["0.bias", "0.weight"],
        [],
        ["2.bias", "2.weight"],
    ]
    assert torch.equal(pipe(x)[0], model(x))
    with pytest.raises(NotImplementedError, match="the stages 0 and 1 both use 0, which is not supported"):
        pipeline(
            torch.nn.Sequential(layer, torch.nn.ReLU(), layer), (x,), split_spec={"1": SplitPoint.BEGINNING}
        )
