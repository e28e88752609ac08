# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.mps import Event as Event
from torch.mps import absent as absent
from torch.mps import compile_shader as compile_shader
from torch.mps import current_allocated_memory as current_allocated_memory
from torch.mps import current_device as current_device
from torch.mps import device_count as device_count
from torch.mps import driver_allocated_memory as driver_allocated_memory
from torch.mps import empty_cache as empty_cache
from torch.mps import get_arch_list as get_arch_list
from torch.mps import get_gencode_flags as get_gencode_flags
from torch.mps import get_rng_state as get_rng_state
from torch.mps import get_rng_state_all as get_rng_state_all
from torch.mps import is_available as is_available
from torch.mps import is_bf16_supported as is_bf16_supported
from torch.mps import is_current_stream_capturing as is_current_stream_capturing
from torch.mps import is_initialized as is_initialized
from torch.mps import is_tf32_supported as is_tf32_supported
from torch.mps import load_metallib as load_metallib
from torch.mps import manual_seed as manual_seed
from torch.mps import manual_seed_all as manual_seed_all
from torch.mps import max_memory_allocated as max_memory_allocated
from torch.mps import max_memory_reserved as max_memory_reserved
from torch.mps import memory_allocated as memory_allocated
from torch.mps import memory_reserved as memory_reserved
from torch.mps import memory_snapshot as memory_snapshot
from torch.mps import memory_stats as memory_stats
from torch.mps import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from torch.mps import recommended_max_memory as recommended_max_memory
from torch.mps import record_memory_history as record_memory_history
from torch.mps import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from torch.mps import reset_peak_memory_stats as reset_peak_memory_stats
from torch.mps import seed as seed
from torch.mps import seed_all as seed_all
from torch.mps import set_per_process_memory_fraction as set_per_process_memory_fraction
from torch.mps import set_rng_state as set_rng_state
from torch.mps import set_rng_state_all as set_rng_state_all
from torch.mps import synchronize as synchronize

