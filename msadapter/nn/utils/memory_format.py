"""The memory format of convolution weights."""

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module, classes, memory_format):
    for child in module.modules():
        if isinstance(child, classes):
            child.weight.data = child.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Convert the weights of all 2-dimensional convolutions to ``memory_format``. Returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Convert the weights of all 3-dimensional convolutions to ``memory_format``. Returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
