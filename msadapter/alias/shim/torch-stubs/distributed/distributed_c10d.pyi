# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed import Backend as Backend
from torch.distributed import DebugLevel as DebugLevel
from torch.distributed import DistBackendError as DistBackendError
from torch.distributed import DistError as DistError
from torch.distributed import DistNetworkError as DistNetworkError
from torch.distributed import DistStoreError as DistStoreError
from torch.distributed import FileStore as FileStore
from torch.distributed import GroupMember as GroupMember
from torch.distributed import HashStore as HashStore
from torch.distributed import P2POp as P2POp
from torch.distributed import PrefixStore as PrefixStore
from torch.distributed import ProcessGroup as ProcessGroup
from torch.distributed import ProcessGroupGloo as ProcessGroupGloo
from torch.distributed import ProcessGroupNCCL as ProcessGroupNCCL
from torch.distributed import QueueEmptyError as QueueEmptyError
from torch.distributed import ReduceOp as ReduceOp
from torch.distributed import Store as Store
from torch.distributed import TCPStore as TCPStore
from torch.distributed import Work as Work
from torch.distributed import all_gather as all_gather
from torch.distributed import all_gather_coalesced as all_gather_coalesced
from torch.distributed import all_gather_into_tensor as all_gather_into_tensor
from torch.distributed import all_gather_object as all_gather_object
from torch.distributed import all_gather_single as all_gather_single
from torch.distributed import all_reduce as all_reduce
from torch.distributed import all_reduce_coalesced as all_reduce_coalesced
from torch.distributed import all_to_all as all_to_all
from torch.distributed import all_to_all_single as all_to_all_single
from torch.distributed import barrier as barrier
from torch.distributed import batch_isend_irecv as batch_isend_irecv
from torch.distributed import broadcast as broadcast
from torch.distributed import broadcast_object_list as broadcast_object_list
from torch.distributed import destroy_process_group as destroy_process_group
from torch.distributed import gather as gather
from torch.distributed import gather_object as gather_object
from torch.distributed import get_backend as get_backend
from torch.distributed import get_backend_config as get_backend_config
from torch.distributed import get_debug_level as get_debug_level
from torch.distributed import get_default_backend_for_device as get_default_backend_for_device
from torch.distributed import get_global_rank as get_global_rank
from torch.distributed import get_group_rank as get_group_rank
from torch.distributed import get_node_local_rank as get_node_local_rank
from torch.distributed import get_pg_count as get_pg_count
from torch.distributed import get_process_group_ranks as get_process_group_ranks
from torch.distributed import get_rank as get_rank
from torch.distributed import get_world_size as get_world_size
from torch.distributed import group as group
from torch.distributed import init_process_group as init_process_group
from torch.distributed import irecv as irecv
from torch.distributed import is_available as is_available
from torch.distributed import is_backend_available as is_backend_available
from torch.distributed import is_gloo_available as is_gloo_available
from torch.distributed import is_initialized as is_initialized
from torch.distributed import is_mpi_available as is_mpi_available
from torch.distributed import is_nccl_available as is_nccl_available
from torch.distributed import is_torchelastic_launched as is_torchelastic_launched
from torch.distributed import is_ucc_available as is_ucc_available
from torch.distributed import is_xccl_available as is_xccl_available
from torch.distributed import isend as isend
from torch.distributed import monitored_barrier as monitored_barrier
from torch.distributed import new_group as new_group
from torch.distributed import new_subgroups as new_subgroups
from torch.distributed import new_subgroups_by_enumeration as new_subgroups_by_enumeration
from torch.distributed import record_comm as record_comm
from torch.distributed import recv as recv
from torch.distributed import recv_object_list as recv_object_list
from torch.distributed import reduce as reduce
from torch.distributed import reduce_op as reduce_op
from torch.distributed import reduce_scatter as reduce_scatter
from torch.distributed import reduce_scatter_single as reduce_scatter_single
from torch.distributed import reduce_scatter_tensor as reduce_scatter_tensor
from torch.distributed import register_rendezvous_handler as register_rendezvous_handler
from torch.distributed import rendezvous as rendezvous
from torch.distributed import scatter as scatter
from torch.distributed import scatter_object_list as scatter_object_list
from torch.distributed import send as send
from torch.distributed import send_object_list as send_object_list
from torch.distributed import shrink_group as shrink_group
from torch.distributed import split_group as split_group
from torch.distributed import supports_complex as supports_complex

SHRINK_ABORT: _builtins.int
SHRINK_DEFAULT: _builtins.int
default_pg_nccl_timeout: _Any
default_pg_timeout: _Any
