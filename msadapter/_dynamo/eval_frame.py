"""torch._dynamo.eval_frame: the class of compiled modules, for isinstance checks.

torch.compile returns the module itself here, so there are no instances.
"""

__all__ = ["OptimizedModule"]


class OptimizedModule:
    """A compiled module. There are no instances."""
