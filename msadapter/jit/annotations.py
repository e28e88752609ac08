"""Type annotations of TorchScript."""


def is_function_or_method(the_callable) -> bool:
    """Return whether the object is a Python function or method."""
    import inspect

    return inspect.isfunction(the_callable) or inspect.ismethod(the_callable)
