"""Parts of distributed checkpoints that do not work yet: their names exist, using them says so."""


def refuse(name: str):
    """A function that raises NotImplementedError."""

    def refused(*args, **kwargs):
        raise NotImplementedError(f"torch.distributed.checkpoint.{name} is not supported (docs/coverage.md)")

    refused.__name__ = name.rpartition(".")[2]
    refused.__doc__ = f"{name}: not supported."
    return refused


def refusing_class(name: str, *bases):
    """A class (to derive from and for isinstance) whose objects cannot be made."""
    return type(name.rpartition(".")[2], bases, {"__init__": refuse(name), "__module__": __package__,
                                                 "__doc__": f"{name}: not supported."})
