"""Base classes of layers with weights: tensor parallel group, initialisation, state of 8-bit training."""

import io

from .... import Tensor, autograd, cuda, empty, nn, no_grad, serialization, uint8
from ...._errors import unsupported
from ....distributed import get_world_size
from ..fp8 import no_eight_bits


def initialize_ub(*args, **kwargs):
    """Buffers to overlap communication with products. Not supported: raises NotImplementedError."""
    raise unsupported("transformer_engine", "tp_comm_overlap is not supported")


class Layer(nn.Module):
    """A module whose parameters are initialised with the random state of the tracker."""

    get_rng_state_tracker = rng_tracker_name = None

    def _new_parameter(self, name, shape, dtype, device, init, dim=None) -> None:
        """Creates a parameter with `init`, under the tracker's random state. `dim` is split over the ranks."""
        parameter = nn.Parameter(empty(shape, dtype=dtype, device=_device(device)))
        self.register_parameter(name, parameter)
        if dim is not None:
            parameter.tensor_model_parallel, parameter.partition_dim, parameter.partition_stride = (
                True,
                dim,
                1,
            )
        if parameter.device.type == "meta":
            return
        tracker = self.get_rng_state_tracker() if self.get_rng_state_tracker is not None else None
        if tracker is None:
            _fill(parameter, init)
            return
        with tracker.fork(self.rng_tracker_name) if self.rng_tracker_name else tracker.fork():
            _fill(parameter, init)


class TransformerEngineBaseModule(Layer):
    """A layer whose weights may be sharded by tensor parallelism."""

    def __init__(self):
        super().__init__()
        self.fp8 = self.fp8_calibration = False
        self.fp8_meta = {"fp8_checkpoint": False, "recipe": None}
        self.tp_group, self.tp_size, self.sequence_parallel = None, 1, False

    def init_fp8_metadata(self, num_gemms: int = 1) -> None:
        """Does nothing, because 8-bit training is off."""

    def set_tensor_parallel_group(self, tp_group) -> None:
        """Sets the group over which the weight is split."""
        self.tp_group = tp_group
        if tp_group is not None:
            self.tp_size = get_world_size(tp_group)

    def get_extra_state(self):
        """Returns an empty tensor, because there is no state of 8-bit training."""
        return empty(0, dtype=uint8)

    def set_extra_state(self, state) -> None:
        """Raises NotImplementedError if the state belongs to 8-bit training."""
        if isinstance(state, io.BytesIO):  # the form of releases before 2.0
            state.seek(0)
            state = serialization.load(state, weights_only=True)
        if state is not None and not (isinstance(state, Tensor) and state.numel() == 0):
            raise no_eight_bits()

    def _parallel(self, parallel_mode, tp_group, tp_size, sequence_parallel) -> None:
        if parallel_mode not in (None, "column", "row"):
            raise ValueError(f"parallel_mode {parallel_mode!r} is not supported")
        self.parallel_mode = parallel_mode
        self.tp_group = tp_group
        self.tp_size = tp_size if tp_group is None else get_world_size(tp_group)
        self.sequence_parallel = self.tp_size > 1 and sequence_parallel


def _fill(parameter, init) -> None:
    with no_grad():
        init(parameter)


def _device(device):
    return (
        f"cuda:{device}"
        if isinstance(device, int)
        else ("cuda" if device is None and cuda.is_available() else device)
    )


def default_init(weight) -> None:
    """The default initialisation."""
    nn.init.normal_(weight, mean=0.0, std=0.023)


class _IntoMainGrad(autograd.Function):
    """Returns the weight. Backward adds its gradient to `weight.main_grad` and passes zeros on."""

    @staticmethod
    def forward(ctx, weight):
        ctx.weight = weight
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        weight = ctx.weight
        weight.main_grad.add_(grad)
        weight.grad_added_to_main_grad = True
        return grad.new_zeros(()).expand_as(weight)


def weight_of(weight, fused: bool, dtype):
    """The weight in the dtype of the product, with its gradient fused into main_grad if `fused`."""
    if fused and hasattr(weight, "main_grad"):
        weight = _IntoMainGrad.apply(weight)
    return weight if weight.dtype == dtype else weight.to(dtype)
