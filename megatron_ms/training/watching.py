"""What the configuration tells the observers of the ranks."""

from __future__ import annotations

from pathlib import Path

from ..monitor.watch import Settings as Watched
from ..recovery import memory
from .settings import Settings


def settings_of(settings: Settings, folder: Path, signs: Path) -> Watched:
    """The settings of the observers. folder: of the run. signs: of the attempt."""
    monitor, health = settings.monitor, settings.health
    return Watched(
        folder=folder,
        signs=signs,
        interval=monitor.interval,
        parameters=tuple(monitor.parameters),
        weights=monitor.weights,
        optimizer=monitor.optimizer,
        peak_tflops=monitor.peak_tflops,
        prometheus=monitor.prometheus,
        tensorboard=monitor.tensorboard,
        straggler=monitor.straggler,
        skip_norm=health.skip_norm,
        skip_limit=health.skip_limit,
        window=health.window,
        spike=health.spike,
        trace=health.trace,
        memory=None
        if settings.recovery.memory is None
        else str(memory.place_for(folder, settings.run.node_rank)),
        memory_interval=settings.recovery.memory or 1,
        safetensors=settings.save.format == "safetensors",
    )
