"""How the files of a distributed checkpoint are read, in one process."""

from __future__ import annotations

import msadapter as torch
import msadapter.distributed.checkpoint as dcp
from msadapter.distributed.checkpoint import filesystem
from msadapter.distributed.checkpoint.planner import LoadItemType, LoadPlan, ReadItem


def test_a_saved_tensor_is_read_once_for_all_its_parts(tmp_path, monkeypatch):
    """Also where the plan names the parts of several tensors in turn, which lie in one file."""
    state = {"a": torch.arange(8.0), "b": -torch.arange(8.0)}
    dcp.save(state, checkpoint_id=tmp_path, no_dist=True)
    read = {name: torch.zeros(8) for name in state}
    reader, planner = dcp.FileSystemReader(tmp_path), dcp.DefaultLoadPlanner()
    metadata = reader.read_metadata()
    planner.set_up_planner(read, metadata, True)
    reader.set_up_storage_reader(metadata, True)
    whole = {item.storage_index.fqn: item.storage_index for item in planner.create_local_plan().items}
    items = [
        ReadItem(LoadItemType.TENSOR, whole[name], (start,), whole[name], (start,), (2,))
        for start in (0, 2, 4, 6)
        for name in state
    ]
    loads, load = [], filesystem.load
    monkeypatch.setattr(filesystem, "load", lambda *a, **k: loads.append(a) or load(*a, **k))
    monkeypatch.setattr(planner, "resolve_tensor", lambda item: _part(read, item))
    reader.read_data(LoadPlan(items), planner).wait()
    assert all(torch.equal(read[name], state[name]) for name in state)
    assert len(loads) == 2


def _part(read, item):
    start, length = item.dest_offsets[0], item.lengths[0]
    return read[item.dest_index.fqn][start : start + length]
