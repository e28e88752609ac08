"""mindio_ttp: the recovery functions that MindSpeed calls with --enable-high-availability, over the job's store.

Each rank has a processor, a thread that obeys orders and gives signs of life (processor.py). One rank's controller decides what
happens after a failure (controller.py): the ranks that are left write a last checkpoint, or all ranks repair themselves and train
on. What is asked of whom is computed in plan.py. docs/toolkit_recovery.md says what is supported.
"""

from . import controller_ttp, framework_ttp, utils

__all__ = ["controller_ttp", "framework_ttp", "utils"]
