"""The functions that the op table declares for torch.nn.functional, as attributes."""

from types import SimpleNamespace

from ... import ops

table = SimpleNamespace(**ops.namespaces["nn.functional"])
