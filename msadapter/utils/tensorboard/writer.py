"""SummaryWriter, which uses tensorboard's own event file writer and protocol buffers."""

from __future__ import annotations

import io
import os
import socket
import time
from datetime import datetime

import numpy
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ..._errors import unsupported


class FileWriter:
    """Writes protocol buffers to one event file in log_dir."""

    def __init__(
        self, log_dir, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step=None, walltime: float | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Summary, global_step=None, walltime: float | None = None) -> None:
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()

    def reopen(self) -> None:
        self.event_writer.reopen()


class SummaryWriter:
    """Writes scalars, texts, histograms, images (as PNG or arrays) and hyper-parameters for TensorBoard.

    Args:
        log_dir: folder of the event file, by default runs/<date>_<host><comment>.
        comment: end of the name of the default folder.
        purge_step: TensorBoard ignores what an earlier, interrupted run wrote from this step on.
        max_queue: the maximum number of events that are held back before they are written.
        flush_secs: the maximum number of seconds that they are held back.
    """

    def __init__(
        self,
        log_dir=None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            moment = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._get_file_writer()

    def get_logdir(self) -> str:
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number, or a tensor or array of one element.

        With new_style it is written as a tensor summary, which TensorBoard shows faster, and with double_precision in 64 bits.
        """
        self._get_file_writer().add_summary(
            _scalar(tag, scalar_value, new_style, double_precision), global_step, walltime
        )

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict, global_step=None, walltime: float | None = None
    ) -> None:
        """Write several curves for one chart. Each has an event file of its own below the log folder."""
        moment = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag}_{tag}".replace("/", "_"))
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(
                    folder, self.max_queue, self.flush_secs, self.filename_suffix
                )
            self.all_writers[folder].add_summary(_scalar(main_tag, value), global_step, moment)

    def add_text(self, tag: str, text_string: str, global_step=None, walltime: float | None = None) -> None:
        """Write a text in Markdown."""
        plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[str(text_string).encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        value = Summary.Value(tag=f"{tag}/text_summary", metadata=plugin, tensor=tensor)
        self._get_file_writer().add_summary(Summary(value=[value]), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values,
        global_step=None,
        bins: str = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write the distribution of values. bins: tensorflow, auto, fd, ... or edges in the form of numpy.histogram."""
        array = _array(values).astype(numpy.float64).reshape(-1)
        if array.size == 0:
            raise ValueError("The input has no element.")
        edges = _exponential_edges() if isinstance(bins, str) and bins == "tensorflow" else bins
        counts, limits = numpy.histogram(array, bins=edges)
        if max_bins is not None and len(counts) > max_bins:
            step = -(-len(counts) // max_bins)
            counts = numpy.add.reduceat(counts, range(0, len(counts), step))
            limits = numpy.append(limits[:-1:step], limits[-1])
        filled = numpy.flatnonzero(counts)
        first, last = filled[0], filled[-1] + 1
        # TensorBoard reads each limit as the right end of its bucket: an empty one in front gives the left end.
        histogram = HistogramProto(
            min=array.min(),
            max=array.max(),
            num=array.size,
            sum=array.sum(),
            sum_squares=array.dot(array),
            bucket_limit=limits[first : last + 1].tolist(),
            bucket=[0.0, *counts[first:last].astype(float).tolist()],
        )
        self._get_file_writer().add_summary(
            Summary(value=[Summary.Value(tag=tag, histo=histogram)]), global_step, walltime
        )

    def add_hparams(
        self,
        hparam_dict: dict,
        metric_dict: dict,
        hparam_domain_discrete=None,
        run_name=None,
        global_step=None,
    ) -> None:
        raise unsupported("torch.utils.tensorboard.SummaryWriter.add_hparams", "this is not supported")

    def add_custom_scalars(self, layout: dict) -> None:
        raise unsupported("torch.utils.tensorboard.SummaryWriter.add_custom_scalars", "this is not supported")

    def add_image(
        self, tag: str, img_tensor, global_step=None, walltime: float | None = None, dataformats: str = "CHW"
    ) -> None:
        """Write an image of integers from 0 to 255 or floats from 0 to 1. dataformats names its axes (CHW, HWC or HW)."""
        self._get_file_writer().add_summary(
            _image(tag, _array(img_tensor), dataformats), global_step, walltime
        )

    def add_figure(
        self, tag: str, figure, global_step=None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a matplotlib figure as an image."""
        # optional package
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self.add_image(
            tag, numpy.asarray(canvas.buffer_rgba())[..., :3], global_step, walltime, dataformats="HWC"
        )
        if close:
            pyplot.close(figure)

    def flush(self) -> None:
        """Write all events to the files."""
        for writer in self._writers():
            writer.flush()

    def close(self) -> None:
        """Close the event files. A later add_... opens new ones."""
        for writer in self._writers():
            writer.flush()
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _writers(self) -> list[FileWriter]:
        return [writer for writer in (self.file_writer, *self.all_writers.values()) if writer is not None]

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            if self.purge_step is not None:
                start = Event(file_version="brain.Event:2")
                self.file_writer.add_event(start, self.purge_step)
                self.file_writer.add_event(
                    Event(session_log=SessionLog(status=SessionLog.START)), self.purge_step
                )
                self.purge_step = None
        return self.file_writer


def _array(value) -> numpy.ndarray:
    """Return a numpy array of a tensor, an array, a list or a number."""
    return value.detach().float().cpu().numpy() if hasattr(value, "detach") else numpy.asarray(value)


def _scalar(tag: str, value, new_style: bool = False, double_precision: bool = False) -> Summary:
    number = _array(value)
    if number.size != 1:
        raise AssertionError("scalar should be 0D")
    number = float(number.reshape(()))
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=number)])
    tensor = (
        TensorProto(double_val=[number], dtype="DT_DOUBLE")
        if double_precision
        else TensorProto(float_val=[number], dtype="DT_FLOAT")
    )
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def _image(tag: str, array: numpy.ndarray, dataformats: str) -> Summary:
    from PIL import Image  # optional package

    axes = dataformats.upper()
    if sorted(axes) not in (["C", "H", "W"], ["H", "W"]) or len(axes) != array.ndim:
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, "
            f"input_format: {dataformats}"
        )
    array = array[..., None] if "C" not in axes else array.transpose([axes.index(axis) for axis in "HWC"])
    if array.dtype != numpy.uint8:
        array = numpy.clip(array.astype(numpy.float32) * 255.0, 0, 255).astype(numpy.uint8)
    height, width, channels = array.shape
    picture = io.BytesIO()
    Image.fromarray(array[..., 0] if channels == 1 else array).save(picture, format="PNG")
    image = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=picture.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=image)])


def _exponential_edges() -> list[float]:
    """Return edges whose magnitudes grow by 10 % from 1e-12 to 1e20, on both sides of zero."""
    edges = [1e-12]
    while edges[-1] < 1e20:
        edges.append(edges[-1] * 1.1)
    return [-edge for edge in reversed(edges)] + [0.0] + edges
