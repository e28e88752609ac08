"""The checks of aborting.py that make sense where each collective waits for all ranks before it begins. Needs four ranks."""

from aborting import (  # noqa: F401
    check_a_waiting_rank_is_stopped,
    check_one_group_is_made_anew,
    check_survivors_form_a_group,
)
