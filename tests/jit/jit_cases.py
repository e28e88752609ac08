"""torch.jit as programs use it: what is scripted or traced gives the answers of plain Python."""

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
