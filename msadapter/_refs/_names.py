"""How the modules of torch._refs find their functions."""

from ..ops._declare import namespaces


def finder(space: str):
    """Return the `__getattr__` of a module whose functions are the operators of one namespace.

    torch._refs itself also has those that are methods only, such as view, and the in-place ones.
    """
    spaces = (space, "Tensor") if space == "torch" else (space,)

    def __getattr__(name: str):
        found = None
        if not name.startswith("_"):
            found = next((namespaces[own][name] for own in spaces if name in namespaces[own]), None)
        if found is None:
            module = "torch._refs" if space == "torch" else f"torch._refs.{space}"
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found

    return __getattr__
