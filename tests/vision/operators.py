"""torch.ops.torchvision, from the package torchvision where answers are recorded, and from msadapter in the tests."""

from __future__ import annotations

import tempfile
from pathlib import Path


def operators(torch):
    """Return torch.ops.torchvision. With PyTorch, the package torchvision must be installed with its C++ library."""
    if torch.__package__ == "torch":
        import torchvision

        if not torchvision.extension._has_ops():
            raise SystemExit("torchvision cannot load its C++ library, so it has no operators to record")
    else:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "torchvision" / "_C.so"
            library.parent.mkdir()
            library.touch()
            torch.ops.load_library(str(library))
    return torch.ops.torchvision
