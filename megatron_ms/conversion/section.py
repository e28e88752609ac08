"""The section `convert` of a configuration."""

from __future__ import annotations

from ..config import Section, key


class Convert(Section):
    """The section `convert`."""

    source: str = key(help="an adapter of peft")
    output: str = key(help="a new folder for the result")
    like: str | None = key(
        None,
        "the model that the adapter belongs to, if it is not where the adapter says",
    )
    forward: bool = key(
        True, "compare a forward pass of source and result; false for models that this machine cannot hold"
    )
