"""torch.mps: the GPU of Apple computers. It is never available here."""

from ._absent_device import absent

_FUNCTIONS = (
    "compile_shader current_allocated_memory driver_allocated_memory get_rng_state load_metallib "
    "recommended_max_memory set_per_process_memory_fraction set_rng_state"
)
globals().update(absent("mps", _FUNCTIONS.split(), ("Event",)))
