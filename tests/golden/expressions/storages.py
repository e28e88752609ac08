"""Storages of one type, torch.types."""

SETUP = """
import copy, pickle, io
b = bytes(range(16))
s = torch.FloatStorage([1, 2, 3])
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
]
