"""torch.xpu: Intel GPUs. They are never available here."""

from ._absent_device import absent

_FUNCTIONS = (
    "can_device_access_peer change_current_allocator clock_rate current_stream device_memory_used "
    "get_device_capability get_device_name get_device_properties get_per_process_memory_fraction get_rng_state "
    "get_stream_from_external graph_pool_handle init initial_seed make_graphed_callables mem_get_info memory_usage "
    "power_draw set_device set_per_process_memory_fraction set_rng_state set_stream stream temperature use_mem_pool "
    "utilization"
)
_CLASSES = "Event MemPool Stream StreamContext XPUGraph XPUPluggableAllocator device device_of graph"
globals().update(absent("xpu", _FUNCTIONS.split(), _CLASSES.split()))
