"""Fusion of a batch normalisation in evaluation mode with the layer before it."""

import copy

from ... import ops
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _folded(weight, bias, mean, var, eps, bn_weight, bn_bias, shape):
    """Return the scaled weight and the shifted bias as parameters."""
    bias = ops.zeros_like(mean) if bias is None else bias
    bn_weight = ops.ones_like(mean) if bn_weight is None else bn_weight
    bn_bias = ops.zeros_like(mean) if bn_bias is None else bn_bias
    scale = bn_weight * ops.rsqrt(var + eps)
    fused_weight = (weight * scale.reshape(shape)).to(dtype=weight.dtype)
    fused_bias = ((bias - mean) * scale + bn_bias).to(dtype=bias.dtype)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias, bias.requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Return (weight, bias) of a convolution that includes the batch normalisation."""
    shape = [1, -1] + [1] * (conv_w.dim() - 2) if transpose else [-1, 1] + [1] * (conv_w.dim() - 2)
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """Return a copy of ``conv`` that includes ``bn``. Both must be in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Return (weight, bias) of a linear layer that includes the batch normalisation."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def fuse_linear_bn_eval(linear, bn):
    """Return a copy of ``linear`` that includes ``bn``. Both must be in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
