"""Run a Megatron script on real PyTorch without CUDA: python torch_without_cuda.py script.py args...

Megatron Core 0.12.1 asks `torch.cuda.current_device()` for the device of its shared buffer even when the model is on
the CPU. Answering "cpu" is all that it needs; nothing else of PyTorch is touched.
"""

import runpy
import sys

import torch

torch.cuda.current_device = lambda: "cpu"
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
