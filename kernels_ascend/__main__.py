"""python -m kernels_ascend: for each fused operator, what is proven where, as a table."""

from __future__ import annotations

from msadapter.ops import declarations

from . import _mapping, mindspeed


def _names(body) -> set[str]:
    """MindSpore's operators that a function, or one that it calls here, names."""
    found = {constant for constant in body.__code__.co_consts if constant in _mapping.OPERATORS}
    for name in body.__code__.co_names:
        inner = body.__globals__.get(name)
        if hasattr(inner, "__code__") and inner.__module__ == body.__module__:
            found |= {constant for constant in inner.__code__.co_consts if constant in _mapping.OPERATORS}
    return found


def rows() -> list[tuple[str, str, str]]:
    """(operator, MindSpore's operators on Ascend, what stands for it without one) of every public fused operator."""
    import kernels_ascend

    bodies = {
        name.removeprefix("torch_npu."): one.body
        for name, one in declarations.items()
        if name.startswith("torch_npu.")
    }
    bodies |= {name: getattr(kernels_ascend, name) for name in kernels_ascend.__all__}
    found = []
    for name in sorted(bodies):
        mapped = _names(bodies[name])
        found.append((name, ", ".join(sorted(mapped)) or "-", "" if mapped else "table operators"))
    return found


def table() -> str:
    """The rows as Markdown, and the extensions of MindSpeed."""
    lines = [
        "| operator | MindSpore's operator (operands checked against its headers) | CPU | on a device |",
        "|---|---|---|---|",
    ]
    lines += [f"| {name} | {mapped} {rest} | proven by test | not run yet |" for name, mapped, rest in rows()]
    lines += ["", "MindSpeed's extensions: " + ", ".join(sorted(mindspeed.EXTENSIONS)) + "."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
