"""The default planners of torch.distributed.checkpoint."""

import io
from collections import ChainMap
from dataclasses import replace

from ... import ops
from ...serialization import load, save
from ._nested_dict import flatten_state_dict
from ._traverse import set_element
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .planner_helpers import _create_read_items, _create_write_items, dedup_save_plans, find_state_dict_object

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Each process plans to write all that it has. The coordinator assigns each duplicated piece to one process."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors=None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan
        return self.plan

    def create_global_plan(self, all_plans):
        plans, metadata = create_default_global_save_plan(
            dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        )
        if self.flatten_state_dict:
            metadata = replace(metadata, planner_data=dict(ChainMap(*(plan.planner_data for plan in plans))))
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The object of an index. Subclasses may override this to compute it."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item, object):
        """Converts objects that are not tensors to bytes."""
        if write_item.type == WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            save(object, stream)
            return stream
        return object


class DefaultLoadPlanner(LoadPlanner):
    """Each process reads what its state_dict contains into the existing tensors."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False) -> None:
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan) -> list:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item, value) -> None:
        loaded, name = load(value, weights_only=False), read_item.dest_index.fqn
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)
        else:
            self.state_dict[name] = loaded

    def resolve_tensor(self, read_item):
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item, tensor) -> None:
        """Does nothing, because the data was read in place."""

    def lookup_tensor(self, index):
        """The tensor of an index. Subclasses may override this."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item, tensor):
        """The part of the tensor into which an item is read."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads everything in the checkpoint (or the entries of `keys`) into an empty dict."""

    def __init__(self, keys=None, *args, **kwargs):
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _wanted(self, key, metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        names, path = [], (metadata.planner_data or {}).get(key, ())
        for part in path:
            names.append(".".join([*names[-1:], str(part)]))
        return any(name in self.keys for name in names)

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False) -> None:
        if state_dict:
            raise AssertionError("the state_dict must be empty")
        for key, value in metadata.state_dict_metadata.items():
            if not self._wanted(key, metadata):
                continue
            if isinstance(value, TensorStorageMetadata):
                value = ops.empty(tuple(value.size), dtype=value.properties.dtype)
            if metadata.planner_data is not None and key in metadata.planner_data:
                set_element(state_dict, metadata.planner_data[key], value)
            else:
                state_dict[key] = value
        super().set_up_planner(state_dict, metadata, is_coordinator)


def narrow_tensor_by_index(tensor, offsets, sizes):
    """tensor[offset:offset + size, ...]."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if size < tensor.size(dim):
            tensor = tensor.narrow(dim, offset, size)
    return tensor


def create_default_local_save_plan(state_dict, is_coordinator: bool) -> SavePlan:
    """A plan to write everything that this process has. The coordinator removes duplicates."""
    return SavePlan([item for fqn, value in state_dict.items() for item in _create_write_items(fqn, value)])


def create_default_global_save_plan(all_plans, rewrite_index_hints: bool = True):
    """(plans, Metadata): chunks are numbered in the order of the plans."""
    described, plans = {}, []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type != WriteItemType.SHARD and name in described:
                raise AssertionError(f"{name} is written twice")
            if item.type == WriteItemType.BYTE_IO:
                described[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            whole = described.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = replace(item, index=type(item.index)(name, item.index.offset, len(whole.chunks)))
            whole.chunks.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(described)


def create_default_local_load_plan(state_dict, metadata, strict: bool = True) -> LoadPlan:
    """A plan of what must be read. Raises RuntimeError for a missing name and ValueError for a different size."""
    items = []
    for fqn, value in state_dict.items():
        known = metadata.state_dict_metadata.get(fqn)
        if known is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        size = getattr(value, "size", None)
        if (
            isinstance(known, TensorStorageMetadata)
            and size is not None
            and tuple(known.size) != tuple(size())
        ):
            raise ValueError(f"Size mismatch between saved {known.size} and current: {size()} for {fqn}")
        items += _create_read_items(fqn, known, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans) -> list:
    """Returns the plans unchanged."""
    return all_plans
