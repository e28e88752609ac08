"""Where measurements go: a file of JSON lines, TensorBoard, and Prometheus on a loopback port. Only rank 0 writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import events

MEASURED = "monitor.jsonl"
LOGGED = "losses.jsonl"  # the numbers of upstream's log, which the launcher reads from the last rank
HOST = "127.0.0.1"


def logged(
    iteration: int, iterations: int, losses: Mapping[str, float], rate: float | None, norm: float | None
) -> dict[str, Any]:
    """The numbers of a step with upstream's names and as many digits as its log has, for a step of which it has no line."""
    found: dict[str, Any] = {"iteration": iteration, "of": iterations}
    found |= {} if rate is None else {"learning rate": float(f"{rate:.6E}")}
    found |= {name: float(f"{loss:.6E}") for name, loss in losses.items()}
    return found if norm is None else found | {"grad norm": float(f"{norm:.3f}")}


class Lines:
    """A line of JSON for each measured step."""

    def __init__(self, folder: Path) -> None:
        self._file = open(folder / MEASURED, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  open as long as the run

    def write(self, record: Mapping[str, Any]) -> None:
        self._file.write(events.line_of(record))


class Board:
    """TensorBoard's events, beside those of upstream."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard" / "monitor"))

    def write(self, record: Mapping[str, Any]) -> None:
        for name, rank, value in scalars(record):
            tag = name if rank is None else f"{name}/rank {rank}"
            self._writer.add_scalar(tag, value, record["iteration"])
        self._writer.flush()


class Metrics:
    """Prometheus metrics, served by prometheus_client on the loopback address."""

    def __init__(self, port: int) -> None:
        import prometheus_client

        self._registry = prometheus_client.CollectorRegistry()
        self._gauge = prometheus_client.Gauge
        self._known: dict[str, Any] = {}
        self._server, _ = prometheus_client.start_http_server(port, HOST, self._registry)
        self.address, self.port = self._server.server_address[:2]

    def write(self, record: Mapping[str, Any]) -> None:
        for name, rank, value in scalars(record):
            tag, *path = name.split("/", 1)
            labels = dict(zip(("parameter",), path, strict=False))
            labels |= {} if rank is None else {"rank": rank}
            gauge = self._named(tag, sorted(labels))
            (gauge.labels(**labels) if labels else gauge).set(value)

    def _named(self, tag: str, labels: list[str]) -> Any:
        word = "training_" + "".join(c if c.isalnum() else "_" for c in tag.lower())
        if labels:
            word += "_of_" + "_and_".join(labels)
        if word not in self._known:
            self._known[word] = self._gauge(word, tag, labels, registry=self._registry)
        return self._known[word]


def scalars(record: Mapping[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """The numbers of a record: name, rank (None for those of the whole run), value. A name may be KIND/PARAMETER."""
    for name, value in record.items():
        if name == "ranks":
            for rank, own in enumerate(value):
                for key, number in _flat(own):
                    yield key, str(rank), number
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, None, float(value)


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}/{key}", float(number)) for key, number in value.items())
        elif value is not None:
            yield name, float(value)
