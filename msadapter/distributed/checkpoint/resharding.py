"""Computes the overlap of two chunks of a tensor."""

__all__ = []


def _check_shard_metadata_pair_overlap(shard1, shard2) -> bool:
    """True if two chunks share elements."""
    return all(
        a < b + m and b < a + n
        for a, n, b, m in zip(shard1.offsets, shard1.sizes, shard2.offsets, shard2.sizes, strict=True)
    )


def _shards_get_overlap_region_wrt_saved_tensor(saved_shard, current_shard) -> list:
    """For each dimension: (dimension, start in the saved chunk, start in the current one, length)."""
    rows = zip(
        saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes, strict=True
    )
    regions = []
    for dim, (saved, saved_size, current, current_size) in enumerate(rows):
        start = max(saved, current)
        end = min(saved + saved_size, current + current_size)
        regions.append((dim, start - saved, start - current, end - start))
    return regions
