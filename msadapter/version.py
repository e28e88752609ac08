"""The version of PyTorch whose interface is offered."""

from .alias import TORCH_VERSION as __version__  # noqa: F401

debug = False
cuda = None
git_version = ""
hip = None
xpu = None
