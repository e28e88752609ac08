"""The part of Module that registers, finds and lists parameters, buffers and submodules."""

from __future__ import annotations

from ...tensor import Tensor
from ..parameter import Buffer, Parameter
from . import _hooks

_BEFORE_INIT = "cannot assign {} before Module.__init__() call"


def _announce(registry, module, name, value):
    """Run the global registration hooks. A result that is not None replaces the value."""
    for hook in registry.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _check_name(owner, name, what, taken):
    if not isinstance(name, str):
        typename = f"{type(name).__module__}.{type(name).__name__}"
        typename = typename.removeprefix("builtins.")
        if what == "module":
            raise TypeError(f"module name should be a string. Got {typename}")
        raise TypeError(f"{what} name should be a string. Got {typename}")
    if what == "module":
        if taken:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        return
    if "." in name:
        raise KeyError(f'{what} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')
    if taken:
        raise KeyError(f"attribute '{name}' already exists")


def _typename(value):
    if isinstance(value, Tensor):
        return value.type()
    module = type(value).__module__
    name = type(value).__qualname__
    return name if module in ("builtins", None) else f"{module}.{name}"


class MemberSupport:
    """Registration, attribute access and the ``named_*`` iterators of Module."""

    # ---- registration -------------------------------------------------------------------------
    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor (or None) that belongs to the state but is not a parameter.

        With ``persistent=False`` the buffer is not part of ``state_dict``.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError(_BEFORE_INIT.format("buffer"))
        _check_name(
            self, name, "buffer", isinstance(name, str) and hasattr(self, name) and name not in self._buffers
        )
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _announce(_hooks._global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a Parameter (or None) under ``name``. A tensor with a history raises ValueError."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(
            self,
            name,
            "parameter",
            isinstance(name, str) and hasattr(self, name) and name not in self._parameters,
        )
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                "the forward() method."
            )
        if param is not None:
            param = _announce(_hooks._global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Add a submodule (or None) under ``name``."""
        if module is not None and not isinstance(module, MemberSupport):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        _check_name(
            self, name, "module", isinstance(name, str) and hasattr(self, name) and name not in self._modules
        )
        self._modules[name] = _announce(_hooks._global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """Same as :meth:`add_module`."""
        self.add_module(name, module)

    # ---- lookup by dotted name ----------------------------------------------------------------
    def get_submodule(self, target):
        """Return the submodule at the dotted path ``target``. The empty string gives the module itself."""
        module = self
        if target == "":
            return module
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, MemberSupport):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Set the submodule at the dotted path ``target``. With ``strict``, the path must exist already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, MemberSupport):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent_path, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), MemberSupport):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_leaf(self, target):
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_parameter(self, target):
        """Return the parameter at the dotted path ``target``."""
        _, name, value = self._get_leaf(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target):
        """Return the buffer at the dotted path ``target``."""
        owner, name, value = self._get_leaf(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    # ---- attributes ---------------------------------------------------------------------------
    def __getattr__(self, name):
        # This is written out instead of a loop, because every access of a parameter in a forward passes here.
        own = self.__dict__
        members = own.get("_parameters")
        if members is not None:
            if name in members:
                return members[name]
            members = own.get("_modules")
            if members is not None and name in members:
                return members[name]
            members = own.get("_buffers")
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError(_BEFORE_INIT.format("parameters"))
            _discard(name, own, own["_buffers"], own["_modules"], own["_non_persistent_buffers_set"])
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        else:
            self._set_other(name, value, own)

    def _set_other(self, name, value, own):
        """Assign a value that is not a parameter: a submodule, a buffer or a plain attribute."""
        modules = own.get("_modules")
        if isinstance(value, MemberSupport):
            if modules is None:
                raise AttributeError(_BEFORE_INIT.format("module"))
            _discard(name, own, own["_parameters"], own["_buffers"], own["_non_persistent_buffers_set"])
            modules[name] = _announce(_hooks._global_module_registration_hooks, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = _announce(_hooks._global_module_registration_hooks, self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor) and isinstance(value, Buffer) or buffers is not None and name in buffers:
            self._set_buffer(name, value, own, buffers)
            return
        super().__setattr__(name, value)

    def _set_buffer(self, name, value, own, buffers):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if buffers is None:
            raise AttributeError(_BEFORE_INIT.format("buffer"))
        if isinstance(value, Buffer):
            _discard(name, own, own["_parameters"], own["_modules"])
            self.register_buffer(name, value, value.persistent)
        else:
            buffers[name] = _announce(_hooks._global_buffer_registration_hooks, self, name, value)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(n for n in names if not n[:1].isdigit())

    # ---- iteration ----------------------------------------------------------------------------
    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        """Yield (dotted name, value) for everything that ``get_members_fn`` lists, over all submodules."""
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (path + "." if path else "") + name, value

    def parameters(self, recurse=True):
        """Yield every parameter once, in the order of registration."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield (dotted name, parameter) pairs."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield every buffer once, in the order of registration."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield (dotted name, buffer) pairs."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """Yield the immediate submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Yield (name, module) pairs of the immediate submodules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """Yield this module, then all submodules. A shared module appears once if ``remove_duplicate``."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yield (dotted name, module) pairs: this module under ``prefix``, then all submodules."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                child_prefix = (prefix + "." if prefix else "") + name
                yield from module.named_modules(memo, child_prefix, remove_duplicate)


def _discard(name, *stores):
    for store in stores:
        if name in store:
            if isinstance(store, dict):
                del store[name]
            else:
                store.discard(name)
