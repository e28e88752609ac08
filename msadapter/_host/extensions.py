"""Extension points: the places where a lower layer calls a higher one.

Imports go down only (docs/architecture.md). Where a lower layer must call a higher one, it asks an extension point of this
file, and the higher layer fills that point when it is imported:

extensions.batched_function.provide(_apply) # torch.func, when it is imported
extensions.sparse_gradient.provide_from("msadapter.sparse._embedding", "embedding") # imported at the first use

An empty point has the value None. The program has not used the feature that would fill it.
"""

from __future__ import annotations

import importlib
from typing import Any


class Point:
    """One extension point.

    Attributes:
        name: the name of the point, as in this file.
        purpose: what is called or read here, and by whom.
    """

    def __init__(self, name: str, purpose: str) -> None:
        self.name, self.purpose = name, purpose
        self._value: Any = None
        self._source: tuple[str, str] | None = None

    @property
    def value(self) -> Any:
        """What has been provided; None if nothing has. A source given by name is imported now."""
        if self._value is None and self._source is not None:
            module, attribute = self._source
            self._value = getattr(importlib.import_module(module), attribute)
        return self._value

    def provide(self, value: Any) -> None:
        """Fills the point. RuntimeError if it contains something else, because two providers would hide each other."""
        if self._source is not None or (self._value is not None and self._value is not value):
            raise RuntimeError(f"the extension point {self.name} is filled already")
        self._value = value

    def provide_from(self, module: str, attribute: str) -> None:
        """Fills the point with an attribute of a module that is imported at the first use, to keep start-up short."""
        if self._value is not None or self._source not in (None, (module, attribute)):
            raise RuntimeError(f"the extension point {self.name} is filled already")
        self._source = module, attribute

    def withdraw(self) -> None:
        """Empties the point, because its feature has been switched off."""
        self._value = self._source = None


_points: dict[str, Point] = {}


def _point(name: str, purpose: str) -> Point:
    _points[name] = Point(name, purpose)
    return _points[name]


def points() -> dict[str, Point]:
    """Every extension point by name."""
    return dict(_points)


accelerator_generators = _point(
    "accelerator_generators",
    "The accelerator's default generators, a sequence by device index. Random operators draw from them. By torch.cuda.random.",
)
operator_namespaces = _point(
    "operator_namespaces",
    "Called with the name of an attribute that the op table does not have; returns torch.ops.<name>. By torch.library.",
)
overridden = _point(
    "overridden",
    "Called with (function, args, kwargs) for a method of a tensor subclass; what __torch_function__ answers, or NotImplemented. "
    "By torch.overrides.",
)
foreign_operand = _point(
    "foreign_operand",
    "f(operator, operands, {}) of a Python operator whose other operand has a __torch_function__ of its own. By torch.overrides.",
)
sparse_gradient = _point(
    "sparse_gradient",
    "embedding(weight, indices, padding_idx, scale_grad_by_freq) with a sparse gradient. By torch.sparse.",
)
sparse_conversion = _point(
    "sparse_conversion",
    "The functions behind Tensor.to_sparse and its like, by method name. By torch.sparse.",
)
forward_mode = _point(
    "forward_mode",
    "Called with (function, args, kwargs) while a level of forward-mode differentiation lasts; the result for dual arguments, or "
    "NotImplemented. By torch.autograd.forward_ad.",
)
forward_gradients = _point(
    "forward_gradients",
    "Called by autograd.grad with (function of grad_outputs, create_graph and used_again, grad_outputs, create_graph); the "
    "gradients, which have tangents then. By torch.autograd.forward_ad.",
)
shown_tangent = _point(
    "shown_tangent",
    "Called with a tensor for its text; the tangent that the text contains, or None. By torch.autograd.forward_ad.",
)
drop_tangent = _point(
    "drop_tangent",
    "Called with a tensor that is detached in place, so that it has no tangent any more. By torch.autograd.forward_ad.",
)
take_tangent = _point(
    "take_tangent",
    "Called with a tensor and its view before the tensor gets the geometry of the view in place. By torch.autograd.forward_ad.",
)
refused_operand = _point(
    "refused_operand",
    "Called with (function, args, kwargs) after __torch_function__; an error if an argument is a tensor that no operator can take, "
    "else NotImplemented. By torch.utils._python_dispatch.",
)
batched_function = _point(
    "batched_function",
    "Called with (Function, args, kwargs) by Function.apply; the result for batched arguments, or NotImplemented. "
    "By torch.func.",
)
batches = _point(
    "batches",
    "What torch.autograd has to know about tensors inside of vmap: their class (kind), the functions whole, plain and "
    "wrapped, which give a tensor all batch dims, take it out and put it in again, and gradients_of_each, which makes a backward "
    "pass for each element of a batch of gradients. By torch.func.",
)
refuse_in_transform = _point(
    "refuse_in_transform",
    "Called with the name of a method that PyTorch refuses inside of a function that torch.func transforms, such as "
    "requires_grad_; RuntimeError if such a function runs. By torch.func.",
)
vmap = _point("vmap", "The vmap with which gradient checks batch a function. By torch._vmap_internals.")
refused_by_function = _point(
    "refused_by_function",
    "A class of tensors that torch.autograd.Function does not take. By torch.distributed.tensor.",
)
spread_backward = _point(
    "spread_backward",
    "(class, function): tensors of this class are spread over processes, and a backward pass runs on what the function makes "
    "of them: their local parts. By torch.distributed.tensor.",
)
values_backward = _point(
    "values_backward",
    "Like spread_backward, for tensors whose numbers are one ordinary tensor, such as sparse and nested ones: a backward pass runs "
    "on their values. By torch.autograd._over_values, which torch.sparse and torch.nested load.",
)
sparse_gradients = _point(
    "sparse_gradients",
    "(class, function): adds sparse gradients to .grad of the dense leaves with which a backward pass begins. By torch.sparse.",
)
before_backward = _point(
    "before_backward",
    "Called with the roots of every backward pass. By anomaly detection while it is on.",
)
failed_backward = _point(
    "failed_backward",
    "Called when a backward pass has raised an error, before the error reaches the caller. By anomaly detection while it is on.",
)
applied_function = _point(
    "applied_function",
    "Called with the results of every custom autograd.Function. By anomaly detection while it is on.",
)
parameter_class = _point(
    "parameter_class",
    "The class Parameter, for files and messages that contain parameters. By torch.nn.parameter.",
)
symbolic_tracer = _point(
    "symbolic_tracer",
    "The class that records a pickled GraphModule again. By torch.fx.",
)
jit_tracer = _point(
    "jit_tracer",
    "The function that records a program while it runs on examples, for torch.jit.trace. By torch.fx.",
)
abort_communication = _point(
    "abort_communication",
    "Called with a reason by torch.npu.stop_device; collectives that this process waits for, and later ones, are errors. "
    "By torch.distributed.",
)
mutation_of_saved = _point(
    "mutation_of_saved",
    "The context manager of torch.autograd.graph.allow_mutation_on_saved_tensors. By torch.utils.",
)
