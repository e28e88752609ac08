"""Creates the items of plans, and finds the object of an item."""

import io
from dataclasses import replace

from ..._values.size import Size
from ...tensor import Tensor
from .._shard.sharded_tensor import ShardedTensor
from ..tensor._utils import compute_local_shape_and_global_offset
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties
from .planner import (
    BytesIOWriteData,
    LoadItemType,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from .resharding import _check_shard_metadata_pair_overlap, _shards_get_overlap_region_wrt_saved_tensor

__all__ = ["create_read_items_for_chunk_list"]


def _chunk_of_shard(metadata) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(Size(metadata.shard_offsets), Size(metadata.shard_sizes))


def _chunk_for_tensor(tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.size()))


def _create_write_item_for_shard(fqn, sharded, shard) -> WriteItem:
    known = sharded.metadata().tensor_properties
    properties = TensorProperties(
        **{
            name: getattr(known, name)
            for name in ("dtype", "layout", "requires_grad", "memory_format", "pin_memory")
            if getattr(known, name, None) is not None
        }
    )
    data = TensorWriteData(_chunk_of_shard(shard), properties, Size(sharded.metadata().size))
    return WriteItem(MetadataIndex(fqn, shard.shard_offsets), WriteItemType.SHARD, tensor_data=data)


def _create_write_item_for_tensor(fqn, tensor) -> WriteItem:
    chunk = _chunk_for_tensor(tensor)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor), Size(tensor.size()))
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR, tensor_data=data)


def _create_chunk_from_dtensor(tensor) -> ChunkStorageMetadata:
    sizes, offsets = compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements
    )
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


def _create_write_items_for_dtensor(fqn, tensor) -> list:
    """The item for this process's shard; empty if the shard is empty or the process is not in the mesh."""
    chunk = _create_chunk_from_dtensor(tensor)
    if tensor.device_mesh.get_coordinate() is None or 0 in chunk.sizes:
        return []
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor.to_local()), Size(tensor.size()))
    return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD, tensor_data=data)]


def _create_write_item_for_bytesio(fqn, value) -> WriteItem:
    known = BytesIOWriteData(len(value.getbuffer())) if isinstance(value, io.BytesIO) else None
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO, bytes_io_data=known)


def _create_write_items(fqn: str, object) -> list:
    """The items that this process can write for an entry of its state_dict."""
    if hasattr(object, "__create_write_items__"):
        return object.__create_write_items__(fqn, object)
    if isinstance(object, ShardedTensor):
        return [_create_write_item_for_shard(fqn, object, shard.metadata) for shard in object.local_shards()]
    if isinstance(object, Tensor):
        return [_create_write_item_for_tensor(fqn, object)]
    return [_create_write_item_for_bytesio(fqn, object)]


def create_read_items_for_chunk_list(fqn, checkpoint_md, local_chunks) -> list:
    """The items that read each local chunk from the saved chunks that overlap with it."""
    items = []
    for wanted_index, wanted in enumerate(local_chunks):
        for saved_index, saved in enumerate(checkpoint_md.chunks):
            if not _check_shard_metadata_pair_overlap(wanted, saved):
                continue
            regions = _shards_get_overlap_region_wrt_saved_tensor(saved, wanted)
            from_saved, to_wanted, lengths = ([region[i] for region in regions] for i in (1, 2, 3))
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, wanted.offsets, wanted_index),
                    Size(to_wanted),
                    MetadataIndex(fqn, saved.offsets, saved_index),
                    Size(from_saved),
                    Size(lengths),
                )
            )
    return items


def _create_read_items(fqn: str, md, obj) -> list:
    """The items that must be read for an entry of the state_dict."""
    if isinstance(md, BytesStorageMetadata):
        nowhere, name = Size((0,)), MetadataIndex(fqn)
        return [ReadItem(LoadItemType.BYTE_IO, name, nowhere, name, nowhere, nowhere)]
    if hasattr(obj, "__create_chunk_list__"):
        chunks = obj.__create_chunk_list__()
    elif isinstance(obj, ShardedTensor):
        chunks = [_chunk_of_shard(shard.metadata) for shard in obj.local_shards()]
    elif isinstance(obj, Tensor):
        chunks = [_chunk_for_tensor(obj)]
    else:
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}"
        )
    return create_read_items_for_chunk_list(fqn, md, chunks)


def find_state_dict_object(state_dict, index: MetadataIndex):
    """The tensor or object of an item; for a sharded tensor, the shard at the item's offset."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if hasattr(found, "__get_tensor_shard__"):
        return found.__get_tensor_shard__(index)
    if isinstance(found, ShardedTensor):
        for shard in found.local_shards():
            if index.offset is None or Size(shard.metadata.shard_offsets) == index.offset:
                return shard.tensor
        raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")
    if index.offset is not None:
        if isinstance(found, Tensor) and not any(index.offset):
            return found
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return found


def dedup_save_plans(all_plans, save_to_lowest_rank: bool = False) -> list:
    """Removes duplicates: an item in several plans stays with the lowest rank or with the rank that writes the least."""
    owners, items = {}, {}
    for place, plan in enumerate(all_plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(place)
            items[item.index] = item
    load, kept = [0] * len(all_plans), [set() for _ in all_plans]
    for index, places in owners.items():
        chosen = min(places) if save_to_lowest_rank else min(places, key=lambda place: load[place])
        kept[chosen].add(index)
        load[chosen] += items[index].tensor_storage_size() or 1
    return [
        replace(plan, items=[item for item in plan.items if item.index in own])
        for plan, own in zip(all_plans, kept, strict=True)
    ]


def _create_default_metadata_only_plan(state_dict) -> SavePlan:
    """The items of a state_dict for which only metadata is needed."""
    return SavePlan([item for fqn, value in state_dict.items() for item in _create_write_items(fqn, value)])
