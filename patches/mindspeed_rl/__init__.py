"""MindSpeed-RL. The version of its branch 2.3.0 is 2.1.0 in setup.py."""

from .._versions import of_setup_py
from ..manager import Upstream

UPSTREAM = Upstream(
    name="mindspeed_rl",
    version_file="setup.py",
    read_version=of_setup_py("mindspeed_rl"),
    since="2.1.0",
    before="2.4.0",
)
