"""Helpers that libraries import from torch.distributed.utils."""
from . import collectives


def _verify_param_shape_across_processes(process_group, tensors, logger=None) -> None:
    """ValueError if the processes do not hold parameters of equal shapes."""
    from .objects import all_gather_object
    from .setup import get_world_size

    shapes = [tuple(t.shape) for t in tensors]
    everyone = [None] * get_world_size(process_group)
    all_gather_object(everyone, shapes, process_group)
    if any(other != shapes for other in everyone):
        raise ValueError("the parameters have different shapes on the processes")


def _sync_module_states(module, process_group, broadcast_bucket_size, src, params_and_buffers_to_ignore=(),
                        broadcast_buffers=True) -> None:
    """Give all processes the parameters and buffers of `src`."""
    from ..autograd import no_grad

    with no_grad():
        named = list(module.named_parameters()) + (list(module.named_buffers()) if broadcast_buffers else [])
        for name, tensor in named:
            if name not in params_and_buffers_to_ignore:
                collectives.broadcast(tensor.detach(), src, process_group)
