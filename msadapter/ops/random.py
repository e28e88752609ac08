"""Random tensors: creation, in-place filling and sampling. On the CPU the numbers equal PyTorch's."""

from __future__ import annotations

import math

from ._declare import _C, op, raw, raw_empty, t
from ._generator import operands
from .creation import LIKE, OPTIONS, checked_sizes, device_tag, dtype_of, empty_as, finish

WITH_GENERATOR = "Generator? generator=None, " + OPTIONS


def _on(tensor, generator):
    return operands(generator, _C.device_tag(tensor))


def _no_grad(g):
    return t.zeros_like(g)


def _uniform(tensor, *pair):
    return raw.InplaceUniform(tensor, 0, 1, *pair)


def _normal(tensor, *pair):
    return raw.InplaceNormal(tensor, 0, 1, *pair)


# ---- factories
def _filled(fill, size, dtype, *, generator, layout, device, requires_grad):
    """Return a new tensor that ``fill(tensor, seed, offset)`` has filled."""
    pair = operands(generator, device_tag(device))
    return finish(fill(raw_empty(checked_sizes(size), None, dtype), *pair), layout, device, requires_grad)


@op(
    f"rand(int[] size, *, {WITH_GENERATOR}) -> Tensor",
    forms="fo",
    native="body",
    random="sizes",
)
def rand(size, *, dtype, pin_memory, **options):
    """Return uniform numbers in [0, 1)."""
    return _filled(_uniform, size, dtype or _C.default_dtype(), **options)


@op(
    f"randn(int[] size, *, {WITH_GENERATOR}) -> Tensor",
    forms="fo",
    native="body",
    random="sizes",
)
def randn(size, *, dtype, pin_memory, **options):
    """Return normal numbers with mean 0 and variance 1."""
    return _filled(_normal, size, dtype or _C.default_dtype(), **options)


def _bounds(low, high, size):
    """Return (low, high, size) of randint's arguments, which are (high, size) or (low, high, size)."""
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    if low is not None and high is None:
        low, high = 0, low
    if high is None or size is None:
        raise TypeError("randint() received an invalid combination of arguments")
    return int(low or 0), int(high), [int(s) for s in ((size,) if isinstance(size, int) else size)]


@op(
    f"randint(any low=None, any high=None, any size=None, *, {WITH_GENERATOR}) -> Tensor",
    forms="fo",
    random="other",
)
def randint(low, high, size, *, dtype, pin_memory, **options):
    """Return integers in [low, high). ``randint(high, size)`` starts at 0."""
    low, high, size = _bounds(low, high, size)
    fill = lambda r, *pair: raw.InplaceRandom(r, low, high, *pair)  # noqa: E731
    return _filled(fill, size, dtype or dtype_of("int64"), **options)


@op(f"randperm(int n, *, {WITH_GENERATOR}) -> Tensor", forms="fo", random="other")
def randperm(n, *, generator, dtype, layout, device, requires_grad, pin_memory):
    """Return the numbers 0 to n - 1 in random order."""
    checked_sizes([n])
    pair = operands(generator, device_tag(device))
    return finish(raw.RandpermExt(n, *pair, dtype or dtype_of("int64")), layout, device, requires_grad)


def _like(self, *, dtype, memory_format, layout, device, requires_grad, fill):
    """Return an empty_like that ``fill(tensor, seed, offset)`` has filled."""
    result = finish(empty_as(self, dtype, memory_format), layout, device, False, self)
    fill(result, *_on(result, None))
    if requires_grad:
        result.requires_grad = True
    return result


@op(f"rand_like(Tensor self, *, {LIKE}) -> Tensor", forms="f", random="each")
def rand_like(self, *, pin_memory, **options):
    return _like(self, **options, fill=_uniform)


@op(f"randn_like(Tensor self, *, {LIKE}) -> Tensor", forms="f", random="each")
def randn_like(self, *, pin_memory, **options):
    return _like(self, **options, fill=_normal)


@op(f"randint_like(Tensor self, int low=0, int? high=None, *, {LIKE}) -> Tensor", forms="f", random="each")
def randint_like(self, low, high, *, pin_memory, **options):
    low, high = (0, low) if high is None else (low, high)
    return _like(self, **options, fill=lambda r, *pair: raw.InplaceRandom(r, low, high, *pair))


# ---- torch.normal
def _checked_std(std):
    if hasattr(std, "is_complex"):
        if std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel() and not bool((t.min(std) >= 0).item()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@op(
    f"normal(TensorOrScalar mean, TensorOrScalar std=1.0, int[]? size=None, *, {WITH_GENERATOR}) -> Tensor",
    forms="fo",
    grad={"mean": _no_grad, "std": _no_grad},
    random="parameters",
)
def normal(mean, std, size, *, generator, dtype, layout, device, requires_grad, pin_memory):
    """Return normal numbers. Mean and standard deviation are numbers (then ``size`` is needed) or tensors."""
    if size is not None:  # tensors of one element stand for numbers here
        mean, std = (x.item() if hasattr(x, "item") and x.ndim == 0 else x for x in (mean, std))
    _checked_std(std)
    with_mean, with_std = hasattr(mean, "shape"), hasattr(std, "shape")
    if not (with_mean or with_std):
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
        options = {"generator": generator, "layout": layout, "device": device, "requires_grad": requires_grad}
        fill = lambda r, *pair: raw.InplaceNormal(r, mean, std, *pair)  # noqa: E731
        return _filled(fill, size, dtype or _C.default_dtype(), **options)
    model = mean if with_mean else std
    shape = t.broadcast_tensors(mean, std)[0].shape if with_mean and with_std else model.shape
    result = raw_empty(shape, None, dtype or model.dtype)
    raw.InplaceNormal(result, 0, 1 if with_std else std, *_on(model, generator))
    return t.add_(t.mul_(result, std) if with_std else result, mean)


# ---- in place
def _uniform_like(like, *pair):
    """Return uniform numbers in [0, 1) with the shape of ``like``, in at least 32 bits."""
    dtype = like.dtype if like.element_size() > 2 else dtype_of("float32")
    return _uniform(raw_empty(like.shape, None, dtype), *pair)


def _cauchy(like, median, sigma, *pair):
    return median + sigma * t.tan(math.pi * (_uniform_like(like, *pair) - 0.5))


def _log_normal(like, mean, std, *pair):
    return t.exp(raw.InplaceNormal(raw_empty(like.shape, None, like.dtype), mean, std, *pair))


def _geometric(like, p, *pair):
    return t.ceil(t.log1p(-_uniform_like(like, *pair)) / math.log1p(-p)).clamp(min=1)


def _in_place(name: str, parameters: str, kernel: str, on_npu=None) -> None:
    """Declare ``Tensor.<name>_(parameters)``, which fills the tensor with numbers of a distribution.

    ``on_npu(like, *values, seed, offset)`` returns such numbers for an NPU, if MindSpore lacks the kernel there.
    """
    run = getattr(raw, kernel)

    @op(
        f"Tensor.{name}(Tensor self, {parameters}, *, Generator? generator=None) -> Tensor",
        forms="i",
        grad={"self": _no_grad},
        random="each",
    )
    def fill(self, *values, generator):
        pair = _on(self, generator)
        if on_npu is not None and _C.in_device_memory(self):
            _C.copy_into(self, on_npu(self, *values, *pair))
        else:
            run(self, *values, *pair)
        return self


_in_place("normal", "float mean=0.0, float std=1.0", "InplaceNormal")
_in_place("uniform", "float from=0.0, float to=1.0", "InplaceUniform")
_in_place("exponential", "float lambd=1.0", "InplaceExponential")
_in_place("cauchy", "float median=0.0, float sigma=1.0", "InplaceCauchy", _cauchy)
_in_place("log_normal", "float mean=1.0, float std=2.0", "InplaceLogNormal", _log_normal)
_in_place("geometric", "float p", "InplaceGeometric", _geometric)


@op(
    "Tensor.random(Tensor self, int? from=None, int? to=None, *, Generator? generator=None) -> Tensor",
    forms="i",
    grad={"self": _no_grad},
    random="each",
)
def random_(self, low, high, *, generator):
    """Fill the tensor with integers.

    random_() covers what the dtype can hold, random_(to) is [0, to), and random_(from, to) is [from, to).
    """
    if low is not None and high is None and low >= 0:
        low, high = 0, low
    raw.InplaceRandom(self, 0 if low is None else low, high, *_on(self, generator))
    return self


# ---- sampling
@op(
    "bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor",
    out_dtype="any",
    forms="fmo",
    grad={"self": _no_grad},
    random="values",
)
def bernoulli(self, p, *, generator):
    """Return ones with probability ``p`` (or with the probabilities in the tensor), and zeros elsewhere."""
    if p is None:
        return raw.BernoulliExt(self, *_on(self, generator))
    result = raw_empty(self.shape, None, self.dtype)
    raw.InplaceBernoulliScalar(result, p, *_on(self, generator))
    return result


@op(
    "Tensor.bernoulli(Tensor self, TensorOrScalar p=0.5, *, Generator? generator=None) -> Tensor",
    forms="i",
    grad={"self": _no_grad},
    short=False,
    random="each",
)
def bernoulli_(self, p, *, generator):
    pair = _on(self, generator)
    if hasattr(p, "shape"):
        raw.InplaceBernoulliTensor(self, p, *pair)
    else:
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        raw.InplaceBernoulliScalar(self, p, *pair)
    return self


@op(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    forms="fmo",
    whole=True,
    random="parameters",
)
def multinomial(self, num_samples, replacement, *, generator):
    """Return num_samples indices for each row, drawn with the weights in this row."""
    replacement = replacement and num_samples > 1  # PyTorch draws a single index as if without replacement
    return raw.MultinomialExt(self, num_samples, replacement, *_on(self, generator))


@op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    forms="f",
    grad={"self": _no_grad},
    random="values",
)
def poisson(self, generator):
    return raw.Poisson(self, *_on(self, generator))


@op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    node="NotImplemented",
    forms="f",
    grad={"count": _no_grad, "prob": _no_grad},
    random="values",
)
def binomial(count, prob, generator):
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype} but expected {count.dtype}")
    return raw.Binomial(count, prob, *_on(count, generator))


@op(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, result: g * t._standard_gamma_grad(self, result)},
    random="values",
)
def _standard_gamma(self, generator):
    return raw.StandardGamma(self, *_on(self, generator))


op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", ms="StandardGammaGrad", forms="f")


@op(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, result: t._dirichlet_backward(g, self, result)},
    random="parameters",
)
def _sample_dirichlet(self, generator):
    return raw.Dirichlet(self, *_on(self, generator))


@op("_dirichlet_backward(Tensor grad, Tensor alpha, Tensor x) -> Tensor", forms="f")
def _dirichlet_backward(grad, alpha, x):
    total = t.expand_as(t.sum(alpha, -1, True), alpha)
    return t._dirichlet_grad(x, alpha, total) * (grad - t.sum(x * grad, -1, True))


op("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", ms="DirichletGrad", forms="f")


from . import dropout  # noqa: E402, F401  (the family's second file)
