"""A stand-in for torch_npu on PYTHONPATH, for programs that import it before torch."""

import os
import sys

if os.environ.get("MSADAPTER_DEVICE", "").partition(":")[0].lower() == "cpu":
    raise ModuleNotFoundError("No module named 'torch_npu': MSADAPTER_DEVICE=cpu hides it", name="torch_npu")

__msadapter_shim__ = True

import torch  # noqa: E402, F401  (installs the alias)

import msadapter.torch_npu  # noqa: E402

# The import system returns the module that has this name now.
sys.modules["torch_npu"] = msadapter.torch_npu
