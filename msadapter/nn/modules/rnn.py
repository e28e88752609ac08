"""Recurrent networks: RNN, LSTM, GRU and their cells."""

from __future__ import annotations

import math
import numbers
import warnings

from ... import ops
from ...ops import _recurrent
from ...overrides import handle_torch_function, has_torch_function
from .. import init
from .._packed import PackedSequence
from ..parameter import Parameter
from .module import Module

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim=1):
    """Reorder ``tensor`` along ``dim`` by the index tensor ``permutation``."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _permute(tensor, permutation, dim)


def _permute(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Base class of RNN, LSTM and GRU: the weights, the checks and the call."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings(dropout)
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                self._make_cell_weights(layer, suffix, device, dtype)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def _check_settings(self, dropout):
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element "
                "being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
                f"expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        if not isinstance(self.hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(self.hidden_size).__name__}")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _make_cell_weights(self, layer, suffix, device, dtype):
        gates = _GATES[self.mode] * self.hidden_size
        real_hidden = self.proj_size or self.hidden_size
        width = self.input_size if layer == 0 else real_hidden * (2 if self.bidirectional else 1)
        shapes = {"weight_ih": (gates, width), "weight_hh": (gates, real_hidden)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            names.append(f"{kind}_l{layer}{suffix}")
            setattr(self, names[-1], Parameter(ops.empty(shape, device=device, dtype=dtype)))
        self._all_weights.append(names)

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters as a list of lists, one for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def __getstate__(self):
        # PyTorch's class has the weights as a list too, and expects it in files.
        return {**self.__dict__, "_flat_weights": self._flat_weights}

    def __setstate__(self, state):
        super().__setstate__({k: v for k, v in state.items() if k != "_flat_weights"})

    def flatten_parameters(self):
        """Does nothing, because the weights need no particular memory layout here."""

    def reset_parameters(self):
        """Fill all weights with uniform values in +-1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Check the shape of ``input``. RuntimeError if it does not fit."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        """Return the shape of the state h: (layers * directions, batch, size of h)."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input, batch_sizes):
        """Return the shape of the state c: (layers * directions, batch, size of c)."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Check the shape of a state. RuntimeError if it is not ``expected_hidden_size``."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check the shapes of the input and of the initial state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """Reorder the batch dimension of a state."""
        return hx if permutation is None else _permute(hx, permutation)

    # LSTM overrides the following three methods, because its state is a pair of tensors.
    def _initial_state(self, input, batch_sizes):
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return ops.zeros(shape, dtype=input.dtype, device=input.device)

    def _require_state_dim(self, hx, batched):
        want = 3 if batched else 2
        if hx.dim() != want:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {want}-D but got {hx.dim()}-D tensor")

    @staticmethod
    def _map_state(hx, fn):
        return fn(hx)

    def _network(self, data, hx, batch_sizes):
        """Return (output, last state) of all layers. `batch_sizes` is None for data that is not packed."""
        if has_torch_function(self._flat_weights):
            answer = self._overridden(data, hx, batch_sizes)
            if answer is not NotImplemented:
                return answer
        swap = self.batch_first and batch_sizes is None
        output, last = _recurrent.run_stack(
            self.mode,
            data.transpose(0, 1) if swap else data,
            hx,
            self._flat_weights,
            bias=self.bias,
            num_layers=self.num_layers,
            dropout=self.dropout,
            training=self.training,
            bidirectional=self.bidirectional,
            batch_sizes=None if batch_sizes is None else batch_sizes.tolist(),
        )
        return (output.transpose(0, 1) if swap else output), last

    def _overridden(self, data, hx, batch_sizes):
        """The same for weights whose class answers torch's functions: it is asked for the whole network, such as torch.lstm.

        NotImplemented if such answers are switched off.
        """
        state = list(hx) if self.mode == "LSTM" else hx
        options = [self.bias, self.num_layers, self.dropout, self.training, self.bidirectional]
        if batch_sizes is None:
            args = (data, state, self._flat_weights, *options, self.batch_first)
        else:
            args = (data, batch_sizes, state, self._flat_weights, *options)
        results = handle_torch_function(getattr(ops, self.mode.lower()), self._flat_weights, *args)
        if results is NotImplemented:
            return results
        output, *last = results
        return output, tuple(last) if self.mode == "LSTM" else last[0]

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        if packed:
            data, batch_sizes, order, back = input
            batched = True
            if hx is not None:
                hx = self.permute_hidden(hx, order)
        else:
            data, batch_sizes, back = input, None, None
            if data.dim() not in (2, 3):
                raise ValueError(
                    f"{self._get_name()}: Expected input to be 2D or 3D, got {data.dim()}D instead"
                )
            batched = data.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if not batched:
                data = data.unsqueeze(batch_dim)
            if hx is not None:
                self._require_state_dim(hx, batched)
                if not batched:
                    hx = self._map_state(hx, lambda s: s.unsqueeze(1))
        if hx is None:
            hx = self._initial_state(data, batch_sizes)
        self.check_forward_args(data, hx, batch_sizes)
        if not packed and data.size(1 if self.batch_first else 0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, last = self._network(data, hx, batch_sizes)
        if packed:
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(last, back)
        if not batched:
            output = output.squeeze(batch_dim)
            last = self._map_state(last, lambda s: s.squeeze(1))
        return output, last

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


def _refuse_projection(kwargs):
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (or relu instead of tanh), over time steps and layers.

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias, batch_first, dropout,
    bidirectional.
    """

    def __init__(self, *args, **kwargs):
        _refuse_projection(kwargs)
        if len(args) > 3:
            self_nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self_nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = self_nonlinearity


class GRU(RNNBase):
    """Gated recurrent unit. It takes the arguments of RNN except nonlinearity."""

    def __init__(self, *args, **kwargs):
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory.

    The state is the pair (h, c). With ``proj_size``, h is projected to this size.
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check the shapes of the input and of both initial states."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        """Reorder the batch dimension of both states."""
        if permutation is None:
            return hx
        return _permute(hx[0], permutation), _permute(hx[1], permutation)

    def _initial_state(self, input, batch_sizes):
        place = {"dtype": input.dtype, "device": input.device}
        return (
            ops.zeros(self.get_expected_hidden_size(input, batch_sizes), **place),
            ops.zeros(self.get_expected_cell_size(input, batch_sizes), **place),
        )

    def _require_state_dim(self, hx, batched):
        want = 3 if batched else 2
        if hx[0].dim() != want or hx[1].dim() != want:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {want}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    @staticmethod
    def _map_state(hx, fn):
        return tuple(fn(s) for s in hx)


class RNNCellBase(Module):
    """Base class of the cells: their weights."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(ops.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(ops.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, Parameter(ops.empty(rows, device=device, dtype=dtype)) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self):
        """Fill all weights with uniform values in +-1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, tensor, what):
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )

    def _batch(self, tensor):
        return tensor if tensor.dim() == 2 else tensor.unsqueeze(0)

    def _zeros(self, input):
        return ops.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _next(self, mode, rows, state):
        return _recurrent.run_cell(
            mode, rows, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )

    def _one_state(self, mode, input, hx):
        """Run a cell whose state is a single tensor."""
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        rows = self._batch(input)
        state = self._zeros(rows) if hx is None else self._batch(hx)
        self._check_sizes(rows, state)
        out = self._next(mode, rows, state)
        return out if input.dim() == 2 else out.squeeze(0)

    def _check_sizes(self, input, state, number=0):
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        if input.size(0) != state.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{number} batch size {state.size(0)}"
            )
        if state.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.size(1)}, expected {self.hidden_size}"
            )

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One time step of RNN."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one_state("RNN_" + self.nonlinearity.upper(), input, hx)


class LSTMCell(RNNCellBase):
    """One time step of LSTM. It takes and returns the pair (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check(input, "input")
        if hx is not None:
            for i, state in enumerate(hx):
                if state.dim() not in (1, 2):
                    raise ValueError(f"LSTMCell: Expected hx[{i}] to be 1D or 2D, got {state.dim()}D instead")
        rows = self._batch(input)
        state = (self._zeros(rows),) * 2 if hx is None else tuple(self._batch(s) for s in hx)
        for number, one in enumerate(state):
            self._check_sizes(rows, one, number)
        out = self._next("LSTM", rows, state)
        return out if input.dim() == 2 else tuple(s.squeeze(0) for s in out)


class GRUCell(RNNCellBase):
    """One time step of GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        return self._one_state("GRU", input, hx)
