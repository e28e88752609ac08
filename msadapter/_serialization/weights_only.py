"""The restricted unpickler of torch.load(weights_only=True).

It interprets pickle opcodes and can build only containers, strings, numbers, tensors and instances of allowed
classes. A global that is not on the allow-list raises an error before any of it runs. REDUCE, NEWOBJ and
BUILD accept only objects from this list, and the functions that they call check their arguments (see
`guarded`).
"""

import pickle
import struct
from collections import Counter, OrderedDict

from . import guarded, names, safe
from .guarded import described

_UINT16, _UINT32, _UINT64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")
_INT32, _FLOAT64 = struct.Struct("<i"), struct.Struct(">d")
_BLOCKED_MODULES = ("sys", "os", "posix", "nt")


def _error(text: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(text)


class RestrictedUnpickler:
    """Reads the next pickle of `stream` with `load()`.

    `persistent_load`, a function of the id, must be set first.
    """

    def __init__(self, stream, encoding: str = "utf-8"):
        self._read = stream.read
        self._readline = stream.readline
        self._encoding = encoding
        self.persistent_load = self._no_persistent_load

    @staticmethod
    def _no_persistent_load(pid):
        raise _error(
            "A load persistent id instruction was encountered, but no persistent_load function was specified."
        )

    def load(self):
        """Return the object.

        UnpicklingError if something is not allowed, EOFError if the stream ends too early.
        """
        self._stack, self._marks, self._memo = [], [], {}
        self._resolved = {}  # id -> (object, function to call for it); REDUCE calls nothing else
        self._user_classes = set()
        try:
            return self._run()
        except (IndexError, struct.error, UnicodeDecodeError) as err:
            raise _error(f"the pickle is damaged: {err}") from err

    def _run(self):
        read, handlers, stop = self._read, _OPCODES, pickle.STOP
        while (code := read(1)) != stop:
            handler = handlers.get(code)
            if handler is None:
                if not code:
                    raise EOFError("unexpected end of the pickle")
                raise _error(f"Unsupported operand {code[0]}")
            handler(self)
        return self._stack.pop()

    # -- bytes of the stream -------------------------------------------------------------------------------
    def _bytes(self, count: int) -> bytes:
        data = self._read(count)
        if len(data) != count:
            raise EOFError("unexpected end of the pickle")
        return data

    def _unpack(self, layout: struct.Struct):
        return layout.unpack(self._read(layout.size))[0]  # struct.error if the stream ends too early

    def _line(self) -> str:
        return self._readline()[:-1].decode("utf-8")

    def _push(self, value):
        self._stack.append(value)

    def _pop_mark(self) -> list:
        items, self._stack = self._stack, self._marks.pop()
        return items

    # -- globals -------------------------------------------------------------------------------------------
    def _global(self, module: str, name: str):
        module, name = names.py2_to_py3(module, name)
        full = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED_MODULES:
            raise _error(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        found, call = self._lookup(module, name)
        self._resolved.setdefault(id(found), (found, call))
        self._push(found)

    def _lookup(self, module: str, name: str):
        """Return the object of this name on the allow-list, and the function to call for it (or None)."""
        found = safe.find(module, name)
        if found is safe.MISSING:
            full = f"{module}.{name}"
            raise _error(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Please use `torch.serialization.add_safe_globals([{full}])` or the "
                f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this global "
                "if you trust this class/function."
            )
        if not safe.is_user(module, name):
            return found, guarded.caller(found)
        if isinstance(found, type):
            self._user_classes.add(found)
        return found, found

    def op_global(self):
        module = self._line()
        self._global(module, self._line())

    def op_stack_global(self):
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise _error("STACK_GLOBAL requires str")
        self._global(module, name)

    # -- calls ---------------------------------------------------------------------------------------------
    def _caller(self, func, what: str):
        """Return the function to call for an object of the allow-list."""
        _, call = self._resolved.get(id(func), (None, None))
        if call is None:
            raise _error(f"Trying to call {what} for unrecognized function {described(func)}")
        return call

    def _arguments(self, kind=tuple):
        args = self._stack.pop()
        if type(args) is not kind:
            raise _error(f"expected a {kind.__name__} of arguments, but got {described(args)}")
        return args

    def op_reduce(self):
        args = self._arguments()
        self._stack[-1] = self._caller(self._stack[-1], "reduce")(*args)

    def op_newobj(self):
        args = self._arguments()
        self._push(self._new(self._stack.pop(), args, {}))

    def op_newobj_ex(self):
        kwargs, args = self._arguments(dict), self._arguments()
        self._push(self._new(self._stack.pop(), args, kwargs))

    def _new(self, cls, args, kwargs):
        call = self._caller(cls, "new object")
        if not isinstance(cls, type):
            raise _error(f"Trying to call new object for {described(cls)}, which is not a class")
        if call is cls:  # a class that the user has allowed
            return cls.__new__(cls, *args, **kwargs)
        return call(*args, **kwargs)

    def op_build(self):
        state = self._stack.pop()
        self._build(self._stack[-1], state)

    def _build(self, inst, state):
        """Set the state of `inst`."""
        kind = type(inst)
        # A class may be allowed whose name the file does not contain: numpy.dtype("uint32") makes one of its own class.
        if kind in self._user_classes or any(kind is allowed for allowed in safe.get_safe_globals()):
            set_state(inst, state)
        elif kind is OrderedDict:
            guarded.check_state(kind, state)
            inst.__dict__.update(state)
        else:
            raise _error(
                "Can only build OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind.__module__}.{kind.__qualname__}"
            )

    def op_persid(self):
        self._push(self._persistent(self._stack.pop()))

    def op_persid_text(self):
        self._push(self._persistent(self._line()))

    def _persistent(self, pid):
        if isinstance(pid, tuple) and pid and pid[0] not in ("storage", b"storage"):
            raise _error(f"Only persistent_load of storage is allowed, but got {described(pid[0])}")
        return self.persistent_load(pid)

    # -- containers ----------------------------------------------------------------------------------------
    def op_mark(self):
        self._marks.append(self._stack)
        self._stack = []

    def op_tuple(self):
        items = self._pop_mark()
        self._push(tuple(items))

    def _take(self, count: int) -> tuple:
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        return items

    def op_tuple1(self):
        self._push(self._take(1))

    def op_tuple2(self):
        self._push(self._take(2))

    def op_tuple3(self):
        self._push(self._take(3))

    def op_list(self):
        items = self._pop_mark()
        self._push(items)

    def op_dict(self):
        items = self._pop_mark()
        guarded.check_keys(items[::2])
        self._push(dict(zip(items[::2], items[1::2], strict=True)))

    def op_append(self):
        item = self._stack.pop()
        self._list_on_top().append(item)

    def op_appends(self):
        items = self._pop_mark()
        self._list_on_top().extend(items)

    def _list_on_top(self):
        target = self._stack[-1]
        if type(target) is not list and type(target) not in self._user_classes:
            raise _error(f"Can only append to lists, but got {type(target)}")
        return target

    def op_setitem(self):
        value, key = self._stack.pop(), self._stack.pop()
        guarded.check_keys((key,))
        self._dict_on_top()[key] = value

    def op_setitems(self):
        items = self._pop_mark()
        target = self._dict_on_top()
        guarded.check_keys(items[::2])
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def _dict_on_top(self):
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, Counter) and type(target) not in self._user_classes:
            raise _error(f"Can only set items of dicts, but got {type(target)}")
        return target

    def op_additems(self):
        items = self._pop_mark()
        target = self._stack[-1]
        if type(target) is not set:
            raise _error(f"Can only add to sets, but got {type(target)}")
        guarded.check_keys(items)
        target.update(items)

    def op_frozenset(self):
        items = self._pop_mark()
        guarded.check_keys(items)
        self._push(frozenset(items))

    # -- memo ----------------------------------------------------------------------------------------------
    def op_memoize(self):
        self._memo[len(self._memo)] = self._stack[-1]

    def _recall(self, index: int):
        try:
            self._stack.append(self._memo[index])
        except KeyError:
            raise _error(f"Memo value not found at index {index}") from None

    def _store(self, index: int):
        self._memo[index] = self._stack[-1]

    # -- numbers and text ----------------------------------------------------------------------------------
    def op_int(self):
        text = self._line()
        self._push({"00": False, "01": True}[text] if text in ("00", "01") else int(text))

    def op_long_text(self):
        self._push(int(self._line().rstrip("L")))

    def _long(self, size: int):
        self._push(int.from_bytes(self._bytes(size), "little", signed=True))

    def _text(self, size: int):
        self._push(str(self._bytes(size), "utf-8", "surrogatepass"))

    def _old_text(self, size: int):
        data = self._bytes(size)
        self._push(data if self._encoding == "bytes" else data.decode(self._encoding))

    def op_proto(self):
        version = self._bytes(1)[0]
        if version > pickle.HIGHEST_PROTOCOL:
            raise _error(f"unsupported pickle protocol: {version}")

    def op_pop(self):
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()


def set_state(inst, state):
    """Set a state like pickle: with __setstate__ if the class has it, else with its dict and its slots."""
    setter = getattr(inst, "__setstate__", None)
    if setter is not None:
        setter(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        inst.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(inst, name, value)


_M = RestrictedUnpickler
_OPCODES = {
    pickle.GLOBAL: _M.op_global,
    pickle.STACK_GLOBAL: _M.op_stack_global,
    pickle.REDUCE: _M.op_reduce,
    pickle.NEWOBJ: _M.op_newobj,
    pickle.NEWOBJ_EX: _M.op_newobj_ex,
    pickle.BUILD: _M.op_build,
    pickle.BINPERSID: _M.op_persid,
    pickle.PERSID: _M.op_persid_text,
    pickle.MARK: _M.op_mark,
    pickle.TUPLE: _M.op_tuple,
    pickle.TUPLE1: _M.op_tuple1,
    pickle.TUPLE2: _M.op_tuple2,
    pickle.TUPLE3: _M.op_tuple3,
    pickle.LIST: _M.op_list,
    pickle.DICT: _M.op_dict,
    pickle.APPEND: _M.op_append,
    pickle.APPENDS: _M.op_appends,
    pickle.SETITEM: _M.op_setitem,
    pickle.SETITEMS: _M.op_setitems,
    pickle.ADDITEMS: _M.op_additems,
    pickle.FROZENSET: _M.op_frozenset,
    pickle.MEMOIZE: _M.op_memoize,
    pickle.BINGET: lambda m: m._recall(m._read(1)[0]),
    pickle.LONG_BINGET: lambda m: m._recall(m._unpack(_UINT32)),
    pickle.GET: lambda m: m._recall(int(m._line())),
    pickle.BINPUT: lambda m: m._store(m._read(1)[0]),
    pickle.LONG_BINPUT: lambda m: m._store(m._unpack(_UINT32)),
    pickle.PUT: lambda m: m._store(int(m._line())),
    pickle.NONE: lambda m: m._stack.append(None),
    pickle.NEWTRUE: lambda m: m._stack.append(True),
    pickle.NEWFALSE: lambda m: m._stack.append(False),
    pickle.EMPTY_DICT: lambda m: m._stack.append({}),
    pickle.EMPTY_LIST: lambda m: m._stack.append([]),
    pickle.EMPTY_TUPLE: lambda m: m._stack.append(()),
    pickle.EMPTY_SET: lambda m: m._stack.append(set()),
    pickle.INT: _M.op_int,
    pickle.LONG: _M.op_long_text,
    pickle.FLOAT: lambda m: m._push(float(m._line())),
    pickle.BININT: lambda m: m._push(m._unpack(_INT32)),
    pickle.BININT1: lambda m: m._push(m._read(1)[0]),
    pickle.BININT2: lambda m: m._push(m._unpack(_UINT16)),
    pickle.LONG1: lambda m: m._long(m._bytes(1)[0]),
    pickle.LONG4: lambda m: m._long(m._unpack(_UINT32)),
    pickle.BINFLOAT: lambda m: m._push(m._unpack(_FLOAT64)),
    pickle.BINUNICODE: lambda m: m._text(m._unpack(_UINT32)),
    pickle.SHORT_BINUNICODE: lambda m: m._text(m._bytes(1)[0]),
    pickle.BINUNICODE8: lambda m: m._text(m._unpack(_UINT64)),
    pickle.UNICODE: lambda m: m._push(m._line()),
    pickle.SHORT_BINSTRING: lambda m: m._old_text(m._bytes(1)[0]),
    pickle.BINSTRING: lambda m: m._old_text(m._unpack(_INT32)),
    pickle.SHORT_BINBYTES: lambda m: m._push(m._bytes(m._bytes(1)[0])),
    pickle.BINBYTES: lambda m: m._push(m._bytes(m._unpack(_UINT32))),
    pickle.BINBYTES8: lambda m: m._push(m._bytes(m._unpack(_UINT64))),
    pickle.BYTEARRAY8: lambda m: m._push(bytearray(m._bytes(m._unpack(_UINT64)))),
    pickle.PROTO: _M.op_proto,
    pickle.FRAME: lambda m: m._bytes(8),
    pickle.POP: _M.op_pop,
    pickle.POP_MARK: lambda m: m._pop_mark(),
    pickle.DUP: lambda m: m._stack.append(m._stack[-1]),
}
