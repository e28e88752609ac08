"""Grad modes belong to a thread, as in PyTorch."""

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
    """Also where a later operation walks over the same nodes; nothing is marked after the block."""
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
