"""torch.nn.functional: the table's functions of that name, and the helpers that PyTorch's modules import from it."""

from .. import ops
from ..ops.nn_bags import _no_grad_embedding_renorm_  # noqa: F401
from ..ops.nn_misc import BORDERS as GRID_SAMPLE_PADDING_MODES  # noqa: F401
from ..ops.nn_misc import INTERPOLATIONS as GRID_SAMPLE_INTERPOLATION_MODES  # noqa: F401
from ..ops.nn_multihead import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)
from ..ops.nn_normalize import _verify_batch_size, _verify_spatial_size  # noqa: F401
from ..ops.nn_scaled import ScalingType, SwizzleType  # noqa: F401
from ..overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: F401
from . import grad  # noqa: F401

globals().update(ops.namespaces["nn.functional"])
