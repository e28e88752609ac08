"""Grad modes belong to a thread, as in PyTorch."""

import sys
import threading

import pytest

import msadapter as torch
from msadapter.overrides import _modes


def _in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_inference_mode_is_of_one_thread():
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        assert not _in_another_thread(torch.is_inference_mode_enabled)


def test_a_thread_in_inference_mode_leaves_the_others_alone():
    inside, done = threading.Event(), threading.Event()

    def other():
        with torch.inference_mode():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    here = torch.is_inference_mode_enabled()
    done.set()
    thread.join()
    assert not here


def test_detection_marks_every_node_once():
    """A node that several operations reach is marked once. Nothing is marked after the block."""
    from msadapter.autograd.anomaly_mode import _Checker

    def marks(node):
        return sum(isinstance(hook, _Checker) for hook in node._hooks("post").values())

    with pytest.warns(UserWarning, match="Anomaly"):
        detection = torch.autograd.detect_anomaly()
    before = list(_modes())
    with detection:
        x = torch.ones(2, requires_grad=True)
        first = x * 2
        second = first.exp()
        third = second.sin() + first
    later = third * 2
    assert _modes() == before
    assert [marks(t.grad_fn) for t in (first, second, third, later)] == [1, 1, 1, 0]


def test_the_vectors_of_products_need_no_gradient_of_their_own():
    """If the vector does not require grad, neither does the product."""
    v = torch.tensor([1.0, 2.0])
    _, product = torch.autograd.functional.vjp(lambda u: u * 2, torch.ones(2), v, create_graph=True)
    assert not product.requires_grad and not v.requires_grad


def _three_times(backward=1.0, jvp=1.0):
    """A Function that multiplies by 3, whose gradient and tangent are wrong by these factors."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * backward

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 3 * jvp

    return Scaled


@pytest.mark.parametrize(
    "factor, agrees", [(1.05, True), (0.95, True), (1.3, False), (1 / 1.25, True), (1.25, False)]
)
def test_gradients_are_compared_relative_to_the_numerical_ones(factor, agrees):
    """With rtol = 0.22, an analytical gradient of 1 / 1.25 of the numerical one passes, and one of 1.25 times it does not."""
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.gradcheck(
        _three_times(backward=factor).apply, (x,), atol=0.0, rtol=0.22, raise_exception=False
    )
    assert found is agrees


@pytest.mark.parametrize(
    "factor, agrees", [(1.05, True), (0.95, True), (1.3, False), (1 / 1.25, True), (1.25, False)]
)
@pytest.mark.parametrize("fast", [False, True])
def test_tangents_are_compared_relative_to_the_numerical_ones(factor, agrees, fast):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    options = {
        "check_forward_ad": True,
        "atol": 0.0,
        "rtol": 0.22,
        "raise_exception": False,
        "fast_mode": fast,
    }
    assert torch.autograd.gradcheck(_three_times(jvp=factor).apply, (x,), **options) is (
        agrees if factor > 1 else factor >= 0.78
    )


@pytest.mark.parametrize("wrong", ["backward", "jvp"])
@pytest.mark.parametrize("atol, agrees", [(0.2, False), (0.28, False), (0.32, True), (0.5, True)])
def test_derivatives_are_compared_absolutely(wrong, atol, agrees):
    """One element at a time: 3.3 in place of 3 is 0.3 off, whatever the direction's size."""
    x = torch.tensor([1.0, 5.0], dtype=torch.float64, requires_grad=True)
    options = {"check_forward_ad": True, "rtol": 0.0, "raise_exception": False}
    found = torch.autograd.gradcheck(_three_times(**{wrong: 1.1}).apply, (x,), atol=atol, **options)
    assert found is agrees


@pytest.mark.parametrize(
    "factor, agrees", [(1.05, True), (0.95, True), (1.3, False), (1.25, True), (1 / 1.25, False)]
)
def test_batched_gradients_are_compared_relative_to_them(monkeypatch, factor, agrees):
    """Each of two drawn vectors is compared, and the batched gradient is the one that the tolerance refers to."""
    gradcheck = sys.modules["msadapter.autograd.gradcheck"]
    plain, rows = gradcheck.grad, []

    def scaled(*args, is_grads_batched=False, **options):
        found = plain(*args, is_grads_batched=is_grads_batched, **options)
        if is_grads_batched:
            rows.extend(len(g) for g in found)
            found = tuple(torch.cat([g[:-1], g[-1:] * factor]) for g in found)
        return found

    monkeypatch.setattr(gradcheck, "grad", scaled)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    options = {"atol": 0.0, "rtol": 0.22, "raise_exception": False}
    assert torch.autograd.gradcheck(lambda v: v * 3, (x,), check_batched_grad=True, **options) is agrees
    assert rows == [2]


def test_how_deep_passes_are_nested():
    """The counter of operations counts those of a pass apart from those of the program."""
    from msadapter.autograd import _pass

    seen = []
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    inner = (y * 2).sum()
    inner.register_hook(lambda _: seen.append(_pass.depth))
    outer = (x * 2).sum()

    def nested(_):
        seen.append(_pass.depth)
        inner.backward()
        seen.append(_pass.depth)

    outer.register_hook(nested)
    assert _pass.depth == 0
    outer.backward()
    assert seen == [1, 2, 1] and _pass.depth == 0
    failing = (x * 1).sum()
    failing.register_hook(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.backward()
    assert _pass.depth == 0


def test_older_profiler_groups_by_shape():
    with torch.autograd.profiler.profile(record_shapes=True) as seen:
        torch.ones(2, 3) + 1
        torch.ones(4) + 1
    plain = {e.key: e.count for e in seen.key_averages()}
    shaped = [e for e in seen.key_averages(group_by_input_shape=True) if e.key == "aten::add"]
    assert plain["aten::add"] == 2 and len(shaped) == 2


def test_older_profiler_writes_files(tmp_path):
    """What it writes is what torch.profiler writes, and the metric may be given by place or by name."""
    with torch.autograd.profiler.profile(with_stack=True) as seen:
        torch.ones(2, 3).add(1)
    seen.export_chrome_trace(str(tmp_path / "trace.json"))
    assert "aten::add" in (tmp_path / "trace.json").read_text()
    seen.export_stacks(str(tmp_path / "stacks.txt"))
    seen.export_stacks(str(tmp_path / "again.txt"), "self_cpu_time_total")
    seen.export_stacks(path=str(tmp_path / "named.txt"), metric="self_cpu_time_total")
    texts = {(tmp_path / name).read_text() for name in ("stacks.txt", "again.txt", "named.txt")}
    assert len(texts) == 1 and "test_older_profiler_writes_files" in texts.pop()
    with pytest.raises(ValueError, match="metric"):
        seen.export_stacks(str(tmp_path / "none.txt"), "colour")


def test_modes_leave_nothing_behind(monkeypatch):
    """After a mode, operators run without asking for one, also if it was left by an error or while another was on."""
    from msadapter import _C, overrides
    from msadapter.utils._python_dispatch import TorchDispatchMode

    asked = []

    def count(function, args, kwargs):
        asked.append(function.__name__)
        return overrides.dispatch(function, args, kwargs)

    class Functions(overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def detection():
        return torch.autograd.set_detect_anomaly(True)

    x = torch.ones(2, requires_grad=True)
    _C.set_torch_function_handler(count)
    try:
        for one in (Functions, Operators, detection):
            for other in (Functions, Operators, detection):
                with one(), other():
                    asked.clear()
                    x * 2
                    assert asked, one
                asked.clear()
                x * 2
                with pytest.raises(ZeroDivisionError), one(), other():
                    x * (1 / 0)
                x * 2
                assert not asked, (one, other)
        with Functions():
            torch.autograd.set_detect_anomaly(True)
            torch.autograd.set_detect_anomaly(False)
            torch.autograd.set_detect_anomaly(False)
        x * 2
        assert not torch.is_anomaly_enabled()
        asked.clear()
        x * 2
        assert not asked
    finally:
        _C.set_torch_function_handler(overrides.dispatch)


def test_fast_checks_of_tangents_call_the_function_as_often_for_every_size():
    def calls(size, fast):
        made = []
        x = torch.ones(size, dtype=torch.float64, requires_grad=True)
        options = {"check_forward_ad": True, "fast_mode": fast, "check_undefined_grad": False}
        assert torch.autograd.gradcheck(lambda v: made.append(0) or v * 2, (x,), **options)
        return len(made)

    assert calls(2, True) == calls(7, True)
    assert calls(7, False) - calls(2, False) >= 3 * 5  # two values and a tangent for every element


def test_the_stack_of_a_node_ends_where_the_program_calls():
    """The frames that run an operator or a Function are not part of the stack that detection keeps."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        made = [x * 2, x[0], torch.nn.functional.softplus(x), Double.apply(x), x.sum()]
    for y in made:
        assert "made = [x * 2" in y.grad_fn.metadata["traceback_"][-1], y.grad_fn
