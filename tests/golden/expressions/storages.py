"""Storages of one type, torch.types."""

SETUP = """
import copy, pickle, io
b = bytes(range(16))
s = torch.FloatStorage([1, 2, 3])
m = torch.UntypedStorage(8, device="meta")
n = torch.TypedStorage([1, 2], device="meta", dtype=torch.int16)
u = torch.UntypedStorage(range(8))
def saved(x):
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f)
"""

CASES = [
    "torch.ByteStorage.from_buffer(b)",
    "torch.ByteTensor(torch.ByteStorage.from_buffer(b))",
    "torch.FloatStorage.from_buffer(b)",
    "torch.FloatStorage.from_buffer(b, 'native').tolist()",
    "torch.FloatStorage.from_buffer(b, 'big', 2, 4).tolist()",
    "torch.ByteStorage.from_buffer(b, offset=20)",
    "torch.ByteStorage.from_buffer(b, count=9, offset=8)",
    "torch.IntStorage.from_buffer(b, 'x')",
    "torch.FloatStorage.from_buffer(b'123', 'little')",
    "torch.UntypedStorage.from_buffer(b, 'little', dtype=torch.int16).tolist()",
    "type(s)",
    "isinstance(s, torch.FloatStorage), isinstance(s, torch.IntStorage), isinstance(s, torch.types.Storage)",
    "str(s)",
    "repr(torch.ones(1).untyped_storage())",
    "torch.FloatStorage(wrap_storage=torch.ones(3).untyped_storage()).tolist()",
    "torch.FloatStorage(torch.ones(3).untyped_storage())",
    "torch.FloatStorage(1, 2)",
    "torch.TypedStorage(3, dtype=torch.int8).size()",
    "torch.TypedStorage([1, 2], dtype=torch.int16).tolist()",
    "s[0:2]",
    "s[-1], s[0]",
    "s[5]",
    "s[1] = 7; s.tolist()",
    "s.clone().fill_(2).tolist(), s.tolist()",
    "s.double().dtype, s.half().tolist(), s.long().tolist(), s.byte().tolist()",
    "s.type(), s.dtype, s.element_size(), s.nbytes(), len(s), s.pickle_storage_type()",
    "s.is_cuda, s.is_shared(), s.is_pinned(), s.device, list(s)",
    "s == s, s == torch.FloatStorage([1, 2, 3])",
    "torch.is_storage(s), torch.FloatStorage.dtype, torch.Storage",
    "saved(s).tolist(), type(saved(s))",
    "pickle.loads(pickle.dumps(s)).tolist()",
    "c = copy.deepcopy(s); c[0] = 9; c.tolist(), s.tolist()",
    "t = torch.zeros(2); v = t.storage(); v[1] = 4; t",
    "torch.ones(2).storage_type()",
    "s.resize_(2), s._resize_(1), s.tolist()",
    "t = torch.ones(4); t._typed_storage()._resize_(0), t._typed_storage()._size(), t.untyped_storage().nbytes()",
    "s._size(), s._nbytes(), s._element_size(), s._is_shared(), s._dtype, s._pickle_storage_type()",
    "s._setitem(1, 8), s._getitem(1), s._getitem(-1)",
    "str(torch.types.Number), str(torch.types.FileLike), str(torch.types.Device)",
    "torch.legacy_contiguous_format is torch.contiguous_format",
    # of tensors without memory
    "m, m.device, m.data_ptr(), m.nbytes(), m.is_shared(), m.resizable(), m.resize_(20).nbytes()",
    "n, n.device, n.data_ptr(), n.size(), n.dtype, n.float().device, n.clone().device",
    "torch.ones(2, device='meta').untyped_storage().data_ptr(), torch.ones(2, device='meta').storage().nbytes()",
    *(
        f"{storage}.{call}"
        for storage in ("m", "n")
        for call in (
            "tolist()",
            "cpu()",
            "share_memory_()",
            "_share_fd_cpu_()",
            "_share_filename_cpu_()",
            "clone().device",
        )
    ),
    "m[0]",
    "m[0:2]",
    "n[0]",
    "m.fill_(0).device, n.fill_(1).device",
    "u.copy_(m)",
    "m.copy_(u).device",
    "s.copy_(torch.TypedStorage([1.0] * 3, device='meta', dtype=torch.float32))",
    "copy.deepcopy(m).device",
    # the bytes
    "u.byteswap(torch.float32); u.tolist()",
    "u.byteswap(torch.complex64); u.tolist()",
    "u.byteswap(torch.int16); u.tolist()",
    "u.byteswap(torch.bool); u.tolist()",
    "c = copy.copy(u); c[0] = 9; c.tolist(), u.tolist()",
    "u.__sizeof__() - torch.UntypedStorage().__sizeof__()",
    "u.type(), u.new().nbytes(), u.is_sparse, u.is_hpu, u.filename",
    "torch.UntypedStorage('abc')",
    "torch.UntypedStorage(3.5)",
    "torch.UntypedStorage([1, 300]).tolist()",
    "torch.UntypedStorage(device='xla')",
    # constructors
    "torch.storage._LegacyStorage()",
    "torch.FloatStorage(device='cpu')",
    "torch.FloatStorage(dtype=torch.float)",
    "!torch.FloatStorage(other=1)",
    "torch.FloatStorage('text')",
    "torch.FloatStorage(torch.tensor([]))",
    "torch.FloatStorage(0, wrap_storage=u)",
    "torch.FloatStorage(wrap_storage=s)",
    "torch.FloatStorage(wrap_storage=m)",
    "torch.TypedStorage(0, wrap_storage=u, dtype=torch.float)",
    "torch.TypedStorage(wrap_storage=u)",
    "torch.TypedStorage(wrap_storage=u, dtype=0)",
    "torch.TypedStorage(wrap_storage=u, dtype=torch.float, device='cpu')",
    "torch.TypedStorage(wrap_storage=s, dtype=torch.float)",
    "torch.TypedStorage(torch.tensor([]), dtype=torch.float)",
    "s.fill_(s)",
    "s[0:2] = 5; s.tolist()",
    "s['a']",
    # one object for the memory of a tensor
    "t = torch.ones(2); t.untyped_storage() is t.untyped_storage(), t[1:].untyped_storage() is t.untyped_storage()",
    "t = torch.ones(2); t.storage().untyped() is t.untyped_storage(), t.storage()._cdata == t.untyped_storage()._cdata",
    "t = torch.ones(2); c = copy.deepcopy([t, t.storage()]); c[0].add_(1); c[1].tolist()",
    # tensors from storages
    "torch.tensor(u)",
    "torch.tensor(u, dtype=torch.int16)",
    "torch.tensor(s), torch.as_tensor(s)",
    "torch.tensor(s, dtype=torch.float64)",
    "torch.as_tensor(u)",
    "torch.ones(2).set_(torch.ones(2, dtype=torch.float64))",
    "torch.ones(2).set_(torch.ones(2, dtype=torch.float64).storage())",
    "torch.ones(2).set_(torch.ones(2, dtype=torch.bfloat16).storage(), 0, (2,), (1,))",
    "torch.ones(2).set_(torch.ones(2, dtype=torch.float64).untyped_storage()).shape",
    "torch.ones(2).set_(torch.ones(2), 1, (2,), (1,))",
    "torch.ones(2).set_(torch.ones(2), 0, (2, 2), (1,))",
    "t = torch.ones(1); t.set_(t.untyped_storage(), 10, t.size())",
    "t = torch.ones(1); t.set_(t.untyped_storage(), 10, (2,), (1,)).untyped_storage().nbytes()",
    "torch.ones(3).set_(torch.ones(1).untyped_storage(), 10, (3,))",
]
