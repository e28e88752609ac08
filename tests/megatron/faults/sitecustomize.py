"""Injects a fault into a rank. Python imports this module at its start, because its folder is on PYTHONPATH.

FAULT is a JSON object: rank (or a list of them), iteration, place (a key of PLACES, or a list of them), what (a function of this
module, or of inside.py), times, marks (a folder in which each fault leaves a file, so that a later attempt has it no more).
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
from pathlib import Path

PLACES = {
    "forward": (
        "megatron/core/distributed/data_parallel_base.py",
        "megatron.core.distributed.data_parallel_base",
        "_BaseDataParallel.forward",
    ),
    "layer": (
        "megatron/core/tensor_parallel/layers.py",
        "megatron.core.tensor_parallel.layers",
        "ColumnParallelLinear.forward",
    ),
    "all-reduce": (
        "megatron/core/distributed/distributed_data_parallel.py",
        "megatron.core.distributed.distributed_data_parallel",
        "DistributedDataParallel.finish_grad_sync",
    ),
    "optimizer": (
        "megatron/core/optimizer/optimizer.py",
        "megatron.core.optimizer.optimizer",
        "ChainedOptimizer.step_with_ready_grads",
    ),
    "log": ("megatron/training/utils.py", "megatron.training.utils", "print_rank_last"),
    "save": ("megatron/training/checkpointing.py", "megatron.training.checkpointing", "generate_state_dict"),
}


def kill(original, *arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(original, *arguments, **named):
    """The work is done on this rank alone."""
    original(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_backward(original, *arguments, **named):
    """The rank is killed when a gradient comes back to the layer."""
    result = original(*arguments, **named)
    result[0].register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))
    return result


def stop(original, *arguments, **named):
    os.kill(os.getpid(), signal.SIGSTOP)
    return original(*arguments, **named)


def terminate(original, *arguments, **named):
    """SIGTERM to the toolkit, whose launcher is this rank's parent."""
    return _ask(signal.SIGTERM, original, *arguments, **named)


def user_signal(original, *arguments, **named):
    return _ask(signal.SIGUSR1, original, *arguments, **named)


def _ask(number, original, *arguments, **named):
    status = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(status.rpartition(")")[2].split()[1]), number)
    return original(*arguments, **named)


def terminate_rank(original, *arguments, **named):
    """SIGTERM to this rank alone."""
    os.kill(os.getpid(), signal.SIGTERM)
    return original(*arguments, **named)


def error(original, *arguments, **named):
    raise RuntimeError("the device was lost")


def memory_lost(original, *arguments, **named):
    """The device's memory has uncorrectable errors: parameters and the optimizer's state are lost."""
    import gc

    import torch

    torch.npu.check_uce_in_memory = lambda device: 3
    with torch.no_grad():
        for optimizer in (one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.fill_(float("nan"))
                    for value in optimizer.state[parameter].values():
                        value.fill_(float("nan"))
        for parameter in arguments[0].parameters():
            parameter.fill_(float("nan"))
    raise RuntimeError("UCE ERROR: the device reports uncorrectable errors")


def link_lost(original, *arguments, **named):
    raise RuntimeError("HCCL OP RETRY FAILED: a link was down")


def wrong_numbers(original, *arguments, **named):
    """A check of the numbers has failed. With `load` it says to which checkpoint the training has to go back."""
    wanted = f": load ckpt step={_fault['load']}" if "load" in _fault else ""
    raise RuntimeError(f"PRECISION ERROR{wanted}")


def nan(original, *arguments, **named):
    result = original(*arguments, **named)
    return (result[0] * float("nan"), *result[1:])


def nan_gradient(original, *arguments, **named):
    """The output of the layer is right, and the gradient that comes back to it has NaN."""
    result = original(*arguments, **named)
    result[0].register_hook(lambda gradient: gradient * float("nan"))
    return result


def nan_weight(original, module, *arguments, **named):
    """One number of one weight is NaN."""
    weights = dict(module.named_parameters())
    name = next(one for one in weights if one.endswith(_fault["weight"]))
    weights[name].data.view(-1)[5] = float("nan")
    return original(module, *arguments, **named)


def large(original, module, *arguments, **named):
    """The gradients of this rank are a million times too large before they are reduced."""
    for parameter in module.module.parameters():
        parameter.main_grad.mul_(1e6)
    return original(module, *arguments, **named)


def cut(original, *arguments, **named):
    """The kernel kills this rank when a file that it writes has so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_fault["bytes"], _fault["bytes"]))
    return original(*arguments, **named)


def full(original, *arguments, **named):
    """Files cannot grow over so many bytes; the program gets the error EFBIG."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (_fault["bytes"], _fault["bytes"]))
    return original(*arguments, **named)


def fill(original, *arguments, **named):
    """All that is left of a file system is used up."""
    with open(Path(_fault["disk"]) / "filling", "ab", buffering=0) as opened:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while opened.write(bytes(size)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return original(*arguments, **named)


def _due() -> bool:
    """True if this call has the fault: the right iteration, and not yet so many times."""
    from megatron.training import get_args

    number = getattr(get_args(), "curr_iteration", -1) + 1  # 0 before the first step
    first = _fault["iteration"]
    if not first <= number < first + _fault.get("steps", 1):
        return False
    name = f"{os.environ['RANK']}-{number}"
    folder = Path(_fault["marks"])
    made = len(list(folder.glob(f"{name}-*")))
    if made >= _fault.get("times", 1):
        return False
    (folder / f"{name}-{made}").touch()
    return True


def _around(original):
    import functools

    import inside

    what = globals().get(_fault["what"]) or getattr(inside, _fault["what"])

    @functools.wraps(original)
    def around(*arguments, **named):
        if _due():
            return what(original, *arguments, **named)
        return original(*arguments, **named)

    return around


def _install() -> None:
    from patches.rules import fingerprint, source_of
    from patches.runtime import RuntimePatch, install_patches

    places = _fault["place"]
    for place in places if isinstance(places, list) else [places]:
        file, module, symbol = PLACES[place]
        source = source_of(symbol, (Path(_fault["tree"]) / file).read_text(), file)
        told = ("a fault for a test", "temporary", _around, (fingerprint(source),))
        install_patches([RuntimePatch(f"fault-{symbol}", module, symbol, *told)])


_fault = json.loads(os.environ.get("FAULT", "{}"))
_ranks = _fault.get("rank", [])
_mine = os.environ.get("RANK") in [str(one) for one in (_ranks if isinstance(_ranks, list) else [_ranks])]
if _mine and sys.argv[0:1] != ["-c"]:
    _install()
