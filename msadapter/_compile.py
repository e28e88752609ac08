"""torch._compile: decorators for functions that PyTorch's compiler must not trace."""


def _disable_dynamo(fn=None, recursive=True):
    """Return the function unchanged."""
    return fn if fn is not None else (lambda f: f)
