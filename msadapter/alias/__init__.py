"""Makes `import torch` (and `torch_npu`) answer with this package, only when asked.

`install()` puts one finder at the head of `sys.meta_path`: `torch.x.y` becomes the very module object of
`msadapter.x.y`, imported when first asked for, and `importlib.metadata` finds a distribution named torch.
This package imports nothing but the standard library.
"""

from .finder import ALIASES, TORCH_VERSION, AliasFinder, install, installed, show_submodules, uninstall

__all__ = ["ALIASES", "TORCH_VERSION", "AliasFinder", "install", "installed", "show_submodules", "uninstall"]
