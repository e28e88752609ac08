"""Calls the simulated NPU's libraries directly, as MindSpore's plugin does: for tests, with numpy arrays.

An array is copied to a simulated device with its strides, so that views are operands too. bfloat16 arrays are marked by
the class Bf16, because numpy has no such type.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int8, c_int64, c_uint64, c_void_p
from dataclasses import dataclass

import numpy as np

TYPES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "int64": 9,
    "float64": 11,
    "bool": 12,
    "complex64": 16,
    "complex128": 17,
    "bfloat16": 27,
}
TO_DEVICE, TO_HOST = 1, 2


class Refused(Exception):
    """A call returned an error: its number and the text of aclGetRecentErrMsg."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


def to_bits(values):
    """The nearest bfloat16 numbers as uint16."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bits(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


@dataclass
class Bf16:
    """A tensor of bfloat16 numbers."""

    bits: np.ndarray

    @classmethod
    def of(cls, values):
        return cls(to_bits(values))

    @property
    def values(self):
        return from_bits(np.ascontiguousarray(self.bits))


@dataclass
class Out:
    """A result that the operator writes."""

    shape: tuple
    dtype: str = "float32"


@dataclass
class InPlace:
    """An operand that is read and written. Its new numbers are among the results."""

    array: object


@dataclass
class Scalar:
    value: object
    dtype: str = "float32"


@dataclass
class Ints:
    values: list


@dataclass
class Bools:
    values: list


@dataclass
class F32:
    """A float that is passed by value. A Python float is passed as a double."""

    value: float


@dataclass
class I32:
    """An int or an aclDataType."""

    value: int


@dataclass
class I8:
    value: int


@dataclass
class List:
    """A list of tensors."""

    values: list


class Device:
    """One simulated device of this process."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(str(library))
        for name in (
            "aclCreateTensor",
            "aclCreateScalar",
            "aclCreateIntArray",
            "aclCreateBoolArray",
            "aclCreateTensorList",
        ):
            getattr(self.lib, name).restype = c_void_p
        for name in ("aclGetRecentErrMsg", "SimulatedNpuCounters", "SimulatedNpuOperators"):
            getattr(self.lib, name).restype = c_char_p
        self.check(self.lib.aclrtSetDevice(0))
        self.stream = c_void_p()
        self.check(self.lib.aclrtCreateStream(byref(self.stream)))

    def check(self, status):
        if status != 0:
            raise Refused(status, self.lib.aclGetRecentErrMsg().decode())

    # ---- memory
    def malloc(self, size):
        address = c_void_p()
        self.check(self.lib.aclrtMalloc(byref(address), c_uint64(size), 0))
        return address

    def free(self, address):
        self.check(self.lib.aclrtFree(address))

    def upload(self, address, array):
        size = c_uint64(array.nbytes)
        self.check(self.lib.aclrtMemcpy(address, size, c_void_p(array.ctypes.data), size, TO_DEVICE))

    def download(self, address, array):
        size = c_uint64(array.nbytes)
        self.check(self.lib.aclrtMemcpy(c_void_p(array.ctypes.data), size, address, size, TO_HOST))

    def synchronize(self):
        self.check(self.lib.aclrtSynchronizeStream(self.stream))

    def counters(self):
        lines = self.lib.SimulatedNpuCounters().decode().splitlines()
        return {name: int(number) for name, number in (line.split("\t") for line in lines)}

    def operators(self):
        return [line.split("\t")[0] for line in self.lib.SimulatedNpuOperators().decode().splitlines()]

    # ---- operators
    def run(self, name, *arguments, wait=True):
        """Plan, launch and wait for aclnn`name`. Returns the results in the order of the arguments, or one result by itself."""
        call = _Call(self)
        try:
            wires = [call.wire(argument) for argument in arguments]
            workspace, executor = c_uint64(), c_void_p()
            plan = getattr(self.lib, f"aclnn{name}GetWorkspaceSize")
            self.check(plan(*wires, byref(workspace), byref(executor)))
            self.check(getattr(self.lib, f"aclnn{name}")(None, workspace, executor, self.stream))
            self.synchronize()
            results = [read() for read in call.results]
            return results[0] if len(results) == 1 else results
        finally:
            call.release()

    def refuses(self, name, arguments, reason):
        """Assert that aclnn`name` refuses its arguments, and that the error names the operator, the reason and CANN's page."""
        try:
            self.run(name, *arguments)
        except Refused as error:
            assert error.status == 161002, error
            assert f"aclnn{name}: " in error.text and reason in error.text and "ops-" in error.text, error
        else:
            raise AssertionError(f"aclnn{name} was not refused")


class _Call:
    def __init__(self, device):
        self.device, self.lib = device, device.lib
        self.addresses, self.handles, self.results = [], [], []

    def tensor(self, value, written):
        shape, base, dtype, is_bf16 = _layout(value)
        size = max(base.nbytes, 1)
        address = self.device.malloc(size)
        self.addresses.append(address)
        if base.nbytes:
            self.device.upload(address, base)
        view = _view_of(value)
        strides = [step // base.itemsize for step in view.strides]
        offset = _offset_of(view, base) if base.nbytes else 0
        longs = (c_int64 * len(shape))(*shape)
        steps = (c_int64 * len(shape))(*strides)
        storage = (c_int64 * 1)(base.size)
        handle = self.lib.aclCreateTensor(
            longs,
            c_uint64(len(shape)),
            TYPES[dtype],
            steps,
            c_int64(offset),
            2,
            storage,
            c_uint64(1),
            address,
        )
        self.handles.append(("aclDestroyTensor", c_void_p(handle)))
        if written:
            self.results.append(lambda: self.read(handle, address, base, view, is_bf16))
        return c_void_p(handle)

    def read(self, handle, address, base, view, is_bf16):
        dims, rank = POINTER(c_int64)(), c_uint64()
        self.lib.aclGetViewShape(c_void_p(handle), byref(dims), byref(rank))
        shape = tuple(dims[i] for i in range(rank.value))
        fresh = np.empty_like(base)
        if base.nbytes:
            self.device.download(address, fresh)
        if shape != view.shape:  # a result whose shape depends on the data lies densely at the beginning
            result = fresh.ravel()[: int(np.prod(shape))].reshape(shape)
        else:
            start = _offset_of(view, base) if base.nbytes else 0
            result = np.lib.stride_tricks.as_strided(fresh.ravel()[start:], view.shape, view.strides).copy()
        return from_bits(result).reshape(shape) if is_bf16 else result

    def wire(self, value):
        if value is None:
            return c_void_p()
        if isinstance(value, bool):
            return ctypes.c_bool(value)
        if isinstance(value, int):
            return c_int64(value)
        if isinstance(value, float):
            return ctypes.c_double(value)
        if isinstance(value, str):
            return c_char_p(value.encode())
        if isinstance(value, F32):
            return ctypes.c_float(value.value)
        if isinstance(value, I32):
            return c_int(value.value)
        if isinstance(value, I8):
            return c_int8(value.value)
        if isinstance(value, Scalar):
            number = (
                to_bits([value.value]) if value.dtype == "bfloat16" else np.array([value.value], value.dtype)
            )
            handle = self.lib.aclCreateScalar(c_void_p(number.ctypes.data), TYPES[value.dtype])
            self.handles.append(("aclDestroyScalar", c_void_p(handle)))
            return c_void_p(handle)
        if isinstance(value, Ints | Bools):
            kind, of = ("IntArray", c_int64) if isinstance(value, Ints) else ("BoolArray", ctypes.c_bool)
            numbers = (of * max(len(value.values), 1))(*value.values)
            handle = getattr(self.lib, f"aclCreate{kind}")(numbers, c_uint64(len(value.values)))
            self.handles.append((f"aclDestroy{kind}", c_void_p(handle)))
            return c_void_p(handle)
        if isinstance(value, List):
            wires = [self.wire(one) for one in value.values]
            pointers = (c_void_p * max(len(wires), 1))(*wires)
            self.handles = self.handles[: len(self.handles) - sum(wire.value is not None for wire in wires)]
            handle = self.lib.aclCreateTensorList(pointers, c_uint64(len(wires)))
            self.handles.append(("aclDestroyTensorList", c_void_p(handle)))
            return c_void_p(handle)
        if isinstance(value, Out):
            stored = "uint16" if value.dtype == "bfloat16" else value.dtype
            array = np.full(value.shape, 93, stored)  # a number that no expected result has everywhere
            return self.tensor(Bf16(array) if value.dtype == "bfloat16" else array, written=True)
        if isinstance(value, InPlace):
            return self.tensor(value.array, written=True)
        return self.tensor(value, written=False)

    def release(self):
        for name, handle in self.handles:
            getattr(self.lib, name)(handle)
        for address in self.addresses:
            self.lib.aclrtFree(address)


def _view_of(value):
    return value.bits if isinstance(value, Bf16) else value


def _layout(value):
    """The shape of an operand, the memory that holds it, and its type."""
    view = _view_of(value)
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base.dtype != view.dtype or not base.flags.c_contiguous:
        raise ValueError("the memory of a view has the view's type")
    return (
        view.shape,
        base,
        "bfloat16" if isinstance(value, Bf16) else view.dtype.name,
        isinstance(value, Bf16),
    )


def _offset_of(view, base):
    """The place of the first element of a view in its memory, in elements."""
    start, origin = view.__array_interface__["data"][0], base.__array_interface__["data"][0]
    return (start - origin) // base.itemsize
