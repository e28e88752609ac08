# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils.data import _utils as _utils
from torch.utils.data import dataloader as dataloader
from torch.utils.data import datapipes as datapipes
from torch.utils.data import dataset as dataset
from torch.utils.data import distributed as distributed
from torch.utils.data import sampler as sampler
from torch.utils.data.dataloader import DataLoader as DataLoader
from torch.utils.data.dataset import ChainDataset as ChainDataset
from torch.utils.data.dataset import ConcatDataset as ConcatDataset
from torch.utils.data.dataset import Dataset as Dataset
from torch.utils.data.dataset import IterableDataset as IterableDataset
from torch.utils.data.dataset import StackDataset as StackDataset
from torch.utils.data.dataset import Subset as Subset
from torch.utils.data.dataset import TensorDataset as TensorDataset
from torch.utils.data.dataset import random_split as random_split
from torch.utils.data.distributed import DistributedSampler as DistributedSampler
from torch.utils.data.sampler import BatchSampler as BatchSampler
from torch.utils.data.sampler import RandomSampler as RandomSampler
from torch.utils.data.sampler import Sampler as Sampler
from torch.utils.data.sampler import SequentialSampler as SequentialSampler
from torch.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from torch.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler

def default_collate(batch) -> _Any: ...
def default_convert(data) -> _Any: ...
def get_worker_info() -> _Any: ...
