"""Names that libraries import: control flow as functions, versions that compare, options of the compiler, lists of tensors.

The expected values are those of PyTorch 2.13.0 for the same calls.
"""

import warnings

import pytest

import msadapter as torch
from msadapter._higher_order_ops import scan, while_loop
from msadapter._higher_order_ops.map import map as map_slices
from msadapter.cuda import tunable
from msadapter.utils import _contextlib, _foreach_utils

X = torch.arange(6.0).reshape(2, 3)


def test_cond_runs_one_branch_and_gradients_flow_through_it():
    x = X.clone().requires_grad_()
    out = torch.cond(torch.tensor(False), lambda x: x * 2, lambda x: x * 3, (x,))
    out.sum().backward()
    assert torch.equal(out, X * 3) and torch.equal(x.grad, torch.full((2, 3), 3.0))
    with pytest.warns(UserWarning, match="Pred is a Python constant"):
        assert torch.equal(torch.cond(True, lambda x: x + 1, lambda x: x - 1, (X,)), X + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", abs, abs, (X,)), "Expected pred to be bool or tensor, but got a."),
        ((torch.ones(2) > 0, abs, abs, (X,)), "Expected pred to be bool or single-element tensor"),
        ((torch.tensor(True), 3, abs, (X,)), "Expect both branches to be callable."),
        (
            (torch.tensor(True), abs, abs, (X, "a")),
            "Expect operands to be a tuple of possibly nested dict/list/tuple",
        ),
    ],
)
def test_cond_refuses(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        torch.cond(*arguments)


def test_scan_map_and_while_loop():
    def step(carry, x):
        return carry + x, carry * x

    carry, found = scan(step, torch.zeros(3), X)
    assert carry.tolist() == [3, 5, 7] and found.tolist() == [[0, 0, 0], [0, 4, 10]]
    carry, found = scan(step, torch.zeros(2), X, dim=1)
    assert carry.tolist() == [3, 12] and found.tolist() == [[0, 0, 2], [0, 12, 35]]
    carry, found = scan(step, torch.zeros(3), X, reverse=True)
    assert carry.tolist() == [3, 5, 7] and found.tolist() == [[0, 4, 10], [0, 0, 0]]
    sums, plus = map_slices(lambda x, y: (x.sum(), x + y), X, torch.ones(3))
    assert sums.tolist() == [3, 12] and torch.equal(plus, X + 1)
    count, powers = while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), torch.ones(2))
    )
    assert count == 3 and powers.tolist() == [8, 8]
    for call, message in (
        (lambda: scan(3, X, X), "Combine_fn must be a callable, but got 3"),
        (lambda: map_slices(abs, torch.zeros(0, 3)), "Leading dimensions of mapped xs cannot be 0."),
        (lambda: while_loop(3, abs, (X,)), "Expect cond_fn and body_fn to be callable."),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_the_version_compares_as_a_version():
    version = torch.torch_version.TorchVersion("2.13.0")
    assert (
        version >= (2, 7) and version > "2.9" and version >= "2.10" and version == "2.13" and version != "2.1"
    )
    assert not version < (2, 13) and version <= "2.13.0" and version.split(".")[0] == "2" and version < "a"
    assert isinstance(torch.__version__, torch.torch_version.TorchVersion) and hash(version) == hash("2.13.0")


def test_a_scripted_module_is_a_script_module():
    module, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(torch.jit.script(module), torch.jit.ScriptModule)
    assert not isinstance(other, torch.jit.ScriptModule) and not isinstance(3, torch.jit.ScriptModule)


def test_options_of_the_compiler_can_be_set():
    from msadapter._inductor import config

    before = config.fx_graph_cache
    config.fx_graph_cache = config.triton.cudagraphs = False
    config.fx_graph_cache = before


def test_tensors_in_groups():
    a, b, c = torch.ones(1), torch.ones(1).double(), torch.ones(2)
    found = _foreach_utils._group_tensors_by_device_and_dtype(
        [[a, b, c], [None, b, c], []], with_indices=True
    )
    (lists, positions), (others, second) = found[a.device, torch.float32], found[a.device, torch.float64]
    assert lists[0][1] is c and lists[1] == [None, c] and lists[2] == [] and positions == [0, 2]
    assert others[0][0] is b and second == [1]
    assert _foreach_utils._has_foreach_support([a, None], a.device)


def test_decorators_of_context_managers():
    entered = []

    class Mode(_contextlib._NoParamDecoratorContextManager):
        def __enter__(self):
            entered.append(1)

        def __exit__(self, *error):
            entered.append(-1)

    @Mode
    def run():
        assert sum(entered) == 1
        return 3

    assert run() == 3 and run() == 3 and entered == [1, -1, 1, -1]
    assert _contextlib.context_decorator(lambda: Mode(), lambda: sum(entered))() == 1
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        _contextlib.context_decorator(lambda: Mode(), Mode)


def test_tunable_products_are_off():
    tunable.enable(False)
    assert not tunable.is_enabled() and not tunable.tuning_is_enabled()
    with pytest.raises(NotImplementedError, match=r"torch\.cuda\.tunable\.enable"):
        tunable.enable()


def test_settings_of_tunable_products_are_kept(monkeypatch):
    """PyTorch for CPUs has none of these functions, so the defaults are those of its documentation."""
    monkeypatch.setattr(tunable, "_settings", tunable._Settings())
    assert (tunable.get_max_tuning_duration(), tunable.get_max_tuning_iterations()) == (30, 100)
    assert tunable.get_filename() == "tunableop_results.csv" and tunable.get_results() == ()
    tunable.set_max_tuning_duration(5)
    tunable.set_max_tuning_iterations(7)
    tunable.set_rotating_buffer_size(9)
    tunable.set_filename("a.b.csv", insert_device_ordinal=True)
    found = (
        tunable.get_max_tuning_duration(),
        tunable.get_max_tuning_iterations(),
        tunable.get_rotating_buffer_size(),
    )
    assert found == (5, 7, 9) and tunable.get_filename() == "a.b0.csv"
    tunable.record_untuned_enable(False)
    tunable.set_numerical_check_tolerances(False)
    refused = {
        "record_untuned_enable": (),
        "get_validators": (),
        "read_file": (),
        "set_numerical_check_tolerances": (True,),
        "tune_gemm_in_file": ("a.csv",),
        "mgpu_tune_gemm_in_file": ("a?.csv", 1),
    }
    for name, arguments in refused.items():
        with pytest.raises(NotImplementedError, match=rf"torch\.cuda\.tunable\.{name}: "):
            getattr(tunable, name)(*arguments)


def test_options_and_switches_of_the_compiler_are_there_to_be_set(monkeypatch):
    from msadapter._functorch import config

    monkeypatch.setattr(config, "activation_memory_budget", 0.5)
    torch._C._dynamo.eval_frame._set_lru_cache(False)
    assert torch._utils._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="Device 'nowhere' does not have a corresponding module"):
        torch._utils._get_device_module("nowhere")


def test_what_programs_import_before_they_need_it_refuses_to_be_used():
    from msadapter.distributed.pipelining import schedules
    from msadapter.distributed.tensor.experimental import _attention

    for call, name in (
        (torch._higher_order_ops.flex_attention, "flex_attention"),
        (torch._higher_order_ops.inductor_compiled_code, "inductor_compiled_code"),
        (schedules._PipelineScheduleRuntime, "_PipelineScheduleRuntime"),
        (_attention._ContextParallel, "_ContextParallel"),
        (_attention._HeadTailLoadBalancer, "_HeadTailLoadBalancer"),
        (_attention._PTRRLoadBalancer, "_PTRRLoadBalancer"),
        (_attention._context_parallel_shard, "_context_parallel_shard"),
        (_attention._enable_context_parallel_dispatcher, "_enable_context_parallel_dispatcher"),
        (_attention._disable_context_parallel_dispatcher, "_disable_context_parallel_dispatcher"),
        (lambda: _attention.set_rotate_method("allgather"), "set_rotate_method"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{name}: .*not supported|{name} is not supported"):
            call()
