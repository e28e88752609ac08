"""Imports of MindSpeed-RL that need an NPU are answered by mocks, so that its unit tests run with PyTorch itself.

Python imports this module when it starts, in the processes of Ray too. It goes with MindSpeed-RL's tests alone, whose own mocks
take the place of almost everything that these modules would do.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

NAMES = {"torch_npu", "torchair", "torchvision", "mindspeed", "mindspeed_llm", "acl"}


class _Mock(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, MagicMock())
        return self.__dict__[name]


class _Finder:
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] in NAMES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Mock(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = "0.20.1"


sys.meta_path.insert(0, _Finder())
