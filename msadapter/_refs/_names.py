"""How the modules of torch._refs find their functions."""

from ..ops._declare import namespaces


def finder(space: str):
    """Return the `__getattr__` of a module whose functions are the operators of one namespace."""

    def __getattr__(name: str):
        found = None if name.startswith("_") else namespaces[space].get(name)
        if found is None:
            module = "torch._refs" if space == "torch" else f"torch._refs.{space}"
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found

    return __getattr__
