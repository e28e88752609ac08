"""What runs in this process: the processor, and the store if this process serves it."""

from dataclasses import dataclass

from .board import Board
from .processor import Processor


@dataclass
class Running:
    """processor: of this rank, None before tft_init_processor. framework: MindSpeed or MindSpeed-LLM, "" if none was named."""

    processor: Processor | None = None
    server: Board | None = None
    framework: str = ""

    def required(self) -> Processor:
        """The processor. RuntimeError before tft_init_processor."""
        if self.processor is None:
            raise RuntimeError("mindio_ttp: tft_init_processor was not called")
        return self.processor


running = Running()
