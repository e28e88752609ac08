"""MindSpeed's op builders give our operators: a runtime patch of `load`, put in when MindSpeed's modules are imported."""

from __future__ import annotations

from patches.runtime import RuntimePatch, install_patches


def _load(original):
    def load(self, verbose=True):
        """The extension of this builder, from kernels_ascend."""
        from . import mindspeed

        return mindspeed.load(self.name)

    load.__wrapped__ = original
    return load


PATCHES = tuple(
    RuntimePatch(
        id=f"mindspeed-{module}",
        module=f"mindspeed.op_builder.{module}",
        attribute=f"{owner}.load",
        reason="compiles C++ against CANN and PyTorch's C++ API; kernels_ascend has the same functions",
        reason_class="environment",
        replacement=_load,
    )
    for module, owner in (("builder", "MindSpeedOpBuilder"), ("atb_builder", "AtbOpBuilder"))
)


def install() -> None:
    """Have the patches wait for MindSpeed's modules. Calling it again changes nothing.

    Raises:
        PatchError: the modules are imported already.
    """
    install_patches(PATCHES)
