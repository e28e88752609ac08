"""torch._compile: decorators for what a compiler shall leave alone."""


def _disable_dynamo(fn=None, recursive=True):
    """The function itself."""
    return fn if fn is not None else (lambda f: f)
