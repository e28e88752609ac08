"""torch.nn.functional: the op table's functions and the compositions beside them."""

from .. import ops
from . import _functional_composites

globals().update(_functional_composites.exports)
# The op table wins: a kernel, where there is one, replaces the composition.
globals().update(ops.namespaces["nn.functional"])

from ..overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: E402, F401
