"""The version of this project. The version of the torch interface is `msadapter.alias.TORCH_VERSION`."""

MSADAPTER_VERSION = "0.2.0"
