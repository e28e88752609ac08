"""Every suite of recorded answers: the modules of its cases, and how they are written.

A module gives cases (see answers.cases_of), or has one of these functions instead:

golden_answers(torch)   the answers by case, where the set of cases itself depends on PyTorch; or (answers, arrays)
golden_files(torch)     writes files of another format
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from tests.golden.answers import cases_of


@dataclass(frozen=True)
class Suite:
    """modules: `tests.X` or `tests.X:NAME`, where NAME is the list of cases; seed: of PyTorch's generator."""

    modules: tuple[str, ...]
    seed: int = 7
    packed: bool = False


def _suite(*modules: str, **options) -> Suite:
    return Suite(tuple(f"tests.{module}" for module in modules), **options)


SUITES = {
    "amp": _suite("amp.amp_cases"),
    "autocast": _suite("amp.policy_cases"),
    "autograd": _suite(
        "autograd.graph_cases",
        "autograd.function_cases",
        "autograd.hook_cases",
        "autograd.mode_cases",
        "autograd.state_cases",
        "autograd.option_cases",
        "autograd.missing_cases",
        "autograd.rare_cases",
        "autograd.sparse_cases",
        "autograd.check_cases",
        "autograd.forward_cases",
        "autograd.tangent_cases",
        "autograd.gradcheck_cases",
        "autograd.ownership_cases",
    ),
    "backends": _suite("backends.backends_cases"),
    "data": _suite("utils.data.data_cases", "utils.data.seed_cases"),
    "defaults": _suite("golden.make_defaults"),
    "dispatch": _suite("tensor.dispatch_cases"),
    "distributions": _suite("distributions.distribution_cases", "distributions.transform_cases", packed=True),
    "dtensor": _suite("golden.make_dtensor", packed=True),
    "elastic": _suite(
        "distributed.elastic_cases",
        "distributed.launcher_cases",
        "distributed.rendezvous_cases",
        "distributed.dynamic_rendezvous_cases",
    ),
    "extreme_integers": _suite("golden.extreme_integers", seed=20, packed=True),
    "facts": _suite("golden.make_facts"),
    "files": _suite("golden.make_files"),
    "flex_attention": _suite("nn.flex_cases", packed=True),
    "func": _suite("func.functional_cases", "func.func_cases"),
    "futures": _suite("futures.futures_cases"),
    "fx": _suite("fx.fx_cases", "fx.make_fx_cases"),
    "jit": _suite("jit.jit_cases"),
    "logging": _suite("logs.logging_cases"),
    "masked": _suite("masked.masked_cases"),
    "module_tree": _suite("golden.make_module_tree"),
    "modules": _suite("golden.make_modules"),
    "monitor": _suite("monitor.monitor_cases"),
    "nested": _suite("nested.nested_cases"),
    "nn_cases": _suite("nn.cases", seed=11, packed=True),
    "nn_names": _suite("golden.make_nn_names"),
    "nn_scenarios": _suite("nn.scenarios"),
    "optim": _suite("optim.optim_cases"),
    "optim_cases": _suite(
        "optim.schedule_cases",
        "optim.rule_cases",
        "optim.group_cases",
        "optim.average_cases",
        "optim.search_cases",
        packed=True,
    ),
    "optim_forms": _suite("optim.form_cases", packed=True),
    "out_forms": _suite("golden.make_out_forms"),
    "out_rules": _suite("golden.out_rules"),
    "package": _suite("package.package_cases"),
    "pickle_names": _suite("golden.make_pickle_names", packed=True),
    "pipelining": _suite("distributed.pipelining_cases"),
    "pipelining_orders": _suite("distributed.pipelining_orders"),
    "programs": _suite("golden.programs", packed=True),
    "programs_digests": _suite("golden.make_programs_digests", packed=True),
    "quantized": _suite("quantized.quantized_cases", packed=True),
    "quantized_training": _suite("quantized.training_cases"),
    "random": _suite("golden.random_cases", seed=1234),
    "samples": _suite("golden.make_samples", seed=20, packed=True),
    "saved": _suite("golden.make_saved", seed=20),
    "second_order": _suite("golden.make_second_order", seed=20, packed=True),
    "surface": _suite("golden.make_surface"),
    "symbols": _suite("golden.make_symbols"),
    "tensor": _suite(
        "tensor.tensor_cases",
        "tensor.subclass_cases",
        "tensor.storage_cases",
        "tensor.indexing_cases",
        "tensor.layout_cases",
    ),
    "testing": _suite("testing.testing_cases"),
    "transformers": _suite("golden.make_transformers"),
    "trl": _suite("golden.make_trl"),
    "utils": _suite("utils.utils_cases", "utils.benchmark_cases"),
    "warnings": _suite("ops.warning_cases"),
    # Expressions: lines of Python with a set-up.
    "accepted_arguments": _suite("golden.expressions.accepted_arguments"),
    "argument_checks": _suite("golden.expressions.argument_checks"),
    "named_results": _suite("golden.expressions.named_results"),
    "aten": _suite("golden.expressions.aten"),
    "complex32": _suite("golden.expressions.complex32"),
    "created_values": _suite("golden.expressions.created_values"),
    "determinism": _suite("golden.expressions.determinism"),
    "element_values": _suite("golden.expressions.element_values"),
    "float8": _suite("golden.expressions.float8", "golden.expressions.scaled_products"),
    "further_names": _suite("golden.expressions.further_names"),
    "indexing": _suite("golden.expressions.structure:INDEXING"),
    "layer_checks": _suite("golden.expressions.layer_checks", "golden.expressions.input_checks"),
    "linalg": _suite("golden.expressions.linalg"),
    "matmul": _suite("golden.expressions.nn_ops:MATMUL"),
    "npu_bodies": _suite("ops.npu_cases"),
    "op_options": _suite(
        "golden.expressions.op_options",
        "golden.expressions.op_branches",
        "golden.expressions.op_branches_nn",
        "golden.expressions.op_names",
        "golden.expressions.op_errors",
    ),
    "nn_functions": _suite("golden.expressions.nn_ops:NN"),
    "number_ranges": _suite("golden.expressions.number_ranges"),
    "pointwise": _suite("golden.expressions.pointwise"),
    "rare_methods": _suite("golden.expressions.rare_methods"),
    "reduction": _suite("golden.expressions.structure:REDUCTION"),
    "result_layouts": _suite("golden.expressions.result_layouts"),
    "sparse": _suite("golden.expressions.sparse"),
    "tensor_numbers": _suite("golden.expressions.tensor_numbers"),
    "storages": _suite("golden.expressions.storages"),
    "view": _suite("golden.expressions.structure:VIEW"),
    "vision": _suite("vision.vision_cases", packed=True),
}


def modules_of(name: str) -> list:
    """The imported modules of a suite. KeyError if there is no such suite."""
    return [importlib.import_module(path.partition(":")[0]) for path in SUITES[name].modules]


def cases(name: str) -> dict:
    """The cases of a suite, functions of a torch module by name; empty if its modules record in another way."""
    found: dict = {}
    for path, module in zip(SUITES[name].modules, modules_of(name), strict=True):
        if not hasattr(module, "golden_answers") and not hasattr(module, "golden_files"):
            found |= cases_of(module, path.partition(":")[2] or "CASES")
    return found
