"""The class of weights that receive a gradient for each sample of a batch."""

from ....tensor import Tensor


class ExpandedWeight(Tensor):
    """Stands for a weight in a call whose backward pass computes a gradient for each sample.

    Its `handled_functions` take it and answer as with the weight itself. The gradients arrive in ``orig_weight.grad_sample``, whose
    first dimension is the batch. Other operators are refused, because nothing tells which dimension of their operands is the batch.
    """

    handled_functions: dict = {}  # {function of torch: call(function, args, kwargs)}, filled by `_calls`

    def __new__(cls, orig_weight, batch_size, loss_reduction):
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        return Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight, batch_size, loss_reduction):
        self.orig_weight = orig_weight
        self.batch_size = batch_size
        self.loss_reduction = loss_reduction
        self.batch_first = True
        self.allow_smaller_batches = False

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        call = cls.handled_functions.get(func)
        if call is None:
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
        return call(func, args, kwargs or {})

    @property
    def dtype(self):
        return self.orig_weight.dtype

    @property
    def data(self):
        return self.orig_weight.data

    @property
    def shape(self):
        return self.orig_weight.shape

    @property
    def device(self):
        return self.orig_weight.device

    @property
    def is_cuda(self):
        return self.orig_weight.is_cuda

    def data_ptr(self):
        return self.orig_weight.data_ptr()

    def get_device(self):
        return self.orig_weight.get_device()

    def set_allow_smaller_batches(self, is_allow_smaller_batches):
        """Say whether a call may have fewer samples than the batch, as the steps of packed sequences have."""
        self.allow_smaller_batches = is_allow_smaller_batches

    def set_batch_first(self, is_batch_first=True):
        """Say whether the batch is the first dimension of the input, or the second one."""
        self.batch_first = is_batch_first
