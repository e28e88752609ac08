"""torch.backends.opt_einsum: the order of contractions in einsum."""

import importlib
import importlib.util

from ._flags import make_flags

enabled = True
strategy = "auto"
flags = make_flags(globals(), ("enabled", "strategy"))


def is_available() -> bool:
    """Return whether the package opt_einsum is installed."""
    return importlib.util.find_spec("opt_einsum") is not None


def get_opt_einsum():
    """Return the package opt_einsum, or None."""
    return importlib.import_module("opt_einsum") if is_available() else None
