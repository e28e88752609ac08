"""What stands in an archive for the contents of a mocked module. A copy of this file goes into each archive that needs it."""

_SPECIAL = (
    "abs add and bool bytes call ceil complex contains copy deepcopy delattr delitem dir divmod enter eq exit float "
    "floor floordiv ge getattr getitem getstate gt hash iadd iand ifloordiv ilshift imod imul index instancecheck "
    "int invert ior ipow irshift isub iter itruediv ixor le len lshift lt mod mul ne neg or pos pow radd rand "
    "rdivmod reduce reversed rfloordiv rlshift rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor setattr "
    "setitem sizeof sub subclasscheck truediv trunc xor "
)


class MockedObject:
    """Stands for an object of a module that is not in the archive. Every use of it is an error that names the object."""

    _name: str

    def __new__(cls, *args, **kwargs):
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging but it is being used in '__new__'. If this error is "
                "happening during 'load_pickle', please ensure that your pickled object doesn't contain any mocked objects."
            )
        return super().__new__(cls)

    def __init__(self, name: str, _suppress_err: bool):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"


def _refusal(method: str):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in {method}"
        )

    return refuse


for _method in _SPECIAL.split():
    setattr(MockedObject, f"__{_method}__", _refusal(f"__{_method}__"))
