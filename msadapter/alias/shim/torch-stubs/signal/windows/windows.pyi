# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.signal.windows import bartlett as bartlett
from torch.signal.windows import blackman as blackman
from torch.signal.windows import cosine as cosine
from torch.signal.windows import exponential as exponential
from torch.signal.windows import gaussian as gaussian
from torch.signal.windows import general_cosine as general_cosine
from torch.signal.windows import general_hamming as general_hamming
from torch.signal.windows import hamming as hamming
from torch.signal.windows import hann as hann
from torch.signal.windows import kaiser as kaiser
from torch.signal.windows import nuttall as nuttall

