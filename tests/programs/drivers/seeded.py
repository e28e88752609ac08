"""Runs a script that does not seed its random numbers: `seeded.py [--torchvision] SCRIPT ARGUMENTS`, in the script's own folder."""

import os
import random
import runpy
import sys
from pathlib import Path

import numpy
import torch

if sys.argv[1] == "--torchvision":
    import _vision  # noqa: F401 (the script imports torchvision)

    del sys.argv[1]
random.seed(1)
numpy.random.seed(1)
torch.manual_seed(1)
script = Path(sys.argv[1]).resolve()
sys.argv = [str(script), *sys.argv[2:]]
sys.path[0] = str(script.parent)
os.chdir(script.parent)
runpy.run_path(str(script), run_name="__main__")
