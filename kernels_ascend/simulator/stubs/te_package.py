"""Stands in for CANN's Python packages `te` and `tbe`, which MindSpore imports in order to declare operators of its own.

It never compiles one here, so every name below `te` and `tbe` exists, can be called, and can decorate a function.
"""

import importlib.abc
import importlib.machinery
import sys
import types

version = types.SimpleNamespace(version="8.5.0")


class _Anything:
    def __call__(self, *args, **kwargs):
        decorates = len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType)
        return args[0] if decorates else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name != "te" and name.split(".")[0] in ("te", "tbe"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Finder())
tik = tvm = _Anything()
