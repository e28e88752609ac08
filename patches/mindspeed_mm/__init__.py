"""MindSpeed-MM. Each of its releases has the version 0.1 in pyproject.toml; its branches say 2.3.0 and 26.1.0."""

from .._versions import of_pyproject
from ..manager import Upstream

UPSTREAM = Upstream(
    name="mindspeed_mm",
    version_file="pyproject.toml",
    read_version=of_pyproject("mindspeed-mm"),
    since="0.1",
    before="0.2",
)
