"""Runs train_rl.py of Megatron-LM 0.19.0 and writes down what it computes; nothing of it is changed.

python -m msadapter rl_recorder.py FOLDER train_rl.py [its arguments]

Every rank writes FOLDER/rank0.npz and so on. Before the first update: the weights, the tokens of the answers with the mask of what
was generated and the log probabilities that the inference engine gave them, the same in bins if sequences are packed, and the log
probabilities of the policy and of the reference. Of each computation of the loss: its log probabilities, ratios, and advantages.
"""

import functools
import os
import runpy
import sys

import numpy
from megatron.core.utils import unwrap_model
from megatron.rl import rl_utils

found: dict[str, numpy.ndarray] = {}


def _array(tensor) -> numpy.ndarray:
    return tensor.detach().float().cpu().numpy()


def _keep(name: str, value: numpy.ndarray) -> None:
    """Keep a value under a number of its own: old_0, old_1 and so on."""
    number = sum(key.startswith(f"{name}_") for key in found)
    found[f"{name}_{number}"] = value


def _watch(name: str, look) -> None:
    """Replace a function of rl_utils by one that calls it, and then `look` with its result and its arguments."""
    original = getattr(rl_utils, name)

    @functools.wraps(original)
    def watched(*args, **kwargs):
        result = original(*args, **kwargs)
        look(result, *args, **kwargs)
        return result

    setattr(rl_utils, name, watched)


def _trajectories(result, *args, **kwargs) -> None:
    tokens, generated, engine = result
    width = tokens.shape[1]
    rows = [numpy.pad(_array(one), (0, width - len(one)), constant_values=numpy.nan) for one in engine]
    for name, value in (
        ("tokens", _array(tokens)),
        ("generated", _array(generated)),
        ("engine", numpy.stack(rows)),
    ):
        _keep(name, value)


def _bins(result, *args, **kwargs) -> None:
    info = result.packing_info
    _keep("bins", _array(result.packed_trajs))
    lengths = [[info.seq_lengths[i] for i in indices] for indices in info.bin_seq_indices]
    widest = max(map(len, lengths))
    _keep("lengths", numpy.array([one + [0] * (widest - len(one)) for one in lengths]))


def _logprobs(result, *args, **kwargs) -> None:
    if "logprobs_0" not in found:
        weights = unwrap_model(kwargs["model"]).state_dict()
        found.update({name: _array(value) for name, value in weights.items() if value is not None})
    _keep("logprobs", _array(result))


def _loss(result, *args, **kwargs) -> None:
    loss, kl_term, ratios = result[:3]
    for name, value in (
        ("loss", loss),
        ("kl", kl_term),
        ("ratios", ratios),
        ("advantages", kwargs["advantages"]),
    ):
        _keep(name, _array(value))


def _writing(end):
    """The last call of the program, which ends the process, with the writing before it."""

    def ending() -> None:
        numpy.savez(os.path.join(folder, f"rank{os.environ['RANK']}.npz"), **found)
        end()

    return ending


if __name__ == "__main__":
    folder, sys.argv = sys.argv[1], sys.argv[2:]
    for watched_name, watcher in (
        ("prepare_trajectories", _trajectories),
        ("pack_all_trajectories", _bins),
        ("compute_logprobs_batch", _logprobs),
        ("calculate_grpo_loss", _loss),
    ):
        _watch(watched_name, watcher)
    rl_utils.rl_inference_interface_shutdown = _writing(rl_utils.rl_inference_interface_shutdown)
    runpy.run_path(sys.argv[0], run_name="__main__")
