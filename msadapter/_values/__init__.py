"""Types that describe a tensor (dtype, device, layout, size, limits), and the base class of Tensor.

The operator table and everything above it imports these modules. They import only the native layer.
"""
