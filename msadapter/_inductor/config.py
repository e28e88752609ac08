"""Options of torch._inductor with PyTorch's defaults. They have no effect, because msadapter does not have that compiler."""

from __future__ import annotations

from types import SimpleNamespace

debug = False
fx_graph_cache = True
fx_graph_remote_cache = None
force_disable_caches = False
cpp_wrapper = False
dce = False
size_asserts = True
nan_asserts = False
epilogue_fusion = True
prologue_fusion = True
pattern_matcher = True
max_autotune = False
max_autotune_pointwise = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
force_fuse_int_mm_with_mul = False
use_mixed_mm = True
reorder_for_locality = True
reorder_for_compute_comm_overlap = False
conv_1x1_as_mm = False
split_reductions = True
layout_optimization = True
shape_padding = True
freezing = False
fallback_random = False
emulate_precision_casts = False
allow_buffer_reuse = True
inplace_buffers = True
compile_threads = 1
benchmark_kernel = False
joint_graph_constant_folding = True
unroll_reductions_threshold = 8
post_grad_custom_pre_pass = None
post_grad_custom_post_pass = None
pre_grad_custom_pass = None
joint_custom_pre_pass = None
joint_custom_post_pass = None
triton = SimpleNamespace(
    cudagraphs=False,
    cudagraph_trees=True,
    cudagraph_skip_dynamic_graphs=False,
    unique_kernel_names=True,
    autotune_pointwise=True,
    max_tiles=None,
    multi_kernel=0,
    store_cubin=False,
)
cpp = SimpleNamespace(threads=-1, simdlen=None, enable_kernel_profile=False, weight_prepack=True)
aot_inductor = SimpleNamespace(output_path="", debug_compile=False, package=False)
trace = SimpleNamespace(enabled=False, graph_diagram=False)
