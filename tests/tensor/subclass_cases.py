"""Tensor subclasses, and what is asked for by __torch_function__. Each function is one case."""

from __future__ import annotations


def subclass(torch):
    class Named(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Named)
    y = torch.Tensor._make_subclass(Named, torch.zeros(2), True)
    return (
        type(x + 1).__name__,
        type(x.view(2, 1)).__name__,
        isinstance(y, torch.Tensor),
        y.requires_grad,
        type(y * 2).__name__,
        type(torch.add(x, 1)).__name__,
    )


def torch_function(torch):
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(getattr(function, "__name__", str(function)))
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Watched)
    seen.clear()
    torch.add(x, 1)
    x.mul(2)
    torch.nn.functional.relu(x)
    return seen


def methods_of_a_watched_tensor(torch):
    """A subclass with __torch_function__ is asked for the methods of Tensor, and their results are of its class."""
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    calls = {
        "detach": lambda x: x.detach(),
        "data": lambda x: x.data,
        "to": lambda x: x.to(torch.float64),
        "to the same": lambda x: x.to(torch.float32),
        "cpu": lambda x: x.cpu(),
        "double": lambda x: x.double(),
        "T": lambda x: x.T,
        "mT": lambda x: x.mT,
        "real": lambda x: x.real,
        "view": lambda x: x.view(-1),
        "new_tensor": lambda x: x.new_tensor([1.0]),
        "requires_grad_": lambda x: x.requires_grad_(),
        "write": lambda x: x.__setitem__(0, 1.0),
        "tolist": lambda x: x.tolist(),
        "numpy": lambda x: x.numpy(),
        "size": lambda x: x.size(),
        "len": len,
        "in": lambda x: 1.0 in x,
        "2 - x": lambda x: 2 - x,
        "x // 2": lambda x: x // 2,
        "backward": lambda x: x.backward(torch.ones(2, 2)) if x.requires_grad_() is None else None,
    }
    found = {}
    for name, call in calls.items():
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Watched)
        seen.clear()
        kind = type(call(x)).__name__
        found[name] = kind, list(seen)
    return found


def a_method_that_is_answered(torch):
    class Answering(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function is torch.Tensor.detach, [t.__name__ for t in types], len(args), bool(kwargs)

    class Own(Answering):
        def detach(self):
            return "own"

    class Mixed(torch.Tensor):
        def cpu(self):
            return "mixed"

    class Both(Answering, Mixed):
        pass

    x = torch.ones(2)
    own, both = x.as_subclass(Own), x.as_subclass(Both)
    with torch._C.DisableTorchFunctionSubclass():
        plain = type(x.as_subclass(Answering).detach()).__name__
    return x.as_subclass(Answering).detach(), own.detach(), own.cpu(), both.cpu(), both.detach(), plain


def methods_of_an_unwatched_subclass(torch):
    class Plain(torch.Tensor):
        pass

    class Mine(torch.nn.Parameter):
        pass

    x, p = torch.ones(2, 2).as_subclass(Plain), Mine(torch.ones(2))
    of_plain = [
        x.detach(),
        x.data,
        x.to(torch.float64),
        x.T,
        x.real,
        x.requires_grad_(),
        torch.nn.Parameter(x.detach()),
    ]
    of_mine = [p.detach(), p.data, p.double(), p + 1, p.clone(), torch.nn.Buffer(torch.ones(1)) + 1]
    return [type(r).__name__ for r in of_plain], [type(r).__name__ for r in of_mine]


def a_parameter_of_a_watched_tensor(torch):
    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    p = torch.nn.Parameter(torch.ones(2).as_subclass(Watched))
    mine = type("Mine", (torch.nn.Parameter,), {})(torch.ones(2, 2))
    return (
        type(p).__name__,
        isinstance(p, torch.nn.Parameter),
        p.requires_grad,
        p.is_leaf,
        repr(p),
        repr(mine),
    )


def types_of_torch_function(torch):
    """``types`` has each class once, and not those of plain tensors and parameters."""

    class Operand:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return [kind.__name__ for kind in types]

    class Plain(torch.Tensor):
        pass

    x, other = torch.ones(2), Operand()
    plain, parameter = x.as_subclass(Plain), torch.nn.Parameter(x)
    calls = [(x, other), (other, x), (other, other), (parameter, other), (plain, other)]
    return [torch.add(*operands) for operands in calls], torch.cat([x, other, parameter, other])


def operators_of_foreign_operands(torch):
    """A class that is no tensor and has __torch_function__ receives the operators between tensors and its objects."""

    class Operand:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__, [type(a).__name__ for a in args]

    x, other = torch.ones(2), Operand()
    right = [x + other, x - other, x * other, x @ other, x == other, x < other, x & other]
    left = [other + x, other - x, other * x, other // x, other % x, other**x, other << x, other @ x]
    x -= other
    return right, left, x
