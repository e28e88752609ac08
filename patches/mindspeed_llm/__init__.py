"""MindSpeed-LLM. The version of its branch v26.1.0 is 26.0.0dev0 in setup.py."""

from .._versions import of_setup_py
from ..manager import Upstream

UPSTREAM = Upstream(
    name="mindspeed_llm",
    version_file="setup.py",
    read_version=of_setup_py("mindspeed_llm"),
    since="2.3.0",
    before="27.0.0",
)
