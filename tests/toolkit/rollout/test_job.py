"""The port of a cluster that `megatron_ms.rollout.job` starts."""

from __future__ import annotations

from megatron_ms.rollout import job


def test_the_port_is_none_of_rays_own(monkeypatch) -> None:
    """A free port may be one that Ray itself is about to take, and then the cluster does not start."""
    given = iter([52365, 8265, 40001])

    class Socket:
        def __enter__(self):
            return self

        def __exit__(self, *error) -> None: ...

        def bind(self, address) -> None:
            assert address == ("127.0.0.1", 0)

        def getsockname(self):
            return "127.0.0.1", next(given)

    monkeypatch.setattr(job.socket, "socket", Socket)
    assert job._free_port() == 40001
