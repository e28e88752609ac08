"""The calls that take an ExpandedWeight, and how the gradients of single samples are computed.

A call runs once for the whole batch. The gradient of its input comes from the graph of that run. The gradients of the weights come
from runs with one sample each, so that they are right whatever the operator is. These are runs under vmap where the samples are
rows of a tensor, and a loop over the samples for recurrent networks.
"""

import functools

from .... import ops
from ...._errors import unsupported
from ...._values.base import as_leaf
from ....autograd import enable_grad, grad
from ....autograd.function import Function, once_differentiable
from ....tensor import Tensor
from ....utils import _pytree
from ... import functional as F
from .expanded_weights_impl import ExpandedWeight
from .expanded_weights_utils import check_call, original, set_grad_sample_if_exists

_CONVOLUTION = "input weight bias stride padding dilation groups"


def _supported():
    """Return {function of torch: call(function, args, kwargs)}."""
    named = {
        F.linear: ("input weight bias", _check_linear),
        F.conv1d: (_CONVOLUTION, functools.partial(_check_convolution, 3)),
        F.conv2d: (_CONVOLUTION, functools.partial(_check_convolution, 4)),
        F.conv3d: (_CONVOLUTION, functools.partial(_check_convolution, 5)),
        F.embedding: (
            "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
            _check_embedding,
        ),
        F.layer_norm: ("input normalized_shape weight bias eps", _check_layer_norm),
        F.group_norm: ("input num_groups weight bias eps", None),
        F.instance_norm: (
            "input running_mean running_var weight bias use_input_stats momentum eps",
            None,
        ),
    }
    calls = {
        function: functools.partial(_run_named, names.split(), check)
        for function, (names, check) in named.items()
    }
    return calls | dict.fromkeys((ops.lstm, ops.gru, ops.rnn_tanh, ops.rnn_relu), _run_recurrent)


def _check_linear(function, arguments):
    rank = arguments["input"].dim()
    if rank < 2:
        raise RuntimeError(
            f"Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, got of rank {rank}"
        )


def _check_convolution(expected, function, arguments):
    rank = arguments["input"].dim()
    if rank != expected:
        raise RuntimeError(
            f"Expanded Weights only support convolution with batched input, got {function} with an"
            f"unbatched input of dim {rank}, expected input of dim {expected}"
        )


def _check_embedding(function, arguments):
    if arguments["input"].dim() == 1:
        raise RuntimeError(
            f"Expanded Weights needs an input with a batch size, got a 1D tensor, {arguments['input']}"
        )


def _check_layer_norm(function, arguments):
    normalized_shape = arguments["normalized_shape"]
    if arguments["input"].dim() <= len(normalized_shape):
        raise RuntimeError(
            "Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradient"
            f"computations but got that normalized shape, {normalized_shape}, matched input shape."
        )


class _Batch(Function):
    """Runs a call. Its backward pass gives the inputs their gradient, and each weight one for every sample."""

    @staticmethod
    def forward(ctx, call, *tensors):
        ctx.call = call
        ctx.weights = len(tensors) - len(call.inputs)
        ctx.inputs = [
            as_leaf(value.detach(), needed)
            for value, needed in zip(call.inputs, ctx.needs_input_grad[1:], strict=False)
        ]
        with enable_grad():
            results = call.run(ctx.inputs, [weight.orig_weight.detach() for weight in call.weights])
        ctx.results = results if isinstance(results, tuple) else (results,)
        plain = tuple(result.detach() for result in ctx.results)
        return plain if isinstance(results, tuple) else plain[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        ctx.call.give(gradients)
        wanted = [value for value in ctx.inputs if value.requires_grad]
        found = iter(())
        if wanted:
            recorded = [(r, g) for r, g in zip(ctx.results, gradients, strict=True) if r.requires_grad]
            found = iter(grad([r for r, _ in recorded], wanted, [g for _, g in recorded], allow_unused=True))
        return (
            None,
            *[next(found) if value.requires_grad else None for value in ctx.inputs],
            *[None] * ctx.weights,
        )


def _apply(call):
    return _Batch.apply(call, *call.inputs, *[weight.orig_weight for weight in call.weights])


def _run_named(names, check, function, args, kwargs):
    """Run a function whose first argument has one sample in each row."""
    arguments = dict(zip(names, args, strict=False)) | kwargs
    first = arguments.pop("input")
    if check is not None and isinstance(first, Tensor):
        check(function, {"input": first} | arguments)
    check_call(function, (first,), arguments)
    return _apply(_Named(function, first, arguments))


class _Named:
    """A call with one sample in each row of its input and of its result."""

    def __init__(self, function, first, arguments):
        self.function, self.arguments = function, arguments
        self.inputs = [first]
        self.names = [name for name, value in arguments.items() if isinstance(value, ExpandedWeight)]
        self.weights = [arguments[name] for name in self.names]

    def run(self, inputs, weights):
        return self.function(inputs[0], **self.arguments | dict(zip(self.names, weights, strict=True)))

    def give(self, gradients):
        """Add the gradients of all samples to the weights."""
        found = self._for_each_sample(gradients[0])
        for name, value in self.arguments.items():
            if name in found or isinstance(value, Tensor):
                set_grad_sample_if_exists(value, lambda _, name=name: found[name])

    def _for_each_sample(self, gradient):
        from ....func import vjp, vmap  # few programs need it

        arguments = self.arguments | self._without_effects()

        def one(row, gradient_of_row):
            def run(*weights):
                given = arguments | dict(zip(self.names, weights, strict=True))
                return self.function(row.unsqueeze(0), **given)

            _, pull = vjp(run, *[weight.orig_weight.detach() for weight in self.weights])
            return pull(gradient_of_row.unsqueeze(0))

        return dict(zip(self.names, vmap(one)(self.inputs[0].detach(), gradient), strict=True))

    def _without_effects(self):
        """Return arguments for the runs with one sample: what the run of the batch has written is not written again."""
        if self.function is F.embedding:
            return {"max_norm": None, "sparse": False}
        if self.function is F.instance_norm and self.arguments.get("use_input_stats", True):
            return {"running_mean": None, "running_var": None}
        return {}


def _run_recurrent(function, args, kwargs):
    """Run a recurrent network over sequences, or over the rows of packed sequences."""
    if kwargs:
        raise unsupported(f"torch.{function.__name__}", "with ExpandedWeights and arguments given by name")
    call = _Recurrent(function, args)
    if call.drops():
        raise unsupported(f"torch.{function.__name__}", "with ExpandedWeights and dropout between its layers")
    call.check()
    return _apply(call)


class _Recurrent:
    """A call of lstm, gru or rnn: (rows, state, weights, ...), or (rows, batch sizes, state, weights, ...) when packed."""

    def __init__(self, function, args):
        self.function = function
        self.packed = isinstance(args[3], (list, tuple))
        self.rows, self.sizes = args[0], args[1].tolist() if self.packed else None
        self.state, self.parameters, *self.options = args[2:] if self.packed else args[1:]
        self.states, self.shape_of_state = _pytree.tree_flatten(self.state)
        self.inputs = [self.rows, *self.states]
        self.weights = [weight for weight in self.parameters if isinstance(weight, ExpandedWeight)]
        self.dim = 0 if not self.packed and self.options[5] else 1

    def drops(self):
        """Whether masks are drawn, which the runs with one sample would draw anew."""
        _, layers, dropout, training = self.options[:4]
        return training and dropout > 0 and layers > 1

    def check(self):
        if self.packed:
            for weight in self.weights:
                if weight.batch_size < self.sizes[0]:
                    raise RuntimeError(
                        "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                        f"{self.sizes[0]} with ExpandedWeight of batch size {weight.batch_size}"
                    )
            return
        rows = self.rows.transpose(0, 1) if self.dim == 1 else self.rows
        check_call(self.function, (rows,), dict(enumerate(self.weights)))

    def run(self, inputs, weights, sizes=None):
        given = iter(weights)
        parameters = [
            next(given) if isinstance(weight, ExpandedWeight) else weight for weight in self.parameters
        ]
        state = _pytree.tree_unflatten(inputs[1:], self.shape_of_state)
        steps = [ops.tensor(sizes or self.sizes)] if self.packed else []
        return self.function(inputs[0], *steps, state, parameters, *self.options)

    def _rows_of(self, sample):
        """Return the indices of the rows of a packed sequence."""
        starts, at = [], 0
        for size in self.sizes:
            if sample >= size:
                break
            starts.append(at + sample)
            at += size
        return ops.tensor(starts)

    def _one(self, tensors, sample):
        """Return the part of (rows, states...) that belongs to a sample."""
        rows = tensors[0][self._rows_of(sample)] if self.packed else tensors[0].narrow(self.dim, sample, 1)
        return [rows, *[state.narrow(1, sample, 1) for state in tensors[1:]]]

    def give(self, gradients):
        """Add the gradients of all samples to the weights."""
        count = self.sizes[0] if self.packed else self.rows.shape[self.dim]
        weights = [as_leaf(weight.orig_weight.detach()) for weight in self.weights]
        inputs = [value.detach() for value in self.inputs]
        found = []
        for sample in range(count):
            own = self._one(inputs, sample)
            with enable_grad():
                results = self.run(own, weights, [1] * len(own[0]) if self.packed else None)
            found.append(grad(results, weights, self._one(gradients, sample)))
        for weight, rows in zip(self.weights, zip(*found, strict=True), strict=True):
            weight.set_allow_smaller_batches(self.packed)
            set_grad_sample_if_exists(weight, lambda _, rows=rows: ops.stack(rows))
        for value in self.parameters:
            if not isinstance(value, ExpandedWeight):
                set_grad_sample_if_exists(value, original)


ExpandedWeight.handled_functions.update(_supported())
