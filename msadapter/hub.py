"""torch.hub. Loading code from the network is not supported; use torch.load for files."""

import os
import re
import sys
from urllib.parse import urlparse  # noqa: F401  torch.hub has it, and libraries take it from there

from ._errors import unsupported_function

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]
_folder = None

try:
    from tqdm import tqdm
except ImportError:  # PyTorch does not need it either

    class tqdm:  # type: ignore[no-redef]
        """A progress bar in words, for an environment without the package tqdm. Used as a context manager."""

        def __init__(self, total=None, disable=False, unit=None, *args, **kwargs):
            self.total, self.disable, self.n = total, disable, 0

        def update(self, n) -> None:
            """Count ``n`` further units and print how far it is, in percent of the total if that is known."""
            self.n += n
            if not self.disable:
                done = f"{self.n} bytes" if self.total is None else f"{100 * self.n / float(self.total):.1f}%"
                sys.stderr.write(f"\r{done}")
                sys.stderr.flush()

        def set_description(self, *args, **kwargs) -> None:
            """Accepted without effect."""

        def close(self) -> None:
            """End the line."""
            self.disable = True

        def __enter__(self):
            return self

        def __exit__(self, exc_type, exc_val, exc_tb) -> None:
            if not self.disable:
                sys.stderr.write("\n")


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the start of the hash in the name of a file of weights


def _get_torch_home() -> str:
    """Return the folder of this user's downloaded files and settings."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")


def get_dir() -> str:
    """Return the folder of downloaded files."""
    return _folder or os.path.join(_get_torch_home(), "hub")


def set_dir(d) -> None:
    """Set the folder of downloaded files."""
    global _folder
    _folder = os.path.expanduser(d)


download_url_to_file, help, list, load, load_state_dict_from_url = (
    unsupported_function(
        f"torch.hub.{name}",
        "loading from the network is not supported",
        f"Refused: {name} would use the network.",
    )
    for name in ("download_url_to_file", "help", "list", "load", "load_state_dict_from_url")
)
