"""torch.cpu. The expected values were read from PyTorch 2.13.0."""

from __future__ import annotations

import pytest

import msadapter as torch


def test_there_is_one_device_and_it_is_ready():
    cpu = torch.cpu
    assert (cpu.device_count(), cpu.is_available(), cpu.is_initialized()) == (1, True, True)
    assert cpu.current_device() == "cpu"
    assert cpu.set_device(3) is None and cpu.synchronize("cpu") is None


def test_a_block_selects_its_stream():
    outside, own, inner = torch.cpu.current_stream(), torch.cpu.Stream(), torch.cpu.Stream(-1)
    with torch.cpu.stream(own) as given:
        assert given is None and torch.cpu.current_stream() is own
        with torch.cpu.stream(inner), torch.cpu.stream(None):
            assert torch.cpu.current_stream() is inner
        assert torch.cpu.current_stream() is own
    assert torch.cpu.current_stream() is outside


def test_the_stream_is_given_back_after_an_error():
    outside = torch.cpu.current_stream()
    with pytest.raises(KeyError), torch.cpu.StreamContext(torch.cpu.Stream()):
        raise KeyError
    assert torch.cpu.current_stream() is outside


def test_work_is_always_done():
    stream, event = torch.cpu.Stream(), torch.cpu.Event()
    assert stream.wait_stream(torch.cpu.Stream()) is None and stream.record_event() is None
    assert event.record() is None and event.query() is True and event.wait() is None
    with pytest.raises(TypeError):
        torch.cpu.Event(enable_timing=True)


@pytest.mark.parametrize(
    ("options", "dtype"),
    [({}, torch.bfloat16), ({"dtype": torch.float16}, torch.float16), ({"enabled": False}, torch.float32)],
)
def test_autocast_of_the_cpu(options, dtype):
    with torch.cpu.amp.autocast(**options):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is dtype
