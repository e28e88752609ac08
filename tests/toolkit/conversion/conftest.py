"""The tiny model of tests/toolkit/inference, with `import torch` answered by this project."""

from __future__ import annotations

from tests.toolkit.inference.conftest import _torch, model_folder  # noqa: F401
