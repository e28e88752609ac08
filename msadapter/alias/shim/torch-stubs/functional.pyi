# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch import atleast_1d as atleast_1d
from torch import atleast_2d as atleast_2d
from torch import atleast_3d as atleast_3d
from torch import block_diag as block_diag
from torch import broadcast_shapes as broadcast_shapes
from torch import broadcast_tensors as broadcast_tensors
from torch import cartesian_prod as cartesian_prod
from torch import cdist as cdist
from torch import chain_matmul as chain_matmul
from torch import einsum as einsum
from torch import istft as istft
from torch import lu as lu
from torch import meshgrid as meshgrid
from torch import norm as norm
from torch import pca_lowrank as pca_lowrank
from torch import split as split
from torch import stft as stft
from torch import svd_lowrank as svd_lowrank
from torch import tensordot as tensordot
from torch import unique as unique
from torch import unique_consecutive as unique_consecutive
from torch import unravel_index as unravel_index

