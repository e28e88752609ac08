"""torch.nn.utils.prune: masks that keep some elements of a parameter at zero.

The original values of a pruned parameter `weight` are kept in the parameter `weight_orig`, and the mask in
the buffer `weight_mask`. `weight` is their product and is computed before every forward. `remove` makes the
pruning permanent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ... import ops

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """Base class of pruning methods. An instance is also the forward pre-hook that applies the mask.

    Subclasses define `compute_mask(t, default_mask)`, which extends the mask of earlier methods.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """Return the mask of ``t``: a copy of ``default_mask`` with more zeros."""

    def apply_mask(self, module):
        """Return the parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune ``module.name``, in addition to earlier prunings of the same parameter.

        Returns the method, or the container of all methods of this parameter.
        """
        earlier = [(k, h) for k, h in module._forward_pre_hooks.items() if _prunes(h, name)]
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}."
            )
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter                     {name} of {module}"
            )
        if earlier:
            key, before = earlier[0]
            del module._forward_pre_hooks[key]
            method = _joined(before, method, name)
            default = getattr(module, name + "_mask").detach().clone()
        else:
            default = ops.ones_like(importance_scores)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default)
        except Exception:
            if earlier:
                module.register_forward_pre_hook(before)
            raise
        if not earlier:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """Return ``t`` with its mask applied. No module is involved."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = default_mask if default_mask is not None else ops.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default)

    def remove(self, module) -> None:
        """Make the masked values the parameter again, and remove the mask and the original values."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned            before pruning can be removed")
        weight = self.apply_mask(module)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.data
        del module._buffers[self._tensor_name + "_mask"]
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        setattr(module, self._tensor_name, original)


def _prunes(hook, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


def _joined(before, method, name: str):
    container = before
    if not isinstance(before, PruningContainer):
        container = PruningContainer()
        container._tensor_name = name
        container.add_pruning_method(before)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter. Each prunes the elements that the earlier methods left."""

    def __init__(self, *args):
        self._pruning_methods: tuple = ()
        if not isinstance(args, Iterable):
            args = (args,)
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method) -> None:
        """Add a method for the same tensor.

        Raises:
            TypeError: the argument is not a pruning method.
            ValueError: the method prunes another tensor.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """Apply the last method to the elements that are not pruned yet. Returns the combined mask."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim() if t.dim() else 0
            others = [d for d in range(t.dim()) if d != dim]
            kept = (mask.sum(others) != 0) if others else mask != 0
            chosen = tuple(kept if d == dim else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        out = mask.clone()
        out[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen]).to(mask.dtype)
        return out


class Identity(BasePruningMethod):
    """Adds a mask of ones, so that nothing is pruned."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _OfSingleElements(BasePruningMethod):
    """Base class of methods that prune single elements: ``amount`` of them, or a fraction between 0 and 1."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _chosen(self, t, count):
        """Flat indices of the ``count`` elements to prune."""
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        count = _number_of(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_OfSingleElements):
    """Prunes random elements: a number of them, or a fraction between 0 and 1."""

    def _chosen(self, t, count):
        return ops.rand_like(t).reshape(-1).topk(count)[1]

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_OfSingleElements):
    """Prunes the elements with the smallest absolute values."""

    def _chosen(self, t, count):
        return t.abs().reshape(-1).topk(count, largest=False)[1]

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _OfSlices(BasePruningMethod):
    """Base class of methods that prune slices along ``dim``: ``amount`` of them, or a fraction between 0 and 1."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _importance(self, t):
        """One number for each slice. The slices with the largest numbers are kept."""
        raise NotImplementedError

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _number_of(self.amount, size)
        if not count:
            return default_mask
        kept = self._importance(t).topk(size - count)[1]
        return _with_slices(t, self.dim, kept) * default_mask.to(t.dtype)


class RandomStructured(_OfSlices):
    """Prunes random slices along a dimension."""

    def _importance(self, t):
        return ops.rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_OfSlices):
    """Prunes the slices along a dimension that have the smallest n-norm."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _importance(self, t):
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return ops.norm(t, p=self.n, dim=others)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes with a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and self.mask must have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Add a mask of ones to ``module.name``. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune random elements of ``module.name``. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements with the smallest absolute values. Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune random slices along ``dim``. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the slices along ``dim`` with the smallest n-norm. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune with the given mask. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs) -> None:
    """Prune several parameters, given as (module, name) pairs, as if they were one vector.

    Raises:
        TypeError: ``parameters`` is not an iterable of pairs, or the method is not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    rows = [scores.get((module, name), getattr(module, name)) for module, name in parameters]
    vector = ops.cat([row.reshape(-1) for row in rows])
    masks = [
        getattr(module, name + "_mask", ops.ones_like(getattr(module, name))) for module, name in parameters
    ]
    default = ops.cat([mask.reshape(-1) for mask in masks])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    whole = container.compute_mask(vector, default)
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, mask=whole[start : start + param.numel()].view_as(param))
        start += param.numel()


def remove(module, name):
    """Make the pruning of ``module.name`` permanent. Returns the module. ValueError if it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module) -> bool:
    """Return whether a parameter of the module or of its submodules is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.named_modules()
        for hook in inner._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount) -> None:
    """Check that ``amount`` is a number (else TypeError) and a count or a fraction in [0, 1] (else
    ValueError).
    """
    if not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, int) and amount < 0) or (
        not isinstance(amount, int) and (float(amount) > 1.0 or float(amount) < 0.0)
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount, tensor_size: int) -> None:
    """Raise ValueError if ``amount`` is a count of more than ``tensor_size`` elements."""
    if isinstance(amount, int) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _compute_nparams_toprune(amount, tensor_size: int) -> int:
    """Return how many of ``tensor_size`` elements to prune, where ``amount`` is a count or a fraction."""
    return amount if isinstance(amount, int) else round(amount * tensor_size)


def _number_of(amount, size: int) -> int:
    """Return how many of ``size`` elements to prune. ValueError if this is more than ``size``."""
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


def _validate_structured_pruning(t) -> None:
    """Raise ValueError unless ``t`` has at least two dimensions."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to "
            "multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t, dim: int) -> None:
    """Raise IndexError if ``t`` has no dimension ``dim``."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _with_slices(t, dim: int, kept):
    """Return a mask of the shape of ``t`` with ones in the slices ``kept`` along ``dim``."""
    mask = ops.zeros_like(t)
    index = [slice(None)] * t.dim()
    index[dim] = kept
    mask[tuple(index)] = 1
    return mask
