"""The order of the passes of a pipeline on every rank, as PyTorch's schedules have it."""

import re

SINGLE = [
    (name, ranks, 1, count)
    for name in ("GPipe", "1F1B")
    for ranks, count in ((1, 2), (2, 2), (2, 5), (4, 4), (4, 9))
]
SEVERAL = [
    (name, ranks, each, count)
    for name in ("Interleaved1F1B", "LoopedBFS")
    for ranks, each, count in (
        (2, 1, 4),
        (2, 2, 3),
        (2, 2, 4),
        (2, 3, 8),
        (4, 2, 2),
        (4, 2, 8),
        (4, 3, 12),
        (3, 2, 7),
    )
]


def name_of(case) -> str:
    """Return the name of a case in the recorded answers."""
    return "-".join(map(str, case))


def written(case, order) -> dict:
    """Return an order as plain data, without the times at which a rank waits or reduces its gradients.

    Of schedules with one stage for each rank, only the kinds of passes: PyTorch's table of 1F1B counts the microbatches of the last
    rank from 1, but runs them from 0.
    """
    found = {}
    for rank, actions in order.items():
        names = [repr(action) for action in actions if action is not None]
        names = [name for name in names if "REDUCE" not in name]
        found[str(rank)] = "".join(re.sub("[0-9]", "", name) for name in names) if case in SINGLE else names
    return found


def golden_answers(torch):
    """Record the orders. PyTorch's fake process group stands for the ranks."""
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import get_schedule_class
    from torch.testing._internal.distributed.fake_pg import FakeStore

    answers = {}
    for case in SINGLE + SEVERAL:
        name, ranks, each, count = case
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
        made = [
            PipelineStage(torch.nn.Identity(), i * ranks, ranks * each, torch.device("cpu"))
            for i in range(each)
        ]
        kind = get_schedule_class(name)
        try:
            if case in SINGLE:
                answers[name_of(case)] = written(case, kind(made[0], count)._get_pipeline_order())
            else:
                answers[name_of(case)] = written(case, kind(made, count).pipeline_order)
        except ValueError as err:
            answers[name_of(case)] = {"error": ["ValueError", str(err)]}
        dist.destroy_process_group()
    return answers
