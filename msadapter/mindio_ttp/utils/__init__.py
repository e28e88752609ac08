"""mindio_ttp.utils: whether an error of the memory came while the optimizer was writing."""

import re
import time

_TIME = re.compile(r"time us=(\d+)")
_times: dict[str, int] = {}

__all__ = [
    "get_l2_hbm_error_time",
    "get_update_start_end_time",
    "tft_can_do_uce_repair",
    "tft_set_update_end_time",
    "tft_set_update_start_time",
]


def tft_set_update_start_time(start_time: int | None = None) -> None:
    """Record when the optimizer begins to write, in microseconds; now by default."""
    _times["start"] = _now() if start_time is None else start_time


def tft_set_update_end_time(end_time: int | None = None) -> None:
    """Record when the optimizer has ended writing."""
    _times["end"] = _now() if end_time is None else end_time


def get_update_start_end_time() -> tuple[int | None, int | None]:
    """When the optimizer began and ended writing."""
    return _times.get("start"), _times.get("end")


def get_l2_hbm_error_time(text: str) -> int:
    """The time in the text of an error, in microseconds; 0 if it has none."""
    found = _TIME.search(text)
    return int(found[1]) if found else 0


def tft_can_do_uce_repair(
    hbm_error_time: int, start_time: int | None = None, end_time: int | None = None
) -> bool:
    """Whether the state of the optimizer was whole at the time of an error. False if that time is not known."""
    start = _times.get("start") if start_time is None else start_time
    end = _times.get("end") if end_time is None else end_time
    if not hbm_error_time:
        return False
    if start is None or hbm_error_time < start:
        return True
    return end is not None and start <= end < hbm_error_time


def _now() -> int:
    return time.time_ns() // 1000
