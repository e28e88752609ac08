"""The device's side of a recording: MindSpore's profiler, where there is an accelerator."""

from __future__ import annotations

from .._host.runtime import device_target

FOLDER = "profile"  # where MindSpore writes when no tensorboard_trace_handler names a folder


def device_recording(activities, folder, *, record_shapes, profile_memory, with_stack, config):
    """A recording of the accelerator to start() and stop(), or None: on a CPU, or when only the CPU was asked for.

    MindSpore's profiler writes the kernels' times and a trace under ``folder`` (MindStudio Insight and TensorBoard read it);
    the host's operators are in the trace that this package writes.
    """
    if device_target() == "CPU" or all(a.name == "CPU" for a in activities):
        return None
    from mindspore import profiler as ms

    return ms.profile(
        activities=[ms.ProfilerActivity.CPU, ms.ProfilerActivity.NPU],
        on_trace_ready=ms.tensorboard_trace_handler(folder or FOLDER),
        start_profile=False,
        record_shapes=record_shapes,
        profile_memory=profile_memory,
        with_stack=with_stack,
        experimental_config=_experimental(ms, config),
    )


def _experimental(ms, config):
    """MindSpore's form of torch_npu's ``_ExperimentalConfig``; its default when the user gave none."""
    if config is None or not hasattr(config, "aic_metrics"):
        return None
    level = "LevelNone" if config.profiler_level.name == "Level_none" else config.profiler_level.name
    return ms._ExperimentalConfig(
        profiler_level=getattr(ms.ProfilerLevel, level),
        aic_metrics=getattr(ms.AicoreMetrics, config.aic_metrics.name),
        l2_cache=config.l2_cache,
        mstx=config.mstx,
        data_simplification=bool(config.data_simplification),
        export_type=[getattr(ms.ExportType, one.name) for one in config.export_type],
    )
