"""torch._dynamo.eval_frame: the class of compiled modules, for isinstance checks. torch.compile returns the module itself here."""

__all__ = ["OptimizedModule"]


class OptimizedModule:
    """A compiled module; none is made here."""
