"""Options of torch._dynamo. They have no effect."""

suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
optimize_ddp = True
disable = True
inline_inbuilt_nn_modules = True
specialize_int = False
guard_nn_modules = True
allow_unspec_int_on_nn_module = False
