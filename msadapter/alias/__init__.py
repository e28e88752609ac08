"""Makes `import torch` and `import torch_npu` return this package, if the user asks for it.

`install()` puts a finder at the start of `sys.meta_path`. `torch.x.y` is then the same module object as
`msadapter.x.y`, which is imported at its first use, and `importlib.metadata` finds a distribution named
torch. This package imports nothing but the standard library and a table of error texts.
"""

from .finder import ALIASES, TORCH_VERSION, AliasFinder, install, installed, show_submodules, uninstall

__all__ = ["ALIASES", "TORCH_VERSION", "AliasFinder", "install", "installed", "show_submodules", "uninstall"]
