"""Levels of torch's loggers, compared with PyTorch's."""

from __future__ import annotations

import importlib
import logging
import warnings

NAMES = (
    "torch",
    "torch._dynamo",
    "torch._inductor",
    "json.decoder",
    "torch.distributed",
    "torch.nn.parallel.distributed",
)


def _levels():
    return [[logging.getLogger(n).level, logging.getLogger(n).getEffectiveLevel()] for n in NAMES]


def levels(torch):
    logs = importlib.import_module("torch._logging")
    artifacts = [
        logs.getArtifactLogger("torch._dynamo.x", "graph_code"),
        logs.getArtifactLogger("torch._dynamo.x", "graph_breaks"),
        logs.getArtifactLogger("torch.distributed.y", "ddp_graphs"),
    ]
    found = [_levels(), [a.name for a in artifacts]]
    for settings in (
        {"dynamo": logging.DEBUG, "graph_code": True, "modules": {"json.decoder": logging.INFO}},
        {"all": logging.ERROR, "inductor": logging.INFO},
        {"ddp": logging.DEBUG, "distributed": logging.INFO, "graph_breaks": True, "graph_code": False},
        {},
    ):
        logs.set_logs(**settings)
        found += [_levels(), [[a.level, a.isEnabledFor(logging.DEBUG)] for a in artifacts]]
    return found


def refusals(torch):
    logs = importlib.import_module("torch._logging")
    found = []
    for call in (
        lambda: logs.getArtifactLogger("a", "nope"),
        lambda: logs.set_logs(dynamo=7),
        lambda: logs.set_logs(graph=3),
    ):
        try:
            call()
        except ValueError as error:
            found.append(str(error)[:40])
    return found


def helpers(torch):
    logs = importlib.import_module("torch._logging")
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger = logging.getLogger("of.this.test")
    logger.propagate = False
    logger.addHandler(Keep())
    for _ in range(2):
        logs.warning_once(logger, "once %d", 1)
    logs.warning_once(logger, "once %d", 2)
    text = logs.LazyString(lambda a, b: f"{a}-{b}", 1, b=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with logs.hide_warnings(lambda message, *rest, **options: "quiet" in str(message)):
            warnings.warn("quiet please", stacklevel=1)
            warnings.warn("loud", stacklevel=1)
        warnings.warn("quiet again", stacklevel=1)
    return [records, str(text), [str(w.message) for w in caught]]
