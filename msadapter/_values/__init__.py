"""What describes a tensor: dtype, device, layout, memory format, size and limits, and the class below Tensor.

The operator table and everything above it reads these. They read nothing but the native layer.
"""
