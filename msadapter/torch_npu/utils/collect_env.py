"""torch_npu.utils.collect_env."""

from __future__ import annotations

import os
import re
from pathlib import Path


def get_cann_version() -> str:
    """Version of CANN, from the folder that ASCEND_HOME_PATH names; an empty text where there is none."""
    home = os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return ""
    for path in sorted(Path(home).glob("*-linux/ascend_toolkit_install.info")):
        match = re.search(r"^version=(\S+)", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if match:
            return match.group(1)
    return ""
