"""torch_npu.utils.collect_env: versions of the environment."""

from __future__ import annotations

import os
import re
from pathlib import Path


def get_cann_version() -> str:
    """Return the version of CANN in the folder ASCEND_HOME_PATH, or "" if there is none."""
    home = os.environ.get("ASCEND_HOME_PATH")
    if not home:
        return ""
    for path in sorted(Path(home).glob("*-linux/ascend_toolkit_install.info")):
        match = re.search(r"^version=(\S+)", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if match:
            return match.group(1)
    return ""
