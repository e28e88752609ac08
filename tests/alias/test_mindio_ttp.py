"""mindio_ttp: what is computed for a failure, and what its functions accept. tests/npu/test_high_availability.py trains with it."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from msadapter.mindio_ttp import framework_ttp, names, plan, utils
from msadapter.mindio_ttp.plan import Copies, Standing

ROOT = Path(__file__).resolve().parents[2]
FOUR = {
    rank: [Copies((0, 1, 2, 3), 2)] for rank in range(4)
}  # ranks 0 and 2 have the same half, 1 and 3 the other
EXPERTS = {
    rank: [Copies((0, 1, 2, 3), 2), Copies((0, 2) if rank % 2 == 0 else (1, 3), 2)] for rank in range(4)
}


def at(*steps: int | None, updating: tuple[int, ...] = ()) -> dict[int, Standing]:
    return {rank: Standing(step, rank in updating) for rank, step in enumerate(steps)}


def without(standings: dict, *ranks: int) -> dict:
    return {rank: one for rank, one in standings.items() if rank not in ranks}


def saved(ranks: list[int], optimizer: int = 0) -> dict:
    return {"type": optimizer, "ranks": ranks}


@pytest.mark.parametrize(
    ("groups", "standings", "step", "infos"),
    [
        (FOUR, at(6, 6, 6, 6), 6, {0: [saved([0, 1])], 1: [saved([0, 1])]}),
        (FOUR, without(at(6, 6, 6, 6), 1), 6, {0: [saved([0, 3])], 3: [saved([0, 3])]}),
        (FOUR, without(at(7, 6, 6, 6), 1), 6, {2: [saved([2, 3])], 3: [saved([2, 3])]}),
        (FOUR, at(7, 6, 6, 7, updating=(0,)), 6, {1: [saved([2, 1])], 2: [saved([2, 1])]}),
        ({0: [Copies((0, 1), 2)], 1: [Copies((0, 1), 2)]}, {1: Standing(3)}, 3, {1: [saved([1])]}),
        (
            EXPERTS,
            without(at(6, 6, 6, 6), 0),
            6,
            {1: [saved([2, 1]), saved([1], 1)], 2: [saved([2, 1]), saved([2], 1)]},
        ),
    ],
)
def test_a_whole_copy_is_saved(groups, standings, step, infos) -> None:
    assert plan.dump(groups, standings) == plan.Dump(step, infos)


@pytest.mark.parametrize(
    "standings",
    [
        without(at(6, 6, 6, 6), 0, 2),
        at(7, 6, 7, 5),
        at(None, None, None, None),
        at(6, 6, 6, 6, updating=(1, 3)),
        {},
    ],
)
def test_nothing_is_saved_if_a_part_is_nowhere(standings) -> None:
    assert plan.dump(FOUR, standings) is None


def info(kind: names.RepairType, source: list[int], target: list[int], ranks: list[int], types=(0,)) -> dict:
    return {"type": list(types), "repair_type": kind.value, "src": source, "dst": target, "rank_list": ranks}


SEND, LOST, BEHIND = (
    names.RepairType.RT_SEND,
    names.RepairType.RT_UCE_HIGHLEVEL,
    names.RepairType.RT_RECV_REPAIR,
)


@pytest.mark.parametrize(
    ("groups", "standings", "lost", "step", "infos"),
    [
        (FOUR, at(6, 6, 6, 6), [], 6, {}),
        (FOUR, at(None, None, None, None), [], None, {}),
        (FOUR, at(6, 6, 6, 6), [3], 6, {1: info(SEND, [1], [3], [1, 3]), 3: info(LOST, [1], [3], [1, 3])}),
        (FOUR, at(6, 7, 7, 7), [], 7, {0: info(BEHIND, [2], [0], [0, 2]), 2: info(SEND, [2], [0], [0, 2])}),
        (
            FOUR,
            at(6, 6, 6, 6),
            [0, 1],
            6,
            {
                0: info(LOST, [2], [0], [0, 2]),
                1: info(LOST, [3], [1], [1, 3]),
                2: info(SEND, [2], [0], [0, 2]),
                3: info(SEND, [3], [1], [1, 3]),
            },
        ),
        (
            EXPERTS,
            at(6, 6, 6, 6),
            [0],
            6,
            {
                0: info(LOST, [2, 2], [0, 0], [0, 2], (0, 1)),
                2: info(SEND, [2, 2], [0, 0], [0, 2], (0, 1)),
            },
        ),
    ],
)
def test_who_repairs_whom(groups, standings, lost, step, infos) -> None:
    assert plan.repair(groups, standings, lost) == plan.Repair(step, infos)


@pytest.mark.parametrize(
    ("standings", "lost"),
    [
        (at(6, 6, 6, 6), [0, 2]),
        (at(6, 6, 6, 6), [0, 1, 2, 3]),
        (at(6, 6, 7, 6), [3]),
        (at(None, None, None, None), [1]),
    ],
)
def test_what_no_rank_has_cannot_be_repaired(standings, lost) -> None:
    assert plan.repair(FOUR, standings, lost) is None


def test_all_ranks_load_a_checkpoint() -> None:
    found = plan.loading([0, 1], [1]).infos
    kinds = [names.RepairType(found[rank]["repair_type"]) for rank in (0, 1)]
    assert kinds == [names.RepairType.RT_LOAD_CKPT, names.RepairType.RT_LOAD_REBUILD]


def test_an_error_while_the_optimizer_writes_cannot_be_repaired() -> None:
    assert utils.get_l2_hbm_error_time("HBM MULTI BIT ECC ERROR, time us=150.") == 150
    for when, can in ((50, True), (150, False), (250, True), (0, False)):
        assert utils.tft_can_do_uce_repair(when, 100, 200) is can
    assert not utils.tft_can_do_uce_repair(150, 100, 90), "it has begun and not ended"


@pytest.fixture
def processor():
    """A processor that is not connected."""
    from msadapter.mindio_ttp.running import running

    framework_ttp.tft_init_processor(0, 4, False, False)
    yield running.processor
    running.processor = None


def test_what_is_not_supported_says_so(processor) -> None:
    refused = [
        (framework_ttp.tft_start_copy_os, ()),
        (framework_ttp.tft_get_reboot_type, ()),
        (framework_ttp.tft_register_decrypt_handler, (print,)),
        (framework_ttp.tft_init_controller, (0, 4, True)),
        (framework_ttp.tft_start_controller, ("127.0.0.1", 8000)),
        (framework_ttp.tft_init_processor, (0, 4, False, True)),
        (
            framework_ttp.tft_set_optimizer_replica,
            (0, [{"rank_list": [0, 1], "replica_cnt": 2, "replica_shift": 1}]),
        ),
    ]
    for function, arguments in refused:
        with pytest.raises(NotImplementedError, match=rf"{function.__name__}.*docs/toolkit_recovery.md"):
            function(*arguments)


def test_wrong_arguments_are_errors(processor, monkeypatch) -> None:
    with pytest.raises(TypeError, match="func must be a callable"):
        framework_ttp.tft_register_save_ckpt_handler(3)
    with pytest.raises(ValueError, match="2 copies among the ranks"):
        framework_ttp.tft_set_optimizer_replica(
            0, [{"rank_list": [0, 1, 2], "replica_cnt": 2, "replica_shift": 0}]
        )
    with pytest.raises(ValueError, match="is none of RS_NORMAL"):
        framework_ttp.tft_register_exception_handler("NaN", "RS_NOTHING", str)
    with pytest.raises(ValueError, match="is none of MindSpeed"):
        framework_ttp.set_mindio_export_version("other")
    with pytest.raises(RuntimeError, match="tft_start_processor was not called"):
        framework_ttp.tft_report_error(names.ReportState.RS_UNKNOWN)
    monkeypatch.setenv("TTP_NORMAL_ACTION_TIME_LIMIT", "long")
    with pytest.raises(ValueError, match="set it to seconds from 30 to 1800"):
        names.patience()


def test_a_stopped_rank_begins_no_step(processor) -> None:
    framework_ttp.tft_start_updating_os()
    framework_ttp.tft_end_updating_os(7)
    framework_ttp.tft_pause_train(7)
    assert processor.step == 7 and not processor.updating
    processor.stopping.set()
    for function, arguments in (
        (framework_ttp.tft_pause_train, (7,)),
        (framework_ttp.tft_start_updating_os, ()),
    ):
        with pytest.raises(RuntimeError, match="FORCE STOP: "):
            function(*arguments)


def test_programs_find_it_by_name() -> None:
    code = (
        "import torch, importlib.util\n"
        "assert importlib.util.find_spec('mindio_ttp') is not None\n"
        "from mindio_ttp.framework_ttp import ttp_decorator, tft_exception_handler\n"
        "from mindio_ttp.utils import tft_set_update_start_time\n"
        "print(ttp_decorator.tft_get_repair_type.__module__)"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "msadapter/alias/shim"), str(ROOT)])
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "msadapter.mindio_ttp.framework_ttp.ttp_decorator", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["MSADAPTER_MINDSPEED_LLM", "MSADAPTER_MINDSPEED"])
def test_every_name_that_mindspeed_imports_is_there(variable) -> None:
    place = os.environ.get(variable)
    if not place:
        pytest.skip(f"needs a checkout: set {variable} to its path")
    wanted = set()
    for file in Path(place).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "mindio_ttp" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mindio_ttp"):
                    wanted |= {(node.module, alias.name) for alias in node.names}
    for module, name in sorted(wanted):
        found = importlib.import_module(module.replace("mindio_ttp", "msadapter.mindio_ttp", 1))
        assert hasattr(found, name), f"{module}.{name}"
    assert bool(wanted) is (variable == "MSADAPTER_MINDSPEED_LLM")
