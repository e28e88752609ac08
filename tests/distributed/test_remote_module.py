"""Modules on other workers: each check of jobs/remote_module.py on three workers, and the names of devices there."""

import pytest

import msadapter as torch
from msadapter.distributed import _remote_device
from msadapter.distributed.nn import RemoteModule
from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("remote_module.py")
MALFORMED = r"Could not parse remote_device: {}\. The valid format is"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcomes")
    return outcomes_of("remote_module.py", 3, folder, MSADAPTER_DEVICE="cuda")


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


@pytest.mark.parametrize(
    ("text", "worker", "rank", "device", "shown"),
    [
        ("ps", "ps", None, "cpu", "ps/cpu"),
        ("ps/cuda:1", "ps", None, "cuda:1", "ps/cuda:1"),
        ("rank:3", None, 3, "cpu", "rank:3/cpu"),
        ("rank:0/meta", None, 0, "meta", "rank:0/meta"),
        ("cuda:1", None, None, "cuda:1", "cuda:1"),
        (torch.device("cpu"), None, None, "cpu", "cpu"),
    ],
)
def test_devices_of_workers(text, worker, rank, device, shown):
    place = _remote_device(text)
    assert (place.worker_name(), place.rank(), place.device()) == (worker, rank, torch.device(device))
    assert repr(place) == shown and place == _remote_device(shown) != _remote_device("other/cpu")
    assert hash(place) == hash(_remote_device(shown)) and place != shown


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        *((text, ValueError, MALFORMED.format(text)) for text in ("a/b/c", "/", "/cpu", "", "foo:1/cpu")),
        *((text, ValueError, MALFORMED.format(text)) for text in ("rank:x", "rank:-1", "rank:/cpu", "a:b:c")),
        ("ps/", RuntimeError, "Device string must not be empty"),
        ("ps/foo", RuntimeError, "device type at start of device string: foo"),
        ("ps/cpu2", RuntimeError, "Invalid device string: 'cpu2'"),
        (5, TypeError, "Invalid type for remote_device: <class 'int'>"),
        (None, TypeError, "Invalid type for remote_device: <class 'NoneType'>"),
    ],
)
def test_wrong_devices_of_workers(text, error, match):
    with pytest.raises(error, match=match):
        _remote_device(text)


def test_it_needs_remote_calls():
    with pytest.raises(AssertionError, match=r"RemoteModule only works in RPC\."):
        RemoteModule("worker0", torch.nn.Linear, (1, 1))
