"""Hooks that average gradients in their own dtype or in 16 bits."""

from __future__ import annotations

from .... import ops
from ... import collectives
from ...process_group import resolve

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _average(group, tensor):
    """A future of the average over a group (None: all processes), computed in place."""
    pg = resolve(group)
    tensor.div_(pg.size())
    return (
        collectives.all_reduce(tensor, group=pg, async_op=True)
        .get_future()
        .then(lambda future: future.value()[0])
    )


def allreduce_hook(process_group, bucket):
    """Averages a bucket in its own dtype. This is also the behaviour without a hook."""
    return _average(process_group, bucket.buffer())


def _compressed(process_group, bucket, dtype):
    buffer = bucket.buffer()
    return _average(process_group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(process_group, bucket):
    """Averages a bucket in float16."""
    return _compressed(process_group, bucket, ops.zeros(0).half().dtype)


def bf16_compress_hook(process_group, bucket):
    """Averages a bucket in bfloat16."""
    return _compressed(process_group, bucket, ops.zeros(0).bfloat16().dtype)


def _compressing(hook, dtype):
    def wrapped(hook_state, bucket):
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def restored(future):
            value = future.value()
            value = value[0] if isinstance(value, (list, tuple)) else value
            return buffer.copy_(value)

        return hook(hook_state, bucket).then(restored)

    return wrapped


def fp16_compress_wrapper(hook):
    """Wraps a hook so that it works on float16 gradients."""
    return _compressing(hook, ops.zeros(0).half().dtype)


def bf16_compress_wrapper(hook):
    """Wraps a hook so that it works on bfloat16 gradients."""
    return _compressing(hook, ops.zeros(0).bfloat16().dtype)
