"""The part of a recording that runs on the device: MindSpore's profiler, if there is an accelerator."""

from __future__ import annotations

from .._host.runtime import device_target

FOLDER = "profile"  # the folder for MindSpore's output if no tensorboard_trace_handler names one


def device_recording(activities, folder, *, record_shapes, profile_memory, with_stack, config):
    """A recording of the accelerator with start() and stop(); None on a CPU, or if only CPU activities were requested.

    MindSpore's profiler writes the kernels' times and a trace to ``folder``, which MindStudio Insight and TensorBoard read.
    The host's operators are in the trace that this package writes.
    """
    if device_target() == "CPU" or all(a.name == "CPU" for a in activities):
        return None
    from mindspore import profiler as ms  # late: MindSpore's package is loaded with an accelerator only

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
    """Converts torch_npu's ``_ExperimentalConfig`` to MindSpore's. Without one, MindSpore's default is used."""
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
