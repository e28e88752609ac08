"""torch.fx.passes.infra.pass_base: a pass over a GraphModule, and what it returns."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The graph module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: ``requires`` and ``ensures`` check the module before and after ``call``."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module cannot be taken."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module is not what the pass promises."""
