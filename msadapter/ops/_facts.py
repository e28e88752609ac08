"""What the table knows about one operator: its declaration and its facts, with their checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import _schema


class Refused(str):
    """An autocast policy: the operator raises RuntimeError with this message."""


_POLICIES = {None: 0, "lower": 1, "float32": 2, "widest": 3, "as given": 4}
_REFUSED = 5
REDUCTIONS = ("sum", "mean", "max", "min", "other")
_CHOICES = {  # facts that are one word of several
    "reduction": REDUCTIONS,
    "random": ("each", "values", "sizes", "parameters", "other"),
    "backward": ("plain", "sizes"),
    "float8": ("any", "tensors", "infinite"),
    "out_dtype": (
        "truth of all",
        "truth of any",
        "any",
        "cast",
        "cat",
        "creates",
        "decides",
        "fills",
        "floating",
        "same",
        "same scalar type",
    ),
}


@dataclass(frozen=True)
class Facts:
    """What the rest of the package reads about an operator. See ``op`` for the meanings."""

    pointwise: bool = False
    linear: str | tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    reduction: str | None = None
    autocast: str | dict | None = None
    fuses: str | dict | None = None
    native: tuple[str, ...] = ()
    refuses_bool: bool = False
    numbers_alone: bool = False
    writes_expanded: bool | str = False
    separate_operands: bool = False
    copied_to_out: bool = False
    out_dtype: str = "same"
    converted: str | None = None
    chain_of_views: bool = False
    copies: bool = False
    whole: bool = False
    keeps_zeros: bool = False
    sample_rank: int | None = None
    random: str | None = None
    foreach: bool | str = False
    backward: str | None = None
    float8: str | None = None
    complex32: bool = False

    def policy(self, device: str) -> str | None:
        """The autocast policy on ``device``, "cpu" or "accelerator"."""
        return self.autocast.get(device) if isinstance(self.autocast, dict) else self.autocast


@dataclass
class Declaration:
    """What the table knows about one operator."""

    schema: _schema.Schema
    forms: str
    kind: str  # "operator", "body" or "composite"
    mindspore: str | None
    promote: str | None
    view: bool
    differentiable: bool
    aliases: tuple[str, ...]
    dunder: str | None
    facts: Facts
    short: bool = True
    numbers: dict[str, str] = field(
        default_factory=dict
    )  # argument -> MindSpore's operator if it is a number
    function: object = None  # the callable
    method: object = None  # the same as a method of Tensor: without out=
    inplace: object = None
    writers: dict[str, str] = field(default_factory=dict)  # MindSpore's operator -> its in-place form
    npu: object = None  # the Python function for tensors of an NPU, where MindSpore has no operator
    body: object = None  # the Python function behind it, None for "operator"
    module: str = ""
    notes: str = ""
    names: list[str] = field(default_factory=list)


def autocast_codes(schema: _schema.Schema, facts: Facts) -> tuple:
    """(code on the CPU, code on an accelerator, message of a refusal), as the dispatcher takes them."""
    codes, message = [], None
    for device in ("cpu", "accelerator"):
        policy = facts.policy(device)
        if isinstance(policy, Refused):
            codes.append(_REFUSED)
            message = str(policy)
        elif policy in _POLICIES:
            codes.append(_POLICIES[policy])
        else:
            raise ValueError(
                f"{schema.name}: autocast policy {policy!r} is none of {sorted(_POLICIES, key=str)}"
            )
    return *codes, message


def derived(schema: _schema.Schema, kind: str, promote, facts: dict) -> Facts:
    """The facts that were given, and those that follow from the rest of a declaration."""
    facts = dict(facts)
    if facts.get("pointwise") is None:
        counted = any(p.type in ("int", "int[]", "Tensor[]") for p in schema.parameters)
        facts["pointwise"] = kind == "operator" and promote is not None and not counted
    for name in ("along", "native"):
        if isinstance(facts.get(name), str):
            facts[name] = (facts[name],)
    if facts.get("out_dtype") is None:
        creates = any(p.name == "device" for p in schema.parameters)
        facts["out_dtype"] = "creates" if creates else "cast" if promote is not None else "same"
    unknown = sorted(set(facts) - set(Facts.__dataclass_fields__))
    if unknown:
        raise TypeError(f"{schema.name}: {unknown[0]!r} is not a fact; see the docstring of op")
    made = Facts(**{name: value for name, value in facts.items() if value is not None})
    for name, choices in _CHOICES.items():
        value = getattr(made, name)
        if value is not None and value not in choices:
            raise ValueError(f"{schema.name}: {name} {value!r} is none of {', '.join(choices)}")
    named = made.along if isinstance(made.linear, str) else (*made.along, *made.linear)
    for name in named:
        schema.index(name)  # ValueError where the schema has no such argument
    return made
