"""Two versions: this project's own, and the one of the torch surface that it offers."""

MSADAPTER_VERSION = "0.1.0"
__version__ = "2.7.1"
