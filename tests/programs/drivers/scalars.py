"""Runs a script and prints what it writes to TensorBoard: `scalars.py SCRIPT ARGUMENTS`, with the working folder on its path."""

import os
import runpy
import sys
from pathlib import Path

from torch.utils import tensorboard


class Printing(tensorboard.SummaryWriter):
    def add_scalar(self, tag, scalar_value, global_step=None, *args, **kwargs):
        print(f"{tag} {global_step}: {float(scalar_value):.7g}", flush=True)


tensorboard.SummaryWriter = Printing
script = Path(sys.argv[1]).resolve()
sys.argv = [str(script), *sys.argv[2:]]
sys.path[:1] = [str(script.parent), os.getcwd()]
runpy.run_path(str(script), run_name="__main__")
