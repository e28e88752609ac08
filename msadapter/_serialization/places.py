"""Under which names PyTorch finds what this package defines in other modules, and the reverse.

A pickle names a class or a function by the module that defines it and by its name there. Most modules have PyTorch's names.
For those that have not, this file says where PyTorch has their contents. The suite pickle_names of tests/golden holds the
names that PyTorch writes, and tests compare every public name with it.
"""

# A module of this package -> the modules of PyTorch that have its contents under the same names. The first that has the
# object here is written.
_WRITTEN_IN = {
    "_C": "torch torch._C",
    "_aten": "torch._ops",
    "_aten.only": "torch",
    "_higher_order_ops.cond": "torch",
    "_host.accelerator": "torch.cuda torch.accelerator",
    "_host.warn": "torch",
    "_quantized": "torch",
    "_serialization.locations": "torch.serialization",
    "_serialization.safe": "torch.serialization",
    "_serialization.storage_ref": "torch.serialization",
    "_symbolic": "torch",
    "_values.base": "torch._C",
    "_values.determinism": "torch",
    "_values.device": "torch",
    "amp.autocast_mode": "torch torch.amp.autocast_mode",
    "autograd._hooks": "torch.utils.hooks",
    "autograd._passes": "torch.autograd torch.autograd.graph",
    "autograd.anomaly_mode": "torch torch.autograd.anomaly_mode",
    "autograd.grad_mode": "torch.autograd torch.autograd.grad_mode",
    "backends._fp32": "torch",
    "backends._frozen": "torch.backends",
    "cuda.memory": "torch.cuda torch.cuda.memory",
    "cuda.properties": "torch.cuda",
    "cuda.streams": "torch.cuda torch.cuda.streams",
    "distributed.autograd._contexts": "torch._C._distributed_autograd torch.distributed.autograd",
    "distributed.collectives": "torch.distributed.distributed_c10d",
    "distributed.elastic.rendezvous._dynamic_state": "torch.distributed.elastic.rendezvous.dynamic_rendezvous",
    "distributed.errors": "torch.distributed",
    "distributed.fsdp._fully_shard._fsdp_api": "torch.distributed.fsdp",
    "distributed.fsdp._fully_shard._fully_shard": "torch.distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel": "torch.distributed.fsdp",
    "distributed.rpc.agent": "torch._C._distributed_rpc",
    "distributed.rpc.calls": "torch.distributed.rpc.api",
    "distributed.rpc.options": "torch._C._distributed_rpc torch.distributed.rpc.options",
    "distributed.rpc.results": "torch.distributed.rpc.internal",
    "distributed.rpc.rref": "torch._C._distributed_rpc torch.distributed.rpc.api",
    "distributed.objects": "torch.distributed.distributed_c10d",
    "distributed.point_to_point": "torch.distributed.distributed_c10d",
    "distributed.process_group": "torch.distributed.distributed_c10d",
    "distributed.reduce_op": "torch.distributed.distributed_c10d",
    "distributed.setup": "torch.distributed torch.distributed.distributed_c10d",
    "distributed.store": "torch.distributed torch.distributed.distributed_c10d",
    "distributed.tcp_store": "torch.distributed",
    "distributed.tensor._api": "torch.distributed.tensor",
    "distributed.tensor._class_loss": "torch.distributed.tensor.parallel",
    "distributed.tensor._dtensor": "torch.distributed.tensor",
    "distributed.work": "torch.distributed.distributed_c10d",
    "distributions._transform_base": "torch.distributions.transforms",
    "distributions._transform_numbers": "torch.distributions.transforms",
    "distributions._transform_vectors": "torch.distributions.transforms",
    "func._derivatives": "torch.func",
    "func._modules": "torch.func",
    "func._vmap": "torch.func",
    "fx._codegen": "torch.fx.graph",
    "fx._patching": "torch.fx._symbolic_trace",
    "jit._internal": "torch._jit_internal",
    "masked._normalizations": "torch.masked",
    "masked._reductions": "torch.masked",
    "nn._packed": "torch.nn.utils.rnn",
    "nn.modules._hooks": "torch.nn.modules.module",
    "nn.modules.attention": "torch.nn.modules.activation",
    "nn.parallel._devices": "torch.nn.parallel",
    "nn.utils._norms": "torch.nn.utils.weight_norm",
    "nn.utils.clip_grad": "torch.nn.utils",
    "ops._einsum": "torch.functional",
    "ops.joining": "torch.functional torch",
    "ops.matmul": "torch.functional torch",
    "ops.nn_scaled": "torch.nn.functional",
    "optim._adafactor": "torch.optim",
    "optim._cycles": "torch.optim.lr_scheduler",
    "optim._schedule_base": "torch.optim.lr_scheduler",
    "optim._schedule_chains": "torch.optim.lr_scheduler",
    "optim._schedule_plain": "torch.optim.lr_scheduler",
    "optim._swa_schedule": "torch.optim.swa_utils",
    "optim.muon": "torch.optim",
    "profiler._ranges": "torch.autograd.profiler",
    "profiler.events": "torch.autograd.profiler_util torch.profiler",
    "sparse._construct": "torch torch.sparse",
    "sparse._operators": "torch torch.sparse",
    "sparse._products": "torch torch.sparse",
    "tensor._asarray": "torch",
    "tensor._construct": "torch",
    "tensor._printing": "torch._tensor_str",
    "utils._selective_checkpoint": "torch.utils.checkpoint",
}

# What has another name in PyTorch.
_WRITTEN_AS = {
    "_C.default_dtype": "torch.get_default_dtype",
    "_C.num_threads": "torch.get_num_threads",
    "_host.accelerator.Device": "torch.cuda.device",
    "_host.accelerator.DeviceOf": "torch.cuda.device_of",
    "_values.device.default_device": "torch.get_default_device",
    "jit._isinstance.is_instance": "torch.jit.isinstance",
    "nn.parallel._devices.scatter_kwargs": "torch.nn.parallel.scatter_gather.scatter_kwargs",
}

# A module of PyTorch -> the module of PyTorch's public names that has its contents here.
_READ_IN = {
    "torch._C._monitor": "torch.monitor",
    "torch._C._profiler": "torch.profiler",
    "torch._jit_internal": "torch.jit",
    "torch._lobpcg": "torch",
    "torch._lowrank": "torch",
    "torch.distributed.fsdp.api": "torch.distributed.fsdp",
    "torch.distributed.rendezvous": "torch.distributed",
    "torch.export.dynamic_shapes": "torch.export",
    "torch.export.exported_program": "torch.export",
    "torch.export.unflatten": "torch.export",
    "torch.fx.experimental.unification.variable": "torch.fx.tensor_type",
    "torch.jit._fuser": "torch.jit",
    "torch.onnx._internal.torchscript_exporter.utils": "torch.onnx",
    "torch.sparse.semi_structured": "torch.sparse",
}

# Names of PyTorch that are not public -> the public names of the same objects.
_READ_AS = {
    "torch._C._autograd.DeviceType": "torch.profiler.DeviceType",
    "torch._C._LinAlgError": "torch.linalg.LinAlgError",
    "torch._C._fx_map_arg": "torch.fx.node.map_arg",
    "torch._C._has_torch_function": "torch.overrides.has_torch_function",
    "torch._C._has_torch_function_unary": "torch.overrides.has_torch_function_unary",
    "torch._C._has_torch_function_variadic": "torch.overrides.has_torch_function_variadic",
    "torch._C._is_multithreading_enabled": "torch.autograd.is_multithreading_enabled",
    "torch._C._nn.log_sigmoid": "torch.nn.functional.logsigmoid",
    "torch._C._nested.nested_to_padded_tensor": "torch.nested.to_padded_tensor",
    "torch._C._sparse._sparse_addmm": "torch.sparse.addmm",
    "torch._C._sparse._sparse_log_softmax": "torch.sparse.log_softmax",
    "torch._C._sparse._sparse_mm": "torch.sparse.mm",
    "torch._C._sparse._sparse_softmax": "torch.sparse.softmax",
    "torch._C._sparse._spdiags": "torch.sparse.spdiags",
    "torch._C._sparse.sparse_sampled_addmm": "torch.sparse.sampled_addmm",
    "torch._C._to_dlpack": "torch.utils.dlpack.to_dlpack",
    "torch._jit_internal.is_dict": "torch.jit.annotations.is_dict",
    "torch._jit_internal.is_list": "torch.jit.annotations.is_list",
    "torch._jit_internal.is_optional": "torch.jit.annotations.is_optional",
    "torch._jit_internal.is_tuple": "torch.jit.annotations.is_tuple",
    "torch._jit_internal.is_union": "torch.jit.annotations.is_union",
    "torch._sym_sqrt": "torch.sym_sqrt",
    "torch._tensor._rebuild_from_type_v2": "torch._utils._rebuild_from_type_v2",
    "torch.distributed.distributed_c10d.DebugLevel": "torch.distributed.DebugLevel",
    "torch.jit.Future": "torch.futures.Future",
    "torch.nn.functional._threshold": "torch.nn.functional.threshold",
    "torch.nn.utils.clip_grad._clip_grads_with_norm_": "torch.nn.utils.clip_grads_with_norm_",
    "torch.nn.utils.clip_grad._get_total_norm": "torch.nn.utils.get_total_norm",
}


def written(module: str, name: str) -> list[tuple[str, str]]:
    """Return the (module, name) pairs under which PyTorch may have what this package defines as `module`.`name`.

    Args:
        module: the `__module__` of a class or function of this package, such as "msadapter.optim.muon" or "torch".
        name: its qualified name.
    """
    own = module.partition(".")[2]
    public = _WRITTEN_AS.get(f"{own}.{name}")
    if public is not None:
        return [_split(public)]
    return [(place, name) for place in _WRITTEN_IN.get(own, f"torch.{own}".rstrip(".")).split()]


def read(module: str, name: str) -> tuple[str, str]:
    """Return the (module, name) under which this package has what a file calls `module`.`name`, both in PyTorch's names."""
    public = _READ_AS.get(f"{module}.{name}")
    return _split(public) if public is not None else (_READ_IN.get(module, module), name)


def _split(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(".")
    return module, name
