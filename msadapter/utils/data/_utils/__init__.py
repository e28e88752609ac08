"""Parts of the DataLoader."""

from . import collate, fetch, worker
