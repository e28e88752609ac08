"""The version of this project. The version of PyTorch whose interface is offered is `msadapter.alias.TORCH_VERSION`."""

MSADAPTER_VERSION = "0.1.0"
