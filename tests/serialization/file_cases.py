"""The contents of the test files, created and checked with PyTorch or msadapter."""

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)


def make(torch, legacy: bool = False) -> dict:
    """Tensors of every dtype, views of one storage, and the small objects that checkpoints contain."""
    base = torch.arange(24.0).reshape(4, 6)
    contents = {name: torch.tensor([0, 1, 2]).to(getattr(torch, name)) for name in DTYPES}
    if not legacy:  # the legacy format cannot store dtypes without a storage class
        contents["uint16"] = torch.tensor([0, 1, 65535], dtype=torch.int64).to(torch.uint16)
    contents.update(
        base=base,
        row=base[1:3, ::2],
        transposed=base.t(),
        scalar=torch.tensor(3.5),
        empty=torch.empty(0, 3),
        parameter=torch.nn.Parameter(torch.ones(3)),
        frozen=torch.nn.Parameter(torch.ones(3), requires_grad=False),
        leaf=torch.ones(2, requires_grad=True),
        size=base.shape,
        device=torch.device("cpu"),
        accelerator=torch.device("cuda:1"),
        dtype=torch.bfloat16,
        layout=torch.strided,
        plain={
            "set": {1, 2},
            "bytes": b"abc\xff",
            "bytearray": bytearray(b"x"),
            "complex": 1 + 2j,
            "big": 2**70,
            "none": None,
            "float": 1.5,
            "tuple": (1, "two"),
            "list": [True, False],
        },
    )
    return contents


def check(torch, got: dict, legacy: bool = False) -> None:
    """AssertionError unless `got` equals the result of make(), with shared storages."""
    want = make(torch, legacy)
    assert list(got) == list(want)
    for key, value in want.items():
        assert type(got[key]) is type(value), key
        if not isinstance(value, torch.Tensor):
            assert got[key] == value, key
            continue
        for fact in ("dtype", "shape", "requires_grad"):
            assert getattr(got[key], fact) == getattr(value, fact), (key, fact)
        assert got[key].stride() == value.stride(), key
        assert got[key].tolist() == value.tolist(), key
    pointers = {got[key].untyped_storage().data_ptr() for key in ("base", "row", "transposed")}
    assert len(pointers) == 1


def make_sparse(torch):
    """Sparse tensors of the layouts that files can contain."""
    dense = torch.arange(8.0).reshape(2, 4)
    pairs = torch.tensor([[0, 1, 1, 1], [2, 0, 2, 2]])
    loose = torch.sparse_coo_tensor(pairs, torch.tensor([3.0, 4.0, 5.0, 6.0]), (2, 4))
    return {
        "loose": loose,
        "coalesced": loose.coalesce(),
        "rows": dense.to_sparse_csr(),
        "columns": dense.to_sparse_csc(),
        "blocks": dense.to_sparse_bsr((1, 2)),
        "parameter": torch.nn.Parameter(loose.clone()),
        "half empty": torch.sparse_coo_tensor(size=(3, 5), dtype=torch.float64),
    }


def check_sparse(torch, found) -> None:
    """Check that ``found``, read from a file, equals the result of ``make_sparse``."""
    wanted = make_sparse(torch)
    assert found.keys() == wanted.keys()
    for name, want in wanted.items():
        have = found[name]
        assert (have.layout, have.dtype, have.shape, have._nnz()) == (
            want.layout,
            want.dtype,
            want.shape,
            want._nnz(),
        ), name
        assert have.requires_grad == want.requires_grad
        assert torch.equal(have.to_dense(), want.to_dense()), name
    assert [found[n].is_coalesced() for n in ("loose", "coalesced")] == [False, True]
    assert isinstance(found["parameter"], torch.nn.Parameter)
