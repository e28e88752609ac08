"""mindio_ttp.framework_ttp.ttp_decorator: the processor's functions, and the decorator around the function that trains."""

import functools
import gc
import logging

from ... import npu
from ...distributed.aborting import FORCE_STOP
from ...distributed.errors import DistBackendError
from ..board import connect
from ..names import EXIT_CODE, Action, OptimizerType, RepairType, ReportState, refused
from ..plan import Copies
from ..processor import Processor
from ..running import running
from ..utils import get_l2_hbm_error_time, tft_can_do_uce_repair

log = logging.getLogger("mindio_ttp")

__all__ = [
    "Action",
    "OptimizerType",
    "RepairType",
    "ReportState",
    "get_device",
    "get_mindio_export_version",
    "set_mindio_export_version",
    "tft_destroy_processor",
    "tft_end_updating_os",
    "tft_exception_handler",
    "tft_get_reboot_type",
    "tft_get_repair_step",
    "tft_get_repair_type",
    "tft_init_processor",
    "tft_is_reboot_node",
    "tft_pause_train",
    "tft_register_clean_handler",
    "tft_register_decrypt_handler",
    "tft_register_exception_handler",
    "tft_register_exit_handler",
    "tft_register_rebuild_group_handler",
    "tft_register_rename_handler",
    "tft_register_repair_handler",
    "tft_register_rollback_handler",
    "tft_register_save_ckpt_handler",
    "tft_register_stop_handler",
    "tft_register_stream_sync_handler",
    "tft_register_zit_downgrade_rebuild_handler",
    "tft_register_zit_upgrade_rebuild_handler",
    "tft_register_zit_upgrade_repair_handler",
    "tft_register_zit_upgrade_rollback_handler",
    "tft_report_error",
    "tft_report_load_ckpt_step",
    "tft_reset_limit_step",
    "tft_set_dp_group_info",
    "tft_set_optimizer_replica",
    "tft_set_step_args",
    "tft_start_copy_os",
    "tft_start_processor",
    "tft_start_updating_os",
    "tft_wait_next_action",
    "tft_wait_repair_action",
]

_FRAMEWORKS = ("MindSpeed", "MindSpeed-LLM")
_UCE = "UCE ERROR"
_HBM = "HBM MULTI BIT ECC"
_COMMUNICATION = ("HCCL OP RETRY FAILED", "SUSPECT REMOTE ERROR")


# -- the processor ------------------------------------------------------------------------------------------
def tft_init_processor(
    rank: int,
    world_size: int,
    enable_local_copy: bool,
    enable_tls: bool = True,
    tls_info: str = "",
    enable_uce: bool = True,
    enable_arf: bool = False,
    enable_zit: bool = False,
) -> None:
    """Make the processor of this rank.

    enable_uce: errors of the device's memory are repaired. enable_arf, enable_zit: see tft_init_controller.
    """
    for asked, name in ((enable_local_copy, "enable_local_copy"), (enable_tls, "enable_tls")):
        if asked:
            raise refused(f"tft_init_processor({name}=True)")
    running.processor = Processor(rank, world_size, enable_uce)


def tft_start_processor(master_ip: str, port: int, local_ip: str = "") -> None:
    """Connect to the job's store: the launcher's under torchrun, else that of tft_start_controller at this address."""
    running.required().start(connect(master_ip, port))


def tft_destroy_processor() -> None:
    """End the processor. A failure of this rank is not handled any more."""
    if running.processor is not None:
        running.processor.finish()


def get_device():
    """The index of this rank's device."""
    return running.required().device


def set_mindio_export_version(framework_type: str) -> None:
    """Say which framework trains: MindSpeed or MindSpeed-LLM."""
    if framework_type not in _FRAMEWORKS:
        raise ValueError(f"set_mindio_export_version: {framework_type!r} is none of {', '.join(_FRAMEWORKS)}")
    running.framework = framework_type


def get_mindio_export_version():
    """The framework that trains; None if none was given."""
    return running.framework or None


# -- callbacks ----------------------------------------------------------------------------------------------
def _register(kind: str, function, context) -> None:
    if not callable(function):
        raise TypeError(
            f"tft_register_{kind}_handler: func must be a callable, not {type(function).__name__}"
        )
    running.required().callbacks[kind] = (function, context)


def tft_register_save_ckpt_handler(func, ctx=None) -> None:
    """func(step, save_info, args, ctx) writes this rank's part of a last checkpoint."""
    _register("save", func, ctx)


def tft_register_rename_handler(func, ctx=None) -> None:
    """func(step, args) gives the last checkpoint its name, on one rank after all have written."""
    _register("rename", func, ctx)


def tft_register_exit_handler(func, ctx=None) -> None:
    """func(ctx) is called before this rank ends because another one has failed."""
    _register("exit", func, ctx)


def tft_register_stop_handler(func, ctx=None) -> None:
    """func(args, ctx) stops the device, in a thread. By default torch.npu.stop_device."""
    _register("stop", func, ctx)


def tft_register_clean_handler(func, ctx=None) -> None:
    """func(is_uce_error, args, ctx) makes the device usable. It returns 0, 2 if nothing must be rebuilt, or 1 for failure."""
    _register("clean", func, ctx)


def tft_register_repair_handler(func, ctx=None) -> None:
    """func(step, need_rebuild, error_ranks, repair_info, args, ctx) sends, receives or loads the state."""
    _register("repair", func, ctx)


def tft_register_rollback_handler(func, ctx=None) -> None:
    """func(step, args, ctx) brings data, learning rate and logs to the step from which all go on."""
    _register("rollback", func, ctx)


def tft_register_rebuild_group_handler(func, ctx=None) -> None:
    """func is kept. It is for ranks that were started again one by one, which needs MindCluster."""
    _register("rebuild_group", func, ctx)


def tft_register_stream_sync_handler(func, ctx=None) -> None:
    """func is kept. It is for pauses that MindCluster asks for."""
    _register("stream_sync", func, ctx)


def tft_register_zit_upgrade_rollback_handler(func, ctx=None) -> None:
    """func is kept. It is for trainings whose machines MindCluster takes away and gives back."""
    _register("zit_upgrade_rollback", func, ctx)


def tft_register_zit_upgrade_repair_handler(func, ctx=None) -> None:
    """func is kept; see tft_register_zit_upgrade_rollback_handler."""
    _register("zit_upgrade_repair", func, ctx)


def tft_register_zit_upgrade_rebuild_handler(func, ctx=None) -> None:
    """func is kept; see tft_register_zit_upgrade_rollback_handler."""
    _register("zit_upgrade_rebuild", func, ctx)


def tft_register_zit_downgrade_rebuild_handler(func, ctx=None) -> None:
    """func is kept; see tft_register_zit_upgrade_rollback_handler."""
    _register("zit_downgrade_rebuild", func, ctx)


def tft_register_exception_handler(fault_pattern: str, fault_type: str, fault_handle) -> None:
    """Report errors whose text has a pattern as a state. fault_handle(text) returns the words that are reported with it."""
    if fault_type not in ReportState.__members__:
        raise ValueError(
            f"tft_register_exception_handler: {fault_type!r} is none of {', '.join(ReportState.__members__)}"
        )
    if not callable(fault_handle):
        raise TypeError("tft_register_exception_handler: fault_handle must be a callable")
    running.required().faults[fault_pattern] = (ReportState[fault_type].value, fault_handle)


def tft_register_decrypt_handler(decryptor) -> None:
    """Not supported, because connections are not encrypted. None is accepted."""
    if decryptor is not None:
        raise refused("tft_register_decrypt_handler")


# -- what a training tells ----------------------------------------------------------------------------------
def tft_set_optimizer_replica(rank: int, replica_info: list) -> None:
    """Say among which ranks the optimizer's state is divided, and how many copies there are.

    replica_info: for the dense part, and then that of the experts, rank_list, replica_cnt and replica_shift.
    """
    found = []
    for one in replica_info:
        ranks, count, shift = (one.get(name) for name in ("rank_list", "replica_cnt", "replica_shift"))
        whole = isinstance(ranks, (list, tuple)) and all(isinstance(value, int) for value in ranks)
        if not whole or not isinstance(count, int) or not isinstance(shift, int):
            raise ValueError(f"tft_set_optimizer_replica: rank {rank} has an invalid entry {one}")
        if shift:
            raise refused(f"tft_set_optimizer_replica(replica_shift={shift})")
        if count < 1 or len(ranks) % count or rank not in ranks:
            raise ValueError(
                f"tft_set_optimizer_replica: {count} copies among the ranks {list(ranks)} do not fit rank {rank}"
            )
        found.append(Copies(tuple(ranks), count))
    running.required().groups = found


def tft_set_dp_group_info(rank: int, dp_rank_list: list) -> None:
    """Check the ranks of a data parallel group. What is needed of them is in tft_set_optimizer_replica."""
    if (
        rank < 0
        or not isinstance(dp_rank_list, list)
        or not all(isinstance(one, int) for one in dp_rank_list)
    ):
        raise ValueError(f"tft_set_dp_group_info: rank {rank} cannot have the ranks {dp_rank_list}")


def tft_set_step_args(args) -> None:
    """Give the arguments for callbacks after a step, in a framework other than MindSpeed, whose are those of its training."""
    if args is not None and running.framework not in _FRAMEWORKS:
        running.required().arguments = args


def tft_start_updating_os(backup_step: int = -1) -> None:
    """The optimizer begins to write. RuntimeError with FORCE STOP if the training was stopped."""
    running.required().start_updating()


def tft_end_updating_os(step: int) -> None:
    """The optimizer has written. step: the steps that are finished now."""
    running.required().end_updating(step)


def tft_start_copy_os() -> None:
    """Not supported: local copies of the optimizer's state are for MindSpore's own training."""
    raise refused("tft_start_copy_os")


def tft_report_load_ckpt_step(step: int) -> None:
    """A repair has loaded the checkpoint of this step."""
    running.required().loaded(step)


def tft_pause_train(cur_step: int) -> None:
    """Called between two steps. RuntimeError with FORCE STOP if the training was stopped."""
    if cur_step < 0:
        raise ValueError(f"tft_pause_train: {cur_step} is not a step")
    running.required().check_stopped("the next step")


def tft_is_reboot_node() -> bool:
    """Whether this rank alone was started again. This does not happen without MindCluster."""
    return False


def tft_get_reboot_type() -> str:
    """How single ranks are started again: not at all."""
    raise refused("tft_get_reboot_type")


def tft_reset_limit_step() -> None:
    """Let the optimizer write again after a stop. The controller's order to go on does this."""


def tft_get_repair_step() -> int:
    """The step from which the ranks go on."""
    return running.required().repair_step


def tft_get_repair_type() -> str:
    """What the ranks are cleaned up for: "retry" to go on, "dump" to write a last checkpoint."""
    return running.required().repair_type


# -- errors -------------------------------------------------------------------------------------------------
def tft_report_error(error_type) -> None:
    """Report a state of this rank, a ReportState or its value. Another one than those that can be repaired waits for the end."""
    processor = running.required()
    state = error_type.value if isinstance(error_type, ReportState) else ReportState(error_type).value
    processor.report(state)
    if state in (ReportState.RS_UNKNOWN.value, ReportState.RS_UCE_CORRUPTED.value):
        processor.serve("")


def tft_wait_next_action() -> int:
    """Do what the controller orders until it says whether to go on: Action.RETRY.value or Action.EXIT.value."""
    return Action.RETRY.value if running.required().serve("retry") else Action.EXIT.value


def tft_wait_repair_action() -> int:
    """The same until all ranks are repaired."""
    return Action.RETRY.value if running.required().serve("go on") else Action.EXIT.value


def tft_exception_handler(func):
    """Decorate the function that trains.

    After an error that can be repaired, on this or another rank, it is called again, when all ranks are at the same step. After
    another error the ranks that are left write a last checkpoint; then this one's error is raised.
    """
    if not callable(func):
        raise TypeError("tft_exception_handler: func must be a callable")

    @functools.wraps(func)
    def trained(*args, **kwargs):
        processor = running.required()
        processor.arguments = list(args)
        while True:
            try:
                result = func(*processor.arguments, **kwargs)
            except Exception as error:
                state, text = _state_of(processor, error)
                if state not in _WAITING:
                    log.error("rank %d: %s: %s", processor.rank, type(error).__name__, error)
                    processor.report(state, text)
                    processor.serve("")
                    raise
            else:
                processor.finish()
                return result
            _release()
            processor.report(state, text)
            if not processor.serve("retry"):
                processor._leave(EXIT_CODE)
            _release()
            if not processor.serve("go on"):
                processor._leave(EXIT_CODE)

    return trained


_WAITING = {
    ReportState.RS_NORMAL.value,
    ReportState.RS_UCE.value,
    ReportState.RS_HCCL_FAILED.value,
    ReportState.RS_RETRY.value,
}


def _state_of(processor: Processor, error: Exception) -> tuple[int, str]:
    """What an error means, and its text."""
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, RuntimeError):
        return ReportState.RS_UNKNOWN.value, text
    for pattern, (state, function) in processor.faults.items():
        if pattern in text:
            return state, f"{function(str(error))}: {text}"
    if FORCE_STOP in text:
        return ReportState.RS_NORMAL.value, text
    if isinstance(error, DistBackendError) and processor.dead():
        return ReportState.RS_NORMAL.value, text  # another rank has gone
    if any(words in text for words in _COMMUNICATION):
        return ReportState.RS_HCCL_FAILED.value, text
    if processor.repairs_memory and _UCE in text:
        return ReportState.RS_UCE.value, text
    if processor.repairs_memory and _HBM in text:
        whole = tft_can_do_uce_repair(get_l2_hbm_error_time(text))
        return (ReportState.RS_UCE if whole else ReportState.RS_UCE_CORRUPTED).value, text
    return ReportState.RS_UNKNOWN.value, text


def _release() -> None:
    """Frees what the interrupted step held."""
    gc.collect()
    npu.empty_cache()
