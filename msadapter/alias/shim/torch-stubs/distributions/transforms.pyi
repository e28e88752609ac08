# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions import AbsTransform as AbsTransform
from torch.distributions import AffineTransform as AffineTransform
from torch.distributions import CatTransform as CatTransform
from torch.distributions import ComposeTransform as ComposeTransform
from torch.distributions import CorrCholeskyTransform as CorrCholeskyTransform
from torch.distributions import CumulativeDistributionTransform as CumulativeDistributionTransform
from torch.distributions import ExpTransform as ExpTransform
from torch.distributions import IndependentTransform as IndependentTransform
from torch.distributions import LowerCholeskyTransform as LowerCholeskyTransform
from torch.distributions import PositiveDefiniteTransform as PositiveDefiniteTransform
from torch.distributions import PowerTransform as PowerTransform
from torch.distributions import ReshapeTransform as ReshapeTransform
from torch.distributions import SigmoidTransform as SigmoidTransform
from torch.distributions import SoftmaxTransform as SoftmaxTransform
from torch.distributions import SoftplusTransform as SoftplusTransform
from torch.distributions import StackTransform as StackTransform
from torch.distributions import StickBreakingTransform as StickBreakingTransform
from torch.distributions import TanhTransform as TanhTransform
from torch.distributions import Transform as Transform
from torch.distributions import identity_transform as identity_transform

