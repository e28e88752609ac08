"""MindSpeed for Megatron Core 0.12.1. Its version is 0.12.1 in setup.py; its branches say 2.3.0 and 26.1.0."""

from .._versions import of_setup_py
from ..manager import Upstream

UPSTREAM = Upstream(
    name="mindspeed",
    version_file="setup.py",
    read_version=of_setup_py("mindspeed"),
    since="0.12.0",
    before="0.13.0",
)
