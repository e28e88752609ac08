"""The numbers by which the functions of mindio_ttp tell states, repairs and optimizers apart."""

import os
from enum import Enum

RET_OK, RET_ERROR, RET_NO_REBUILD = 0, 1, 2  # what a callback returns
EXIT_CODE = 2  # of a rank that ends because another one failed

PAGE = "docs/toolkit_recovery.md"


class OptimizerType(Enum):
    """Which of a model's optimizers: that of the dense part, or that of the experts."""

    ATTENTION, MOE = 0, 1


class Action(Enum):
    """What a rank does after it has waited: train on, or end."""

    RETRY, EXIT = 0, 1


class ReportState(Enum):
    """What a rank reports of itself."""

    RS_NORMAL = 0  # nothing is wrong with it, but it was stopped
    RS_UCE = 1  # uncorrectable errors of the device's memory
    RS_UCE_CORRUPTED = 2  # the same, while the optimizer was writing
    RS_HCCL_FAILED = 3
    RS_UNKNOWN = 4
    RS_INIT_FINISH = 5
    RS_PREREPAIR_FINISH = 6
    RS_STEP_FINISH = 7
    RS_RETRY = 8  # all ranks load a checkpoint


class RepairType(Enum):
    """What a rank does in a repair."""

    RT_SEND = 0
    RT_UCE_HIGHLEVEL = 1  # it receives model and optimizer, whose memory was lost
    RT_UCE_LOWLEVEL = 2
    RT_ROLLBACK = 3
    RT_RECV_REPAIR = 4
    RT_LOAD_CKPT = 5
    RT_LOAD_REBUILD = 6


REPAIRABLE = {
    ReportState.RS_NORMAL.value,
    ReportState.RS_UCE.value,
    ReportState.RS_HCCL_FAILED.value,
    ReportState.RS_RETRY.value,
}


def patience() -> float:
    """Seconds that one action may take."""
    text = os.environ.get("TTP_NORMAL_ACTION_TIME_LIMIT", "180")
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 30 <= found <= 1800:
        raise ValueError(f"TTP_NORMAL_ACTION_TIME_LIMIT is {text!r}: set it to seconds from 30 to 1800")
    return found


def refused(what: str) -> NotImplementedError:
    """The error for what is not supported."""
    return NotImplementedError(f"mindio_ttp: {what} is not supported ({PAGE})")
