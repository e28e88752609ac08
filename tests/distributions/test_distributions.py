"""torch.distributions, compared with the answers recorded from PyTorch. Seeds must give PyTorch's samples."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("distributions")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because the cases import torch by name."""


@together(CASES)
def test_case(case):
    check("distributions", case, CASES[case], torch)


def test_an_inverse_is_of_the_class_that_libraries_ask_for():
    """pyro's tests ask for it by this name."""
    transforms = torch.distributions.transforms
    inverse = transforms.ExpTransform().inv
    assert isinstance(inverse, transforms._InverseTransform) and inverse.inv.inv is inverse


class Ordered(torch.distributions.Categorical):
    """Names its own parameters, and expands them before those of its base, as pyro's OrderedLogistic does."""

    arg_constraints = {
        "cut": torch.distributions.constraints.real,
        "step": torch.distributions.constraints.positive,
    }

    def __init__(self, cut, step, validate_args=None):
        self.cut, self.step = cut, step
        super().__init__(logits=torch.stack([cut, cut + step], -1), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Ordered, _instance)
        new.cut, new.step = self.cut.expand(batch_shape), self.step
        return super().expand(batch_shape, new)


def test_a_derived_class_expands_the_parameters_that_it_names():
    first = Ordered(torch.tensor([0.5, -1.0, 2.0]), 0.25, validate_args=False)
    wide = first.expand([4, 3])
    assert wide.batch_shape == (4, 3) and wide.cut.shape == (4, 3) and wide.step == 0.25
    assert torch.equal(wide.logits, first.logits.expand(4, 3, 2))
    assert torch.equal(wide.log_prob(torch.ones(4, 3)), first.log_prob(torch.ones(3)).expand(4, 3))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("Dirichlet", (torch.ones(3),)), ("LogNormal", (0.0, 1.0)), ("Gumbel", (0.0, 1.0)), ("Chi2", (2.0,))],
)
def test_a_derived_class_with_other_arguments_must_expand_itself(kind, arguments):
    """What its constructor adds is unknown here, so PyTorch refuses to expand it. A class without a constructor expands."""
    base = getattr(torch.distributions, kind)

    class Plain(base):
        pass

    class Other(base):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.more = 1

    assert type(Plain(*arguments).expand([2])) is Plain
    message = (
        f"Subclass Other of {kind} that defines a custom __init__ method must also define a custom .expand"
    )
    with pytest.raises(NotImplementedError, match=message):
        Other(*arguments).expand([2])
