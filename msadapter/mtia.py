"""torch.mtia: Meta's accelerator. It is never available here."""

from ._absent_device import absent

_FUNCTIONS = (
    "attach_out_of_memory_observer current_stream default_stream get_device_capability get_device_properties "
    "get_rng_state graph_pool_handle init initial_seed set_device set_rng_state set_stream snapshot stream"
)
globals().update(absent("mtia", _FUNCTIONS.split(), ["MTIAGraph", "device", "graph"]))
