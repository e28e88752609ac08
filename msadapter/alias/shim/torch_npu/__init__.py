"""Stands on PYTHONPATH where torch_npu would be, for a program that imports it before torch."""

import sys

__msadapter_shim__ = True

import torch  # noqa: E402, F401  (installs the alias)

import msadapter.torch_npu  # noqa: E402

# The import system returns whatever stands under the name now.
sys.modules["torch_npu"] = msadapter.torch_npu
