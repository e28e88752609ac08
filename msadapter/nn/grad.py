"""Gradients of convolutions with respect to their input and their weight."""

from .. import ops
from ..autograd import enable_grad
from ..autograd import grad as _grad


def _wrt_input(conv, input_size, weight, grad_output, *settings):
    with enable_grad():
        x = ops.zeros(
            tuple(input_size), dtype=grad_output.dtype, device=grad_output.device, requires_grad=True
        )
        return _grad(conv(x, weight, None, *settings), x, grad_output)[0]


def _wrt_weight(conv, input, weight_size, grad_output, *settings):
    with enable_grad():
        w = ops.zeros(
            tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device, requires_grad=True
        )
        return _grad(conv(input, w, None, *settings), w, grad_output)[0]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv1d with respect to an input of shape ``input_size``."""
    return _wrt_input(ops.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv1d with respect to a weight of shape ``weight_size``."""
    return _wrt_weight(ops.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv2d with respect to an input of shape ``input_size``."""
    return _wrt_input(ops.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv2d with respect to a weight of shape ``weight_size``."""
    return _wrt_weight(ops.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv3d with respect to an input of shape ``input_size``."""
    return _wrt_input(ops.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Return the gradient of conv3d with respect to a weight of shape ``weight_size``."""
    return _wrt_weight(ops.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)
