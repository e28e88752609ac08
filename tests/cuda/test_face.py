"""torch.cuda, torch.npu and torch.accelerator on a machine whose accelerator is the CPU."""

import subprocess
import sys

import pytest

import msadapter as torch


@pytest.fixture
def accelerator(monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    monkeypatch.setenv("MSADAPTER_DEVICE_COUNT", "2")
    yield
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")  # another test may have removed the variable
    torch.cuda.set_device(0)


def test_absent_unless_asked_for(monkeypatch):
    monkeypatch.delenv("MSADAPTER_DEVICE", raising=False)
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.accelerator.current_accelerator() is None
    with pytest.raises(RuntimeError, match="MSADAPTER_DEVICE"):
        torch.cuda.init()


def test_current_device(accelerator):
    assert torch.cuda.device_count() == 2
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:1")
    here = torch.device("cuda", 1)
    assert (
        torch.ones(2, device="cuda").device
        == torch.ones(2).cuda().device
        == torch.ones(2).to("cuda").device
        == here
    )
    assert torch.accelerator.current_device_index() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(2)


def test_memory_follows_tensors(accelerator):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    block = torch.zeros(1 << 18)
    assert torch.cuda.memory_allocated() - before >= 1 << 20
    del block
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before >= 1 << 20
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total


def test_each_device_draws_from_a_stream_of_its_own(accelerator):
    """Ranks that share a layer drop the same activations, although only one of them draws on the CPU, to order the data."""

    def dropped(index: int):
        return torch.nn.functional.dropout(torch.ones(64, device=f"cuda:{index}"), 0.5).tolist()

    torch.manual_seed(7)
    expected = dropped(0)
    state = torch.get_rng_state()
    torch.manual_seed(7)
    torch.rand(5)
    dropped(1)
    assert dropped(0) == expected
    torch.manual_seed(7)
    assert torch.equal(torch.get_rng_state(), state), "what a device draws changes nothing on the CPU"
    torch.cuda.manual_seed(8)
    assert torch.initial_seed() == 7 and torch.cuda.initial_seed() == 8
    assert torch.equal(torch.get_rng_state(), state)
    assert (
        torch.rand(3, device="cuda").tolist()
        == torch.rand(3, generator=torch.Generator().manual_seed(8)).tolist()
    )


def test_a_device_that_is_used_later_has_the_seed(monkeypatch, accelerator):
    from msadapter.cuda import random

    monkeypatch.setattr(random.default_generators, "_made", {})
    drawn = []
    for _ in range(2):
        torch.manual_seed(11)
        drawn.append(torch.rand(3, device="cuda").tolist())
    assert drawn[0] == drawn[1] == torch.rand(3, generator=torch.Generator().manual_seed(11)).tolist()


@pytest.mark.parametrize("asked", ["", "cpu"])
def test_a_device_that_was_not_asked_for_has_no_tensors(monkeypatch, asked):
    monkeypatch.setenv("MSADAPTER_DEVICE", asked)
    x, layer = torch.ones(2), torch.nn.Linear(2, 1)
    for make in (
        lambda: torch.zeros(2, device="cuda"),
        lambda: torch.tensor([1.0], device="cuda:0"),
        lambda: torch.zeros_like(x, device="npu"),
        lambda: torch.asarray([1.0], device="cuda"),
        lambda: x.to("cuda"),
        lambda: x.to(torch.device("npu", 0)),
        lambda: x.cuda(),
        lambda: x.npu(),
        lambda: layer.cuda(),
        lambda: torch.nn.Linear(2, 1, device="cuda"),
        lambda: torch.rand(2, generator=torch.Generator(), device="cuda"),
    ):
        with pytest.raises(
            RuntimeError, match="Found no NVIDIA driver or NPU on your system: set MSADAPTER_DEVICE"
        ):
            make()
    assert torch.device("cuda").type == "cuda" and layer.weight.device.type == "cpu"


def test_a_checkpoint_drops_again_what_it_has_dropped(accelerator):
    import msadapter.utils.checkpoint as checkpoints

    x = torch.ones(256, device="cuda", requires_grad=True)
    for reentrant in (False, True):
        y = checkpoints.checkpoint(
            lambda v: torch.nn.functional.dropout(v, 0.5) * v, x, use_reentrant=reentrant
        )
        torch.rand(3), torch.rand(3, device="cuda")
        (grad,) = torch.autograd.grad(y.sum(), x) if not reentrant else (None,)
        if reentrant:
            y.sum().backward()
            grad = x.grad
        assert torch.equal(grad, 2 * y)


def test_streams_and_events(accelerator):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    sum(range(100000))
    second.record()
    assert first.elapsed_time(second) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.cuda.Event().elapsed_time(second)


def test_random_state_of_a_device(accelerator):
    state = torch.cuda.get_rng_state()
    drawn = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="cuda"), drawn)
    torch.cuda.manual_seed(5)
    assert torch.cuda.initial_seed() == 5


def test_graphs_say_no(accelerator):
    with pytest.raises(NotImplementedError, match="docs/coverage.md"):
        torch.cuda.CUDAGraph()


@pytest.mark.parametrize("name", ["FloatTensor", "LongTensor", "BFloat16Tensor"])
def test_typed_tensors(accelerator, name):
    kind = getattr(torch.cuda, name)
    made = kind([1, 2])
    assert made.device.type == "cuda"
    assert isinstance(made, kind)
    assert not isinstance(made.cpu(), kind)
    sized = kind(size=(2, 3))
    assert sized.shape == (2, 3)
    assert isinstance(sized, kind)
    with pytest.raises(TypeError, match="expected TensorOptions"):
        kind(made.cpu())


def test_name_of_the_device(accelerator, monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE_NAME", "Ascend910B")
    assert torch.npu.get_device_name(0) == torch.cuda.get_device_properties(0).name == "Ascend910B"


def test_saved_on_the_accelerator(accelerator, tmp_path):
    base = torch.ones(3, device="cuda")
    torch.save({"base": base, "view": base[1:]}, tmp_path / "a.pt")
    loaded = torch.load(tmp_path / "a.pt")
    assert str(loaded["view"].device) == "cuda:0"
    loaded["base"][2] = 5
    assert loaded["view"].tolist() == [1.0, 5.0]
    assert torch.load(tmp_path / "a.pt", map_location="cpu")["base"].device.type == "cpu"


def test_loading_without_an_accelerator_says_how(accelerator, tmp_path, monkeypatch):
    torch.save(torch.ones(1, device="cuda"), tmp_path / "a.pt")
    monkeypatch.delenv("MSADAPTER_DEVICE")
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(tmp_path / "a.pt")


def test_import_changes_nothing_else():
    program = "import sys, msadapter; assert 'torch' not in sys.modules; print(msadapter.cuda.is_available())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in __import__("os").environ.items() if k != "MSADAPTER_DEVICE"},
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "asked, kind", [("ascend", "npu"), ("npu:0", "npu"), ("cuda", "cuda"), ("cpu", None)]
)
def test_every_module_names_the_accelerator_alike(monkeypatch, asked, kind):
    from msadapter._host import accelerator
    from msadapter._values import device

    monkeypatch.setenv("MSADAPTER_DEVICE", asked)
    assert accelerator.kind() == kind
    assert device.accelerator() == kind
    assert torch.device(0).type == (kind or "cuda")
