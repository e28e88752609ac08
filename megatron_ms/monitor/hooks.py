"""The places at which upstream is observed: functions that are wrapped when their modules are imported.

Upstream's files stay as they are. Each wrapper calls the original with its own arguments. The source of each function is compared
with the fingerprints of the versions that this was written for; for another source the import fails with a message.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from patches.runtime import RuntimePatch, install_patches

if TYPE_CHECKING:
    from .watch import Watch

_ADVICE = "for a version of upstream with another source, monitor.watch: false trains without monitoring and manifests"
# module, function, method of Watch, why, sha256 of the source in core_v0.12.1, core_v0.16.1 and core_v0.19.0, or in MindSpeed-LLM
# 2.3.0 and in 26.1.0 (one, if it is the same in both or in 26.1.0 alone)
PLACES = (
    (
        "megatron.training.training",
        "train_step",
        "step",
        "measures a step, and sees its failure",
        "2b448506d1f1f9db883a8e05b4322a341f3a30bed7e3265a451732881311f444",
        "699a199151a4c4c31eebac9ccb9f85e1fe3291bd43253ad8242cca838471173d",
        "1823abf71532698ff8371a7d50554ba41e384c352a26d07b8f153d01cb5e05cd",
    ),
    (
        "megatron.training.checkpointing",
        "save_checkpoint",
        "save",
        "writes the manifest of a checkpoint after its files",
        "a3a07bb1e38d19dab2c418a8cccf3ed4843e0de2c5214dc19e1dff70ee2cdaaf",
        "8b71b86ba46ac674e58b91d34f4e9148be98b29c7bba90bec9a88e4a0c1db7c5",
        "42e813b3aa30a4bbdcabca82fdf1d129793ac97044b3423f75672a042940ce1e",
    ),
    (
        "megatron.training.checkpointing",
        "load_checkpoint",
        "load",
        "chooses the newest checkpoint that is whole and healthy",
        "71a3e073ed8f41573958f4e777447d50ba12aeeb1777cd401d3a0f01a160421f",
        "0550b1612ce4d2a285027d4ee5ce9ed1680e291429b36ffc716dfaef86b1b5ef",
        "ee0f61114e6ff1793d96c7604d5478eb1a636ee1a0c3a9b7c6b32f120dddb870",
    ),
    (
        "megatron.training.checkpointing",
        "read_metadata",
        "metadata",
        "names the chosen checkpoint instead of the last one",
        "c4fd325e682e0c752dbb9baf8a73e1cfc42f8d112bb1d3528fae023240e7f3a6",
        "b1232181e7d7a73bceec47e3196c9530d7f11a9eaae5dd7e398e26c0413285d5",
        "436e8b36f0bf748ad898a8e57b949e530fe9659fadb3cccbc7c18ff3c4380514",
    ),
    (
        "mindspeed_llm.training.checkpointing",
        "save_checkpoint_wrapper",
        "save",
        "writes the manifest of a checkpoint that MindSpeed-LLM's own save_checkpoint has written",
        "bd792dd7858199c4fd64022da61d8dead72744d8cec8da2abae0e0b90db8a354",
        "9365338558412ba46e3f2ed327617411f7a0dfd9cb4b915d3e691461bc280cf3",
    ),
    (
        "mindspeed.core.pipeline_parallel.dualpipev.dualpipev_chunks",
        "train_step",
        "step",
        "measures a step of DualPipeV, which replaces Megatron's train_step",
        "8a6fde02522b02d500afbd2f5e9fb0a986d84597f1b50580b9f4327ec584bfcb",
    ),
    (
        "mindspeed_llm.core.layerwise_disaggregated_training.training",
        "train_step",
        "step",
        "measures a step of a model that is divided by layers, which replaces Megatron's train_step",
        "af7949f014e45c8d1e1b79deb08a1d274de4d700ce960f96be480e6b8fa8bc23",
    ),
)


def install(watch: Watch) -> None:
    """Arranges that the functions are wrapped with the methods of `watch`. Called before upstream is imported."""
    install_patches(
        RuntimePatch(
            id=f"watch-{module}-{name}",
            module=module,
            attribute=name,
            reason=f"{why}; upstream has no extension point there; {_ADVICE}",
            reason_class="environment",
            replacement=functools.partial(
                _wrapped_result if name.endswith("_wrapper") else _wrapped, getattr(watch, method)
            ),
            fingerprints=tuple(fingerprints),
        )
        for module, name, method, why, *fingerprints in PLACES
    )


def _wrapped(method: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def around(*arguments: Any, **named: Any) -> Any:
        return method(original, *arguments, **named)

    return around


def _wrapped_result(method: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """For a function that makes upstream's function out of Megatron's.

    It gets Megatron's own function, because the one that is wrapped here would be observed a second time.
    """

    @functools.wraps(original)
    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        return _wrapped(method, original(getattr(function, "__wrapped__", function)))

    return around
