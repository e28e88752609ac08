"""Options of checkpoints that programs give seldom: files, threads, names and sizes, in one process."""

from __future__ import annotations

import io
import os

import pytest

import msadapter as torch
import msadapter.distributed.checkpoint as dcp
from msadapter import nn
from msadapter.distributed.checkpoint import default_planner, filesystem, hf_storage, planner_helpers
from msadapter.distributed.checkpoint import state_dict as sd
from msadapter.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from msadapter.distributed.checkpoint.planner import LoadItemType, WriteItemType
from msadapter.distributed.checkpoint.utils import CheckpointException
from msadapter.distributed.tensor import DTensor, Shard, distribute_tensor

STATE = {
    "a": torch.arange(12.0).reshape(3, 4),
    "b": torch.full((5,), 3.0, dtype=torch.bfloat16),
    "text": "words",
    "number": 7,
}


def saved(path, state=None, **options):
    dcp.save(
        state or STATE, checkpoint_id=path, storage_writer=dcp.FileSystemWriter(path, **options), no_dist=True
    )
    return sorted(p.name for p in path.iterdir() if p.name != ".metadata")


def read(path, **state):
    found = {"a": torch.zeros(3, 4), "b": torch.zeros(5).bfloat16(), "text": "", "number": 0} | state
    dcp.load(found, checkpoint_id=path, no_dist=True)
    return found


# ---- folders of files
@pytest.mark.parametrize("options, files", [
    ({}, 1), ({"thread_count": 2}, 2), ({"thread_count": 9}, 2), ({"single_file_per_rank": False}, 4),
    ({"sync_files": False}, 1),
])  # fmt: skip
def test_files_of_a_rank(tmp_path, monkeypatch, options, files):
    synced = []
    monkeypatch.setattr(filesystem.os, "fsync", synced.append)
    assert saved(tmp_path, **options) == [f"__0_{k}.distcp" for k in range(files)]
    assert len(synced) == (0 if "sync_files" in options else files + 2)  # the metadata and the folder too
    found = read(tmp_path)
    assert torch.equal(found["a"], STATE["a"]) and torch.equal(found["b"], STATE["b"])
    assert (found["text"], found["number"]) == ("words", 7)


def test_objects_are_read_from_where_they_are(tmp_path):
    saved(tmp_path)
    metadata = dcp.FileSystemReader(tmp_path).read_metadata()
    assert metadata.version == filesystem.CURRENT_DCP_VERSION == "1.0.0"
    places = {index.fqn: info for index, info in metadata.storage_data.items()}
    assert sorted(p.offset for p in places.values())[0] == 0 and len({p.offset for p in places.values()}) == 4
    objects = [places["text"].offset, places["number"].offset]
    assert max(objects) < min(places["a"].offset, places["b"].offset)  # objects stand before tensors
    ends = sum(p.length for p in places.values())
    assert os.path.getsize(tmp_path / "__0_0.distcp") == ends
    for name in ("text", "number"):
        found = {name: None}
        dcp.load(found, checkpoint_id=tmp_path, no_dist=True)
        assert found[name] == STATE[name]


def test_what_is_there_already(tmp_path):
    saved(tmp_path)
    with pytest.raises(CheckpointException, match="already exists and self.overwrite=False"):
        saved(tmp_path, overwrite=False)
    assert read(tmp_path)["number"] == 7
    saved(tmp_path, STATE | {"number": 8})
    assert read(tmp_path)["number"] == 8
    other = tmp_path / "other"
    writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
    dcp.save(STATE, checkpoint_id=other, storage_writer=writer, no_dist=True)  # the id decides
    assert read(other)["number"] == 7 and writer.checkpoint_id == other
    writer = dcp.FileSystemWriter(other, overwrite=False)
    writer.set_up_storage_writer(False)
    assert writer.prepare_local_plan(3) == 3 and (other / ".metadata").exists()  # only the coordinator looks
    for options in ({"_extensions": ["zip"]},):
        with pytest.raises(NotImplementedError, match="stream extensions"):
            dcp.FileSystemWriter(tmp_path, **options)


def test_a_checkpoint_that_was_not_finished(tmp_path, monkeypatch):
    saved(tmp_path)

    def fail(self, *args):
        raise OSError("the disk is full")

    monkeypatch.setattr(filesystem.FileSystemWriter, "write_data", fail)
    with pytest.raises(CheckpointException, match="the disk is full"):
        saved(tmp_path)
    with pytest.raises(CheckpointException, match="metadata"):  # the old one is gone with the first byte
        read(tmp_path)


def test_only_the_values_of_a_view_are_written(tmp_path):
    saved(tmp_path, {"v": torch.arange(10000.0)[:3]})
    assert os.path.getsize(tmp_path / "__0_0.distcp") < 10000
    found = {"v": torch.zeros(3)}
    dcp.load(found, checkpoint_id=tmp_path, no_dist=True)
    assert found["v"].tolist() == [0, 1, 2]
    view = torch.arange(6.0)[2:4]
    made = filesystem._alone(view)
    assert made.untyped_storage().nbytes() == 8 and made.tolist() == [2, 3]
    whole = torch.ones(2)
    assert filesystem._alone(whole).data_ptr() == whole.data_ptr()


def test_names_that_lead_out_of_the_folder(tmp_path):
    reader = dcp.FileSystemReader(tmp_path)
    assert reader._inside("part/file") == tmp_path / "part/file"
    for name in ("/etc/passwd", "../file", "a/../../file", ".."):
        with pytest.raises(RuntimeError, match="which is not in its folder"):
            reader._inside(name)


# ---- sizes and kinds
def test_sizes_that_differ(tmp_path):
    saved(tmp_path)
    for wrong in (torch.zeros(4, 3), torch.zeros(3), torch.zeros(12)):
        with pytest.raises(CheckpointException, match="Size mismatch between saved"):
            read(tmp_path, a=wrong)
    with pytest.raises(CheckpointException, match="Invalid checkpoint metadata for a"):
        read(tmp_path, a=3)
    assert read(tmp_path, text=torch.zeros(2))["text"] == "words"  # an object takes the place of anything
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: more"):
        read(tmp_path, more=torch.zeros(1))


def test_what_must_be_read_for_a_part():
    """A tensor saved in two rows of pieces is read into one, from the overlaps."""
    size, piece = torch.Size, ChunkStorageMetadata
    known = TensorStorageMetadata(
        TensorProperties(dtype=torch.float32),
        size([6, 4]),
        [piece(size([0, 0]), size([2, 4])), piece(size([2, 0]), size([4, 4]))],
    )
    wanted = [piece(size([1, 1]), size([3, 2])), piece(size([4, 0]), size([2, 4]))]
    items = planner_helpers.create_read_items_for_chunk_list("t", known, wanted)
    found = [
        (
            i.dest_index.index,
            tuple(i.dest_offsets),
            i.storage_index.index,
            tuple(i.storage_offsets),
            tuple(i.lengths),
        )
        for i in items
    ]
    assert found == [
        (0, (0, 0), 0, (1, 1), (1, 2)),
        (0, (1, 0), 1, (0, 1), (2, 2)),
        (1, (0, 0), 1, (2, 0), (2, 4)),
    ]
    assert {i.type for i in items} == {LoadItemType.TENSOR} and items[1].dest_index.offset == size([1, 1])


def test_plans_of_planners(tmp_path):
    planner = dcp.DefaultSavePlanner()
    planner.set_up_planner({"m": {"w": torch.ones(2)}, "n": 3}, None, True)
    plan = planner.create_local_plan()
    assert [i.index.fqn for i in plan.items] == ["m.w", "n"] and plan.planner_data == planner.mappings
    plans, metadata = planner.create_global_plan([plan])
    assert metadata.planner_data == {"m.w": ("m", "w"), "n": ("n",)} and planner.metadata is metadata
    assert planner.finish_plan(plans[0]) is plans[0] is planner.plan and planner.global_plan is plans
    tensor, thing = plans[0].items
    assert planner.resolve_data(tensor).tolist() == [1, 1] and tensor.type == WriteItemType.TENSOR
    assert isinstance(planner.resolve_data(thing), io.BytesIO) and thing.type == WriteItemType.BYTE_IO
    flat = dcp.DefaultSavePlanner(flatten_state_dict=False)
    flat.set_up_planner({"n": 3}, None, True)
    plan = flat.create_local_plan()
    assert plan.planner_data is None and flat.create_global_plan([plan])[1].planner_data is None
    rows = default_planner.narrow_tensor_by_index(torch.arange(6.0).reshape(3, 2), (1, 0), (2, 2))
    assert rows.tolist() == [[2, 3], [4, 5]]


# ---- safetensors
def test_folders_of_safetensors(tmp_path, monkeypatch):
    counts = []
    pool = hf_storage.ThreadPoolExecutor
    monkeypatch.setattr(hf_storage, "ThreadPoolExecutor", lambda count: counts.append(count) or pool(count))
    state = {name: STATE[name] for name in "ab"}
    for threads in (0, 1, 3):
        writer = dcp.HuggingFaceStorageWriter(tmp_path, thread_count=threads)
        dcp.save(state, storage_writer=writer, no_dist=True)
        found = {name: torch.zeros_like(value) for name, value in state.items()}
        reader = dcp.HuggingFaceStorageReader(tmp_path, thread_count=threads)
        dcp.load(found, storage_reader=reader, no_dist=True)
        assert all(torch.equal(found[name], state[name]) for name in state)
        assert counts == [max(threads, 1)] * 2
        counts.clear()
    metadata = reader.read_metadata()
    assert isinstance(metadata, Metadata) and metadata.storage_meta.load_id == reader.load_id
    assert metadata.state_dict_metadata["a"].size == torch.Size([3, 4])
    assert metadata.state_dict_metadata["b"].properties.dtype is torch.bfloat16
    info = metadata.storage_data[MetadataIndex("a", torch.Size([0, 0]))]
    assert info.relative_path.endswith("model-00001-of-00001.safetensors") and info.shape == (3, 4)
    wrong = {"a": torch.zeros(4, 3), "b": torch.zeros(5).bfloat16()}
    with pytest.raises(CheckpointException, match="Size mismatch"):
        dcp.load(wrong, storage_reader=dcp.HuggingFaceStorageReader(tmp_path), no_dist=True)


def test_where_pieces_and_wholes_go(tmp_path):
    writer = dcp.HuggingFaceStorageWriter(
        tmp_path, save_distributed=True, enable_consolidation=True, thread_count_consolidation=2
    )
    assert str(writer.path) == str(tmp_path / "sharded") and writer.consolidated_output_path == str(tmp_path)
    dcp.save({"a": STATE["a"]}, storage_writer=writer, no_dist=True)
    names = sorted(p.name for p in tmp_path.rglob("*.safetensors"))
    assert names == ["model-00001-of-00001.safetensors", "shard-00001-model-00001-of-00001.safetensors"]
    plain = dcp.HuggingFaceStorageWriter(tmp_path)
    assert plain.consolidated_output_path is None and str(plain.path) == str(tmp_path)
    made = dcp.DefaultSavePlanner()
    made.set_up_planner({}, None, True)
    plans = [made.create_local_plan()] * 2
    assert [p.storage_data for p in writer.prepare_global_plan(plans)] == [1, 2]
    assert [p.storage_data for p in plain.prepare_global_plan(plans)] == [None, None]


# ---- states of models
class Tied(nn.Module):
    """A model with one weight of two names, and a buffer."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.two.weight = self.one.weight
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        return self.two(self.one(x))


def test_shared_parameters(world):
    torch.manual_seed(0)
    model, other = Tied(), Tied()
    assert set(sd.get_model_state_dict(model)) == {"one.weight", "two.weight", "count"}
    model.one.weight.requires_grad_(False)
    skip = sd.StateDictOptions(ignore_frozen_params=True)
    assert set(sd.get_model_state_dict(model, options=skip)) == {"count"}
    model.one.weight.requires_grad_(True)
    optimizers = [torch.optim.Adam(m.parameters(), 0.1) for m in (model, other)]
    model(torch.ones(1, 2)).sum().backward()
    optimizers[0].step()
    state = sd.get_optimizer_state_dict(model, optimizers[0])
    assert list(state["state"]) == ["one.weight"] and state["param_groups"][0]["params"] == ["one.weight"]
    state["state"] = {"two.weight": state["state"]["one.weight"]}  # the other name is as good
    state["param_groups"][0] |= {"params": ["two.weight"], "lr": 0.5}
    sd.set_optimizer_state_dict(other, optimizers[1], state)
    assert optimizers[1].param_groups[0]["lr"] == 0.5
    first, second = (o.state[o.param_groups[0]["params"][0]]["exp_avg"] for o in optimizers)
    assert torch.equal(first, second) and first.any()


def test_whole_states_of_sharded_models(world, torch_by_name):
    model = nn.Linear(2, 4)
    whole = {name: value.clone() for name, value in model.state_dict().items()}
    model.weight = nn.Parameter(distribute_tensor(model.weight.detach(), world, [Shard(0)]))
    assert isinstance(sd.get_model_state_dict(model)["weight"], DTensor)
    found = sd.get_model_state_dict(model, options=sd.StateDictOptions(full_state_dict=True))
    assert type(found["weight"]) is torch.Tensor and torch.equal(found["weight"], whole["weight"])
    offloaded = sd.StateDictOptions(full_state_dict=True, cpu_offload=True)
    found = sd.get_model_state_dict(model, options=offloaded)
    assert set(found) == {"weight", "bias"} and not found["bias"].requires_grad
    only = sd.get_model_state_dict(model, options=sd.StateDictOptions(cpu_offload=True))
    assert isinstance(only["weight"], DTensor)
    for options in (
        sd.StateDictOptions(full_state_dict=True),
        sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True),
    ):
        given = {name: value + 1 for name, value in whole.items()}
        result = sd.set_model_state_dict(model, given, options=options)
        assert result.missing_keys == result.unexpected_keys == []
        assert model.weight.placements == (Shard(0),)
        assert torch.equal(model.weight.full_tensor(), given["weight"])
        assert torch.equal(model.bias, given["bias"])
        sd.set_model_state_dict(model, whole, options=options)
    strange = whole | {"more": torch.ones(1)}
    with pytest.raises(RuntimeError, match="more"):
        sd.set_model_state_dict(model, strange)
    loose = sd.StateDictOptions(strict=False)
    assert sd.set_model_state_dict(model, strange, options=loose).unexpected_keys == ["more"]
    assert sd.set_model_state_dict(model, {}, options=loose).missing_keys == ["weight", "bias"]


@pytest.mark.parametrize("spread", [False, True])
def test_parameters_without_memory_are_replaced(world, torch_by_name, spread):
    """A model of which parts are on "meta" has the values after its state was loaded."""
    whole = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 3)).state_dict()
    options = sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=spread)
    model = nn.Sequential(nn.Linear(2, 4, device="meta"), nn.Linear(4, 3))
    model[0].weight = nn.Parameter(distribute_tensor(model[0].weight.detach(), world, [Shard(0)]))
    sd.set_model_state_dict(model, dict(whole), options=options)
    assert model[0].weight.placements == (Shard(0),)
    assert torch.equal(model[0].weight.full_tensor(), whole["0.weight"])
    for name in ("0.bias", "1.weight", "1.bias"):
        assert torch.equal(model.get_parameter(name), whole[name]) and model.get_parameter(name).requires_grad


@pytest.mark.parametrize("flat", [False, True])
def test_states_of_optimizers_from_the_first_rank(world, torch_by_name, flat):
    torch.manual_seed(0)
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    for m in (model, other):
        m.weight = nn.Parameter(distribute_tensor(m.weight.detach(), world, [Shard(0)]))
    groups = lambda m: [{"params": [m.weight], "lr": 0.1}, {"params": [m.bias], "lr": 0.2}]  # noqa: E731
    one, two = torch.optim.Adam(groups(model)), torch.optim.Adam(groups(other), lr=0.7)
    model.weight.grad = distribute_tensor(torch.ones(2, 2), world, [Shard(0)])
    model.bias.grad = torch.ones(2)
    one.step()
    options = sd.StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=flat)
    state = sd.get_optimizer_state_dict(model, one, options=options)
    moment = state["state.weight.exp_avg"] if flat else state["state"]["weight"]["exp_avg"]
    assert type(moment) is torch.Tensor and moment.shape == (2, 2)
    if flat:
        assert state["param_groups.weight.lr"] == 0.1 and state["param_groups.bias.lr"] == 0.2
        assert not any(key.endswith(".params") for key in state)
    loading = sd.StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True, flatten_optimizer_state_dict=flat
    )
    for chosen in (loading, options):
        two = torch.optim.Adam(groups(other), lr=0.7)
        for group in two.param_groups:
            group["lr"] = 0.9
        sd.set_optimizer_state_dict(other, two, state, options=chosen)
        assert [group["lr"] for group in two.param_groups] == [0.1, 0.2]
        found = two.state[other.weight]["exp_avg"]
        assert found.placements == (Shard(0),) and torch.equal(found.full_tensor(), moment)
        assert float(two.state[other.bias]["step"]) == 1
