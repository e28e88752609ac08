"""Runs torchrun by the path of this file, without importing the framework, which saves a second and memory.

python msadapter/distributed/_torchrun.py --nproc-per-node 2 script.py
python msadapter/distributed/_torchrun.py --as-msrun --worker_num 2 --local_worker_num 2 script.py
"""

import sys
import types
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    # The modules of this folder must not be importable as top-level modules. Under PYTHONSAFEPATH, Python has not added it.
    sys.path[:] = [place for place in sys.path if place != str(here)]
    for name, path in (("msadapter", here.parent), ("msadapter.distributed", here)):
        # placeholder packages, so that the real __init__ files do not run
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    if sys.argv[1:2] == ["--as-msrun"]:
        del sys.argv[1]
        from msadapter.distributed.msrun import main
    else:
        from msadapter.distributed.run import main

    main()
