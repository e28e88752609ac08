"""Converts between distributed checkpoints and files of torch.save in one process."""

from __future__ import annotations

from pathlib import Path

from ... import serialization
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .state_dict_loader import _load_state_dict
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path) -> None:
    """Converts a distributed checkpoint to one file of torch.save. The whole checkpoint must fit into memory."""
    state: dict = {}
    _load_state_dict(
        state,
        storage_reader=FileSystemReader(dcp_checkpoint_dir),
        planner=_EmptyStateDictLoadPlanner(),
        no_dist=True,
    )
    serialization.save(state, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir) -> None:
    """Converts a file of torch.save to a distributed checkpoint. The whole file must fit into memory."""
    state = serialization.load(torch_save_path, map_location="cpu", weights_only=False)
    Path(dcp_checkpoint_dir).mkdir(parents=True, exist_ok=True)
    save(state, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
