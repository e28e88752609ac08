"""torch.nn.functional: the functions of the operator table, and functions that are composed of operators."""

from .. import ops
from . import _functional_composites

globals().update(_functional_composites.exports)
# An operator of the table replaces a composed function of the same name, because it may have a kernel.
globals().update(ops.namespaces["nn.functional"])

from ..overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: E402, F401
