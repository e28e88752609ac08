"""A stand-in for functorch on PYTHONPATH, for programs that import it before torch."""

import sys

__msadapter_shim__ = True

import torch  # noqa: E402, F401  (installs the alias)

import msadapter.functorch  # noqa: E402

# The import system returns the module that has this name now.
sys.modules["functorch"] = msadapter.functorch
