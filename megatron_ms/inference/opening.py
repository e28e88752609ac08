"""Chooses what continues texts: a model of transformers in this process, or a Megatron checkpoint on its ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .section import Generate

if TYPE_CHECKING:
    from ..config import Document
    from .engine import Engine


def engine_of(document: Document) -> Engine:
    """The engine that the section `generate` of a configuration asks for."""
    keys = document.section("generate", Generate)
    if keys.checkpoint is not None:
        from .ranks import RanksEngine

        return RanksEngine(document, keys)
    from .engine import Engine

    return Engine(keys)
