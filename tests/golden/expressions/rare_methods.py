"""Methods of Tensor that few programs call."""

SETUP = """
x = torch.arange(6.0).reshape(2, 3)
c = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
"""

CASES = [
    "x.dim_order(), c.dim_order(), x.t().dim_order(), torch.ones(2, 1, 3).dim_order(), x[0, 0].dim_order()",
    "x.dequantize(), torch.ones(2, dtype=torch.half).dequantize()",
    "x.grad_dtype, x.long().grad_dtype",
    "x.grad_dtype = torch.float32; x.grad_dtype",
    "x.index([0], [1])",
    "x.index([0, 1], [1, slice(0, 2)])",
    "x.is_distributed()",
    "x.clone().map2_(x * 2, torch.ones(3), lambda a, b, c: a + 10 * b + c)",
    "x.clone().module_load(torch.zeros(2, 3))",
    "y = x.clone(); z = torch.zeros(2, 3); r = y.module_load(z); y, r.data_ptr() == y.data_ptr()",
    "z = torch.zeros(2, 3); x.module_load(z, assign=True).data_ptr() == z.data_ptr()",
    "x.resize(3, 2)",
    "x.resize(3)",
    "x.resize_as(torch.ones(3, 2))",
    "b = torch.arange(6.0); b[1:4].slice_inverse(b, 0, 1, 4)",
    "b = torch.arange(6.0); torch.slice_inverse(b[::2], b, 0, 0, 6, 2)",
    "torch.ones(2).slice_inverse(torch.ones(5), 0, 1, 3)",
    "x.indices()",
    "x.values()",
    "x.coalesce()",
    "x.is_coalesced()",
    "x.crow_indices()",
    "x.ccol_indices()",
    "!x._nnz()",
    "!x._values()",
    "!x.q_scale()",
    "!x.int_repr()",
    "x.sparse_dim(), x.dense_dim()",
    "x.const_data_ptr() == x.data_ptr()",
    "x.to_dense() is x",
    "torch.arange(6).split(split_size=[2, 4], dim=0)",
    "torch.split(torch.arange(6), split_size_or_sections=4)",
    "torch.hub.HASH_REGEX.pattern, torch.hub.urlparse('https://a/b').netloc",
]
