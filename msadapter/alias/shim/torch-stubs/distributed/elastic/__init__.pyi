# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.elastic import control_plane as control_plane
from torch.distributed.elastic import events as events
from torch.distributed.elastic import metrics as metrics
from torch.distributed.elastic import multiprocessing as multiprocessing
from torch.distributed.elastic import rendezvous as rendezvous
from torch.distributed.elastic import timer as timer
from torch.distributed.elastic import utils as utils

