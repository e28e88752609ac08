"""MindSpeed, the branch for Megatron Core 0.12.1, which calls itself 0.12.1 in setup.py and 2.3.0 in its branch name."""

from .._versions import of_setup_py
from ..manager import Upstream

UPSTREAM = Upstream(
    name="mindspeed",
    version_file="setup.py",
    read_version=of_setup_py("mindspeed"),
    since="0.12.0",
    before="0.13.0",
)
