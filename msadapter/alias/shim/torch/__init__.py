"""Stands on PYTHONPATH where torch would be: the first `import torch` installs the alias and gives way to it."""

import sys

__msadapter_shim__ = True

import msadapter.alias  # noqa: E402  (the mark comes first: install() looks for it)

msadapter.alias.install()
# install() has dropped this module; the import system returns whatever stands under the name now.
sys.modules["torch"] = msadapter
msadapter.alias.show_submodules()
