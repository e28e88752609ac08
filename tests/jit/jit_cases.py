"""torch.jit as programs use it: what is scripted or traced gives the answers of plain Python."""

import warnings
from typing import List, Optional, Tuple  # noqa: UP035  what scripted code is written with


def _gelu(x, y):
    return x * 0.5 * (1.0 + (y * 0.79788456).tanh())


def scripted_function(torch):
    x = torch.linspace(-1, 1, 6).requires_grad_()
    y = torch.linspace(0, 2, 6)
    out = torch.jit.script(_gelu)(x, y)
    out.sum().backward()
    return [out, x.grad]


def traced_function(torch):
    traced = torch.jit.trace(_gelu, (torch.ones(2), torch.ones(2)))
    return traced(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.1, 0.0]))


def traced_module(torch):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    traced = torch.jit.trace(net, torch.ones(1, 3))
    same = torch.equal(traced(torch.ones(2, 3)), net(torch.ones(2, 3)))
    return [same, sorted(traced.state_dict()), torch.jit.freeze(traced.eval())(torch.ones(1, 3)).shape]


class _Attention:
    """Makes a small network with attributes, sizes, a buffer, a loop over modules and an in-place write."""

    @staticmethod
    def network(torch):
        nn = torch.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.norm = nn.Embedding(10, 8), nn.LayerNorm(8)
                self.weight = nn.Parameter(torch.linspace(-1, 1, 64).reshape(8, 8))
                self.register_buffer("mask", torch.ones(16, 16).tril().bool())
                self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
                self.unused = nn.Linear(2, 2)

            def forward(self, ids, scale=None):
                rows, length = ids.shape
                x = self.embedding(ids) + torch.arange(length, device=ids.device)[None, :, None] * 0.1
                q = (x @ self.weight).view(rows, length, 2, 4).transpose(1, 2)
                scores = (q @ q.transpose(-2, -1)) / (q.size(-1) ** 0.5)
                scores = scores.masked_fill(~self.mask[:length, :length], float("-inf")).softmax(-1)
                y = (scores @ q).transpose(1, 2).contiguous().view(rows, length, -1)
                for layer in self.layers:
                    y = y + torch.relu(layer(self.norm(y)))
                z = torch.zeros(rows, length, 8, dtype=y.dtype)
                z[:, 1:] = y[:, 1:]
                z += 1
                u, v = y.chunk(2, -1)
                h = torch.cat([v, u], dim=-1)
                assert isinstance(h, torch.Tensor) and h.dim() == 3
                return (h if scale is None else h * scale) + z, nn.functional.cross_entropy(
                    h.view(-1, 8), ids.view(-1) % 8
                )

        net = Net().eval()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) % 7 * 0.1 - 0.3)
        return net


def traced_network(torch):
    """A trace holds for other sizes, keeps the state dict, shares parameters, and gives gradients."""
    net = _Attention.network(torch)
    ids = torch.arange(6).reshape(2, 3)
    traced = torch.jit.trace(net, (ids,))
    more = torch.arange(20).reshape(4, 5) % 10
    out, loss = traced(more)
    loss.backward()
    found = [out, loss, net.weight.grad, net.layers[1].weight.grad, net.unused.weight.grad is None]
    found += [
        isinstance(traced, torch.jit.ScriptModule),
        sorted(traced.state_dict()),
        traced.training,
        traced.original_name,
    ]
    scaled = torch.jit.trace(net, example_kwarg_inputs={"ids": ids, "scale": torch.tensor([2.0])})
    return [*found, scaled(more, torch.tensor([3.0]))[0]]


def traced_values(torch):
    """What a trace records of small functions, called with other sizes than those of the examples."""
    functions = [
        lambda x: x.view(x.shape[0], -1) * x.size(1),
        lambda x: x.new_zeros(x.shape) + x.detach() * x,
        lambda x: torch.ones_like(x) * x.shape[0],
        lambda x: x.max(1).values + x.sort(1)[0].sum(1),
        lambda x: (x * 1).mul_(2),
        lambda x: torch.tensor([1.0, 2.0, 3.0]) + x,
        lambda x: x * 2 if x.dtype == torch.float32 else x,
        lambda x: torch.einsum("ij,kj->ik", x, x),
        lambda x: x[x > 1],
        lambda x: -x.T.float().abs().clamp(min=0.5),
        lambda x: torch.where(x > 0, x, 0.0) - (3 - x),
        lambda x: (x, [x * 2, x + 1]),
        lambda x: torch.nn.functional.pad(x, (1, x.size(0))),
        lambda x: torch.zeros(x.size(0), 2).sum() + x.sum(),
    ]
    example, x = torch.ones(2, 3), torch.arange(12.0).reshape(4, 3)
    return [torch.jit.trace(function, example)(x) for function in functions]


def traced_function_names(torch):
    def doubled(x, y=3):
        return x * 2 + y

    traced = torch.jit.trace(doubled, torch.ones(2))
    return [isinstance(traced, torch.jit.ScriptFunction), traced.name, traced(torch.zeros(3))]


def traced_branch_warns(torch):
    def branch(x):
        return x + 1 if x.sum() > 0 else x - 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = torch.jit.trace(branch, torch.ones(2), check_trace=False)
    return ["TracerWarning" in {w.category.__name__ for w in caught}, traced(-torch.ones(2))]


def traced_random_numbers_warn(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = torch.jit.trace(lambda x: x + torch.rand(2), torch.ones(2))
    return [
        "TracerWarning" in {w.category.__name__ for w in caught},
        torch.equal(traced(torch.ones(2)), traced(torch.ones(2))),
    ]


def traced_inputs_stay(torch):
    x = torch.ones(2)
    traced = torch.jit.trace(lambda x: x.clone().add_(1), x)
    return [x, traced(torch.zeros(2)), torch.jit.is_tracing()]


def tracing_is_seen(torch):
    traced = torch.jit.trace(lambda x: x + (1 if torch.jit.is_tracing() else 2), torch.ones(2))
    return [traced(torch.zeros(2)), torch.jit.is_tracing()]


def refused_traces(torch):
    x, found = torch.ones(2), []
    for function in (lambda x: 3, lambda x: {"a": x}, lambda x: None, lambda x: "text"):
        try:
            torch.jit.trace(function, x)
        except RuntimeError as error:
            found.append(str(error).partition(",")[0][:60])
    for inputs in ((x, 3), ({"a": x}, "text")):
        try:
            torch.jit.trace(lambda x, y: x, inputs)
        except RuntimeError as error:
            found.append("cannot be traced. Only Tensors" in str(error))
    module = torch.jit.trace_module(torch.nn.Linear(2, 2), {"forward": x})
    return [*found, module(x).shape, torch.jit.trace(lambda x: {"a": x}, x, strict=False)(x)]


def decorators_keep_the_call(torch):
    class Net(torch.nn.Module):
        @torch.jit.export
        def twice(self, x):
            return x * 2

        @torch.jit.unused
        def never(self, x):
            return x - 1

        @torch.jit.ignore
        def python(self, x):
            return x + 1

        @torch.jit.ignore(drop=False)
        def called(self, x):
            return x + 3

        def forward(self, x):
            return self.python(self.twice(x)) + self.called(x) + self.never(x)

    return Net()(torch.tensor([1.0, 2.0]))


def script_if_tracing_is_the_function_outside_of_tracing(torch):
    @torch.jit.script_if_tracing
    def scaled(x, n: int):
        return x * n

    return [scaled(torch.ones(2), 3), torch.jit.is_scripting(), torch.jit.is_tracing()]


def is_instance(torch):
    check = torch.jit.isinstance
    return [
        check([1, 2], List[int]),  # noqa: UP006
        check([1, "a"], List[int]),  # noqa: UP006
        check((1, "a"), Tuple[int, str]),  # noqa: UP006
        check((1, 2), Tuple[int, str]),  # noqa: UP006
        check((1,), Tuple[int, str]),  # noqa: UP006
        check({"a": [1]}, dict[str, list[int]]),
        check({"a": ["b"]}, dict[str, list[int]]),
        check(None, Optional[int]),  # noqa: UP045
        check(2.5, Optional[int]),  # noqa: UP045
        check(3, str),
        check(3, (str, int)),
    ]


def container_without_contained_types(torch):
    return torch.jit.isinstance({"a": 1}, dict)


def list_without_a_contained_type(torch):
    return torch.jit.isinstance([1], List)  # noqa: UP006


def annotated_values(torch):
    return [torch.jit.annotate(int, 3), torch.jit.Attribute(2.5, float)]


def forked_work(torch):
    future = torch.jit.fork(lambda a, b=1: a + b, torch.ones(2), b=2)
    return [torch.jit.wait(future)]


def blocks(torch):
    with torch.jit.optimized_execution(False), torch.jit.fuser("fuser0"):
        return torch.ones(2) + 1


def named_classes(torch):
    plain = torch.nn.Linear(1, 1)
    return [isinstance(plain, torch.jit.ScriptModule), isinstance(_gelu, torch.jit.ScriptFunction)]
