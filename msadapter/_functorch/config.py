"""Options of torch._functorch with PyTorch's defaults. They have no effect, because msadapter does not have that compiler."""

functionalize_rng_ops = False
debug_assert = False
cse = True
enable_autograd_cache = True
bundled_autograd_cache = False
view_replay_for_aliased_outputs = True
recompute_views = False
activation_memory_budget = 1.0
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver = "dp"
visualize_memory_budget_pareto = False
memory_budget_pareto_dir = None
aggressive_recomputation = False
enable_activation_offloading = False
ban_recompute_used_far_apart = True
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
ban_recompute_not_in_allowlist = True
ban_recompute_reductions = True
unlift_effect_tokens = False
backward_pass_autocast = "same_as_forward"
donated_buffer = True
strict_autograd_cache = False
guess_tangent_strides_as_outputs = True
