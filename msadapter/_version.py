"""This project's own version (torch.__version__ is the version of the torch surface, see alias)."""
MSADAPTER_VERSION = "0.1.0"
