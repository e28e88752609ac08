"""Grad modes belong to a thread, as in PyTorch."""

import threading

import msadapter as torch


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
