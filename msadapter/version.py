"""The version of PyTorch whose interface is offered."""

__version__ = "2.7.1"
debug = False
cuda = None
git_version = ""
hip = None
xpu = None
