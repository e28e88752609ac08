"""A stand-in for torch on PYTHONPATH. The first `import torch` runs it, and it installs the alias."""

import sys

__msadapter_shim__ = True

import msadapter.alias  # noqa: E402  (the mark comes first: install() looks for it)

msadapter.alias.install()
# install() has removed this module. The import system returns the module that has this name now.
sys.modules["torch"] = msadapter
msadapter.alias.show_submodules()
