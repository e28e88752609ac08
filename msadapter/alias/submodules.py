"""The submodules of torch that are in sys.modules after `import torch`, if msadapter has them.

PyTorch's own list is in tests/golden/modules.json. tests/alias/absent_modules.json says what is missing here,
and why.
"""

# Modules of msadapter with the same name.
PRESENT = """
_VF __config__ __future__ _C _C._autograd _C._distributed_autograd _C._distributed_c10d _C._distributed_rpc
_C._dynamo _C._fft _C._functorch _C._linalg _C._nn _C._profiler
_C._special
_compile _custom_ops _ops _vmap_internals monitor _functorch _functorch.apis _functorch.batch_norm_replacement
_functorch.eager_transforms _functorch.functional_call _logging _logging._internal _library _library.custom_ops _subclasses
_subclasses.fake_tensor _subclasses.functional_tensor _utils accelerator amp amp.autocast_mode
ao ao.nn ao.nn.quantized ao.nn.quantized.dynamic ao.nn.quantized.dynamic.modules
ao.nn.qat ao.nn.qat.modules ao.nn.qat.modules.linear ao.quantization.fake_quantize ao.quantization.observer ao.quantization.qconfig
ao.nn.quantized.dynamic.modules.linear ao.quantization ao.quantization.quantize ao.quantization.stubs quantization
amp.grad_scaler autograd autograd.anomaly_mode autograd.forward_ad autograd.function autograd.functional
autograd.grad_mode autograd.gradcheck autograd.graph autograd.profiler autograd.variable backends
backends.cpu backends.cuda backends.cudnn backends.cusparselt backends.kleidiai backends.mha
backends.miopen backends.mkl backends.mkldnn backends.mps backends.nnpack backends.openmp
backends.opt_einsum backends.quantized compiler cpu cpu.amp
cpu.amp.autocast_mode cpu.amp.grad_scaler cuda cuda._utils
cuda.amp cuda.amp.autocast_mode cuda.amp.grad_scaler cuda.graphs cuda.memory cuda.nccl cuda.nvtx
cuda.profiler cuda.random cuda.streams distributed distributed.algorithms distributed.algorithms.join
distributed.autograd distributed.constants distributed.device_mesh distributed.distributed_c10d distributed.remote_device
distributed.rpc distributed.rpc.api distributed.rpc.backend_registry distributed.rpc.constants
distributed.rpc.functions distributed.rpc.internal distributed.rpc.options
distributed.utils distributions
distributions.bernoulli distributions.beta distributions.binomial distributions.categorical
distributions.cauchy distributions.chi2 distributions.constraint_registry distributions.constraints
distributions.continuous_bernoulli distributions.dirichlet distributions.distribution
distributions.exp_family distributions.exponential distributions.fishersnedecor distributions.gamma
distributions.generalized_pareto distributions.geometric distributions.gumbel distributions.half_cauchy
distributions.half_normal distributions.independent distributions.inverse_gamma distributions.kl
distributions.kumaraswamy distributions.laplace distributions.lkj_cholesky distributions.log_normal
distributions.logistic_normal distributions.lowrank_multivariate_normal distributions.mixture_same_family
distributions.multinomial distributions.multivariate_normal distributions.negative_binomial
distributions.normal distributions.one_hot_categorical distributions.pareto distributions.poisson
distributions.relaxed_bernoulli distributions.relaxed_categorical distributions.studentT
distributions.transformed_distribution distributions.transforms distributions.uniform distributions.utils
distributions.von_mises distributions.weibull distributions.wishart export fft func functional futures fx
fx._compatibility fx._pytree fx._symbolic_trace fx.experimental fx.experimental.proxy_tensor fx.graph fx.graph_module
fx.immutable_collections fx.interpreter fx.node fx.operator_schemas fx.passes fx.passes.infra fx.passes.infra.pass_base
fx.passes.infra.pass_manager fx.passes.operator_support fx.passes.tools_common
fx.passes.shape_prop fx.passes.utils fx.passes.utils.common fx.passes.utils.matcher_utils fx.proxy fx.subgraph_rewriter
fx.tensor_type fx.traceback hub jit jit.annotations library linalg masked mps
mtia multiprocessing multiprocessing.reductions multiprocessing.spawn
nested nested._internal nested._internal.nested_int nested._internal.nested_tensor nn nn._reduction nn.attention
nn.common_types nn.functional nn.grad nn.init nn.modules nn.modules.activation nn.modules.adaptive
nn.modules.batchnorm nn.modules.channelshuffle nn.modules.container nn.modules.conv nn.modules.distance
nn.modules.dropout nn.modules.flatten nn.modules.fold nn.modules.instancenorm nn.modules.lazy
nn.modules.linear nn.modules.loss nn.modules.module nn.modules.normalization nn.modules.padding
nn.modules.pixelshuffle nn.modules.pooling nn.modules.rnn nn.modules.sparse nn.modules.transformer
nn.modules.upsampling nn.modules.utils nn.parallel nn.parallel.distributed nn.parameter nn.utils
nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion nn.utils.init nn.utils.memory_format
nn.utils.parametrizations nn.utils.parametrize nn.utils.rnn nn.utils.spectral_norm nn.utils.stateless
nn.utils.weight_norm ops optim optim._adafactor optim.adadelta optim.adagrad optim.adam optim.adamax
optim.adamw optim.asgd optim.lbfgs optim.lr_scheduler optim.nadam optim.optimizer optim.radam optim.rmsprop
optim.rprop optim.sgd optim.sparse_adam optim.swa_utils overrides package package.file_structure_representation
package._mangling package.analyze package.analyze.is_from_package package.glob_group package.importer
package.package_exporter package.package_importer profiler profiler.profiler quasirandom random
return_types serialization signal signal.windows sparse special storage testing testing._comparison
testing._creation testing._internal types utils utils._mode_utils utils._python_dispatch utils._pytree
utils.backcompat utils.checkpoint utils.collect_env utils.data utils.data._utils utils.data._utils.collate
utils.data._utils.fetch utils.data._utils.worker utils.data.dataloader utils.data.dataset
utils.data.datapipes utils.data.datapipes.iter utils.data.datapipes.iter.combinatorics
utils.data.distributed utils.data.sampler utils.deterministic utils.dlpack utils.hooks utils.weak version xpu
_refs _refs._conversions _refs.fft _refs.linalg _refs.nn _refs.nn.functional _refs.special
_higher_order_ops _higher_order_ops.associative_scan
_higher_order_ops.cond _higher_order_ops.map _higher_order_ops.scan _higher_order_ops.while_loop
torch_version utils._contextlib utils._foreach_utils cuda.tunable
""".split()  # noqa: SIM905 (a list literal of this length would be a page of quotes)

# Modules of PyTorch that have another name in msadapter.
ELSEWHERE = {
    "_jit_internal": "jit._internal",
    "_tensor": "tensor._tensor",
    "_tensor_str": "tensor._printing",
    "accelerator.graphs": "accelerator",
    "accelerator.memory": "accelerator",
    "autograd.profiler_util": "profiler.events",
    "cuda.sparse": "cuda",
    "jit._async": "jit",
    "jit._freeze": "jit",
    "jit._script": "jit",
    "jit._serialization": "jit",
    "jit._trace": "jit",
    "masked._ops": "masked",
    "mps.event": "mps",
    "mps.profiler": "mps",
    "mtia.memory": "mtia",
    "mtia.mtia_graph": "mtia",
    "nn.parallel.data_parallel": "nn.parallel",
    "nn.parallel.parallel_apply": "nn.parallel._devices",
    "nn.parallel.replicate": "nn.parallel._devices",
    "nn.parallel.scatter_gather": "nn.parallel._devices",
    "optim._muon": "optim.muon",
    "quantization.fake_quantize": "ao.quantization.fake_quantize",
    "quantization.observer": "ao.quantization.observer",
    "quantization.qconfig": "ao.quantization.qconfig",
    "quantization.quantize": "ao.quantization.quantize",
    "quantization.stubs": "ao.quantization.stubs",
    "signal.windows.windows": "signal.windows",
    "xpu.graphs": "xpu",
    "xpu.memory": "xpu",
    "xpu.random": "xpu",
    "xpu.streams": "xpu",
}

# Modules and packages of msadapter that PyTorch does not have. They are not modules of torch, although they are
# below msadapter.
OURS = frozenset(
    """
__main__ _absent_device _aten _checks _errors _host _native_names _process _quantized _serialization
_standard_names _symbolic _values _vision alias csrc flash_attn functorch mindio_ttp tensor torch_npu transformer_engine triton
""".split()  # noqa: SIM905 (as above)
)
