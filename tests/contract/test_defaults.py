"""The defaults of functions, constructors and methods are PyTorch's."""

from __future__ import annotations

import importlib

from tests.golden import store
from tests.golden.make_defaults import defaults_of

GOLDEN = store.load("defaults").cases
# Where our default is another value, with the reason.
DIFFERENT = {
    "torch.compile backend": "'inductor' is what None stands for in PyTorch",
    "torch.distributed._shard.sharded_tensor.ShardedTensorMetadata.__init__ size": "None stands for an unknown size",
}


def _ours(path: str, name: str):
    """Our callable of PyTorch's name, or None if there is none."""
    try:
        found = importlib.import_module(path.replace("torch", "msadapter", 1))
        for part in name.split("."):
            found = getattr(found, part)
    except (AttributeError, ImportError, NotImplementedError):
        return None
    return found


def _plain(text: str) -> str:
    return text.replace("torch.Size([])", "()")


def test_defaults():
    compared, wrong, known = 0, [], set()
    for path, functions in GOLDEN.items():
        for name, theirs in functions.items():
            ours = _ours(path, name)
            found = {} if ours is None else defaults_of(ours)
            for parameter, text in theirs.items():
                if parameter in found:
                    compared += 1
                    where = f"{path}.{name} {parameter}"
                    if _plain(found[parameter]) != _plain(text):
                        known.add(where)
                        if where not in DIFFERENT:
                            wrong.append(f"{where}: {found[parameter]} instead of {text}")
    assert not wrong
    assert known == DIFFERENT.keys()
    assert compared > 1900
