"""The op table: one declaration an operator, from which every form of it is made.

``op`` declares an operator on MindSpore's (or with a body of raw calls), ``composite`` one made of other operators.
See docs/architecture.md for the reading of a declaration.
"""

from __future__ import annotations

import collections
import copyreg
import functools
import re
import sys

from .._host.native import load as _load_native
from .._host.warn import warn_once
from . import _schema
from ._facts import Declaration, autocast_codes, derived
from ._formulas import formulas
from ._node_names import node_cases, node_name

_C = _load_native()

raw_empty = _C.raw_empty
raw_view = _C.raw_view


class _Raw:
    """``raw.AddExt(...)``: one MindSpore operator, without gradient."""

    def __getattr__(self, name: str):
        call, handle = _C.call_operator, _C.operator_handle(name)

        def operator(*args):
            return call(handle, *args)

        operator.__name__ = name
        setattr(self, name, operator)
        return operator


class _LazyRaw(_Raw):
    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return super().__getattr__(name)


class _Table:
    """``t.mul``: any operator by torch's name; dots become underscores too (``t.linalg_inv``)."""

    def __getattr__(self, name: str):
        raise AttributeError(f"the op table has no operator {name!r}")


raw = _LazyRaw()
t = _Table()


declarations: dict[str, Declaration] = {}
_by_function: dict[object, tuple[Declaration, bool]] = {}
# The types of the callables: one of functions, and one of what is bound to an instance.
OPERATOR_TYPES: set[type] = set()
namespaces: dict[str, dict[str, object]] = collections.defaultdict(
    dict
)  # "torch", "nn.functional", "linalg", "Tensor" ...


def _result_type(schema: _schema.Schema, with_out: bool):
    """Return the type of an operator's named results, `torch.return_types.NAME`. None if its results have no names."""
    if len(schema.results) < 2 or not all(schema.results):
        return None
    types, name = namespaces["return_types"], result_name(schema)
    for made in (name, f"{name}_out") if with_out else (name,):
        types[made] = _C.named_result(f"torch.return_types.{made}", tuple(schema.results))
    return types[name]


def _warning(body, name: str, successor: str):
    """The body of a deprecated operator, which first warns, once in a process."""
    message = (
        f"torch.{name} is deprecated in favor of {successor} and will be removed in a future PyTorch release."
    )

    @functools.wraps(body)
    def call(*args, **kwargs):
        warn_once(message)
        return body(*args, **kwargs)

    return call


def _naming(body, result_type):
    """The body of a composite whose tuple gets this type. What is no tuple stays: some have one result for some arguments."""

    @functools.wraps(body)
    def call(*args, **kwargs):
        result = body(*args, **kwargs)
        return result_type(result) if isinstance(result, tuple) else result

    return call


def result_name(schema: _schema.Schema) -> str:
    """Return the name in torch.return_types of an operator's results. With `out`, `_out` follows it."""
    return schema.name.replace(".", "_")


_LIMITS = ("element", "compute", "floating element", "floating compute", "narrow element")


def _checked_limits(schema: _schema.Schema, limits: dict[str, str]) -> dict[str, str]:
    for name, limit in limits.items():
        schema.index(name)  # ValueError where the schema has no such argument
        if limit not in _LIMITS:
            raise ValueError(f"{schema.name}: limits: {limit!r} is none of {', '.join(_LIMITS)}")
    return limits


def _spec(
    schema,
    *,
    body,
    composite,
    kernel,
    numbers,
    writers,
    npu,
    promote,
    promote_args,
    grad,
    view,
    facts,
    forms,
    node,
    nodes,
    limits,
    older,
    dunder,
    result_type,
    inplace,
) -> dict:
    limits = _checked_limits(schema, limits or {})
    params = [
        {
            "name": p.name,
            "aliases": p.aliases,
            "type": p.type,
            "nullable": p.nullable or p.default is None and not p.required,
            "keyword_only": p.keyword_only,
            "required": p.required,
            "default": p.default,
            "limit": limits.get(p.name),
        }
        for p in schema.parameters
    ]
    if promote_args is None:
        promote_args = (
            [p.name for p in schema.parameters if p.type in ("Tensor", "TensorOrScalar", "Tensor[]")]
            if promote
            else []
        )
    tensors = sum(p.type in ("Tensor", "TensorOrScalar", "Tensor[]") for p in schema.parameters)
    positional = [i for i, p in enumerate(schema.parameters) if not p.keyword_only]
    # Several ints may stand for a list that is the only positional argument besides self, as in x.permute(1, 0).
    last = positional[-1] if positional else -1
    alone = last == 0 or (last == 1 and schema.parameters[0].name == "self")
    vararg = last if alone and schema.parameters[last].type == "int[]" else -1
    return {
        "qualified": schema.name,
        "node_name": node or node_name(schema),
        "node_cases": node_cases(schema, nodes),
        "params": params,
        "kernel": kernel,
        "numbers": [(schema.index(name), operator) for name, operator in (numbers or {}).items()],
        "writers": list((writers or {}).items()),
        "npu": npu,
        "body": body,
        "composite": composite,
        "promote": promote,
        "promote_params": [schema.index(n) for n in promote_args],
        "formulas": formulas(schema, grad),
        "result_type": None if inplace else result_type,
        "view": view,
        "vararg_index": vararg,
        "takes_out": "o" in forms,
        "autocast": autocast_codes(schema, facts),
        "native": facts.native,
        "refuses_bool": facts.refuses_bool,
        "numbers_alone": facts.numbers_alone,
        "writes_expanded": bool(facts.writes_expanded),
        "warns_expanded": facts.writes_expanded == "deprecated",
        "out_dtype": facts.out_dtype if "o" in forms else None,
        "older": [[schema.index(name) for name in order.split()] for order in older],
        "separate_operands": facts.separate_operands or (facts.pointwise and tensors == 1),
        "recorded": composite and not facts.copied_to_out,
        "chain_of_views": facts.chain_of_views,
        "converted": schema.index(facts.converted) if facts.converted else -1,
        "inplace": inplace,
        "binds": inplace or dunder or binds(schema.name),
    }


# PyTorch writes the functions of these two namespaces in Python, and those of the others in C++, except for these. A function of
# Python that is an attribute of a class is bound to its instances. One of C++ is not.
_SPACES_IN_PYTHON = ("nn.functional", "signal.windows")
_IN_PYTHON = "norm unique unique_consecutive unravel_index split tensordot lu cdist svd_lowrank pca_lowrank stft lobpcg"
_IN_CPP = """
    linear bilinear prelu hardshrink softshrink elu_ selu_ celu_ relu_ leaky_relu_ hardtanh_ threshold_ gelu softplus
    logsigmoid conv1d conv_transpose1d conv2d conv_transpose2d conv3d conv_transpose3d pixel_shuffle pixel_unshuffle
    channel_shuffle avg_pool1d adaptive_avg_pool1d avg_pool2d avg_pool3d one_hot scaled_dot_product_attention
    pairwise_distance cosine_similarity rrelu_ native_channel_shuffle conv_tbc"""


def binds(name: str) -> bool:
    """Return whether the function of this name is bound to the instances of a class that has it as an attribute."""
    space, _, last = name.rpartition(".")
    if space in _SPACES_IN_PYTHON:
        return last not in _IN_CPP.split()
    return space == "Tensor" or name in _IN_PYTHON.split()


# The operators that Python has as augmented assignments (`x += y` calls `__iadd__`).
_AUGMENTED = frozenset(
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"]
)


def _publish(declaration: Declaration) -> None:
    schema = declaration.schema
    for dotted in (schema.name, *declaration.aliases):
        space, _, name = dotted.rpartition(".")
        private = name.startswith("_")
        if "f" in declaration.forms or private:
            own = declaration.method if space == "Tensor" and declaration.method else declaration.function
            _put(space or "torch", name, own, declaration)
        if space in ("", "Tensor") and "m" in declaration.forms:
            _put("Tensor", name, declaration.method, declaration)
        if declaration.inplace is not None and space in ("", "Tensor", "nn.functional"):
            if space == "nn.functional" or "n" in declaration.forms or private:
                _put(space or "torch", name + "_", declaration.inplace, declaration)
            if space in ("", "Tensor"):
                _put("Tensor", name + "_", declaration.inplace, declaration)
        attribute = _table_name(dotted, declaration.short)
        if "f" in declaration.forms or "m" in declaration.forms:
            _put_short(attribute, declaration.function, declaration)
        if declaration.inplace is not None:
            _put_short(attribute + "_", declaration.inplace, declaration)
    if declaration.dunder:
        name = declaration.dunder.strip("_")
        _put("Tensor", f"__{name}__", declaration.method or declaration.function, declaration)
        if declaration.inplace is not None and name in _AUGMENTED:
            _put("Tensor", f"__i{name}__", declaration.inplace, declaration)


def _table_name(dotted: str, short: bool) -> str:
    """The attribute of ``t``: linalg.inv -> linalg_inv; nn.functional.gelu -> gelu, or nn_functional_gelu if not short."""
    if short:
        return re.sub(r"^(Tensor|nn\.functional|aten)\.", "", dotted).replace(".", "_")
    return (dotted if "." in dotted else f"torch.{dotted}").replace(".", "_")


def _put_short(name: str, function, declaration: Declaration) -> None:
    have = vars(t).get(name)
    if have is not None and have is not function:
        raise ValueError(
            f"t.{name} is declared twice: by {declaration_of(have)[0].schema.name} and by {declaration.schema.name}. "
            "Give one of them short=False, and it is found under its whole name"
        )
    setattr(t, name, function)


def _put(space: str, name: str, function, declaration: Declaration) -> None:
    have = namespaces[space].get(name)
    if have is not None and have is not function:
        raise ValueError(f"{space}.{name} is declared twice")
    namespaces[space][name] = function
    declaration.names.append(f"{space}.{name}")


def _declare(text: str, *, kind, ms=None, numbers=None, writers=None, npu=None, body=None, promote=None,
             promote_args=None, grad=None, view=False, node=None, nodes=None, limits=None, older=(), forms, aliases, dunder,
             notes, short, facts, module):  # fmt: skip
    schema = _schema.parse(text)
    if schema.name in declarations:
        raise ValueError(f"operator {schema.name} is declared twice")
    successor = facts.pop("in_favor_of", None)
    facts = derived(schema, kind, promote, facts)
    result_type = _result_type(schema, "o" in forms)
    if kind == "composite" and result_type is not None:
        body = _naming(body, result_type)
    if successor is not None:
        body = _warning(body, schema.name, successor)
    spec = {
        "body": body,
        "composite": kind == "composite",
        "kernel": ms,
        "numbers": numbers,
        "writers": writers,
        "npu": npu,
        "promote": promote,
        "promote_args": promote_args,
        "grad": grad,
        "view": view,
        "facts": facts,
        "forms": forms,
        "node": node,
        "nodes": nodes,
        "limits": limits,
        "older": older,
        "dunder": dunder is not None and "m" not in forms,
        "result_type": result_type,
    }
    d = Declaration(
        schema,
        forms,
        kind,
        ms,
        promote,
        view,
        bool(grad) or kind == "composite",
        tuple(aliases),
        dunder,
        facts,
        short,
        notes=notes,
        numbers=numbers or {},
        writers=writers or {},
        npu=npu,
        body=body,
        module=module,
    )
    d.function = _C.make_op(_spec(schema, **spec, inplace=False))
    _by_function[d.function] = (d, False)
    if "m" in forms or any(name.startswith("Tensor.") for name in aliases):
        d.method = _C.method_form(d.function)
        _by_function[d.method] = (d, False)
    if "i" in forms:
        d.inplace = _C.make_op(_spec(schema, **spec, inplace=True))
        _by_function[d.inplace] = (d, True)
    name = schema.name.split(".")[-1]
    for f, suffix in ((d.function, ""), (d.method, ""), (d.inplace, "_")):
        if f is not None:
            OPERATOR_TYPES.add(type(f))
            copyreg.pickle(type(f), _reduce_operator)
            f.__name__ = f.__qualname__ = name + suffix
            f.__module__ = "torch" if "." not in schema.name else "torch." + schema.name.rpartition(".")[0]
            f.__doc__ = schema.text
    declarations[schema.name] = d
    _publish(d)
    return d


def declaration_of(function):
    """(declaration, whether it is the in-place form) of a table function, or (None, False)."""
    try:
        return _by_function.get(function, (None, False))
    except TypeError:  # not hashable
        return None, False


def check_native() -> None:
    """Raises RuntimeError for native code (csrc/dispatch) of which no declaration says that its operator has it."""
    for kind, names in _C.native_entries().items():
        idle = sorted(n for n in names if n not in declarations or kind not in declarations[n].facts.native)
        if idle:
            raise RuntimeError(
                f'csrc/dispatch has a native {kind} for {", ".join(idle)}, but no declaration of that name says native="{kind}"'
            )


def _by_name(space: str, name: str):
    return namespaces[space][name]


def place_of(function) -> tuple[str, str]:
    """Return (namespace, name) of a table function, such as ("nn.functional", "relu") or ("Tensor", "add_").

    Raises:
        TypeError: no namespace has it.
    """
    module = function.__module__.removeprefix("torch").lstrip(".") or "torch"
    for space in (module, "Tensor", "torch", "nn.functional", "aten"):
        if namespaces[space].get(function.__name__) is function:
            return space, function.__name__
    for name, value in namespaces[
        "Tensor"
    ].items():  # a method whose operator has another name, such as Tensor.inverse
        if value is function:
            return "Tensor", name
    raise TypeError(f"cannot pickle operator {function.__name__}")


def _reduce_operator(function):
    """Operators are pickled and deep-copied by name. Files of torch.save name them as PyTorch does (_serialization.pickler)."""
    return _by_name, place_of(function)


def op(
    schema: str,
    *,
    ms: str | None = None,
    numbers: dict[str, str] | None = None,
    writers: dict[str, str] | None = None,
    npu=None,
    promote: str | None = None,
    promote_args=None,
    forms: str = "fm",
    grad=None,
    view: bool = False,
    node: str | None = None,
    nodes: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    older=(),
    aliases=(),
    dunder: str | None = None,
    notes: str = "",
    short: bool = True,
    **facts,
):
    """Declares an operator.

    How it is called and computed:
        schema: torch's signature, e.g. ``"add(Tensor self, TensorOrScalar other, *, Scalar alpha=1) -> Tensor"``.
            A dotted name is that of a function elsewhere: ``nn.functional.gelu``, or ``aten.im2col`` where only
            torch.ops.aten has it.
        ms: MindSpore's operator, called with the arguments in schema order. Without it ``op`` is a decorator for a body
            that adapts the arguments and makes raw calls.
        numbers: argument name -> MindSpore's operator for calls where this argument is a Python number. Without an entry,
            an operator with ``promote`` receives the number as a tensor without dims, and any other the number. An
            empty name makes it such a tensor too.
        writers: MindSpore's operator -> MindSpore's operator that writes the same results into its first operand. The
            in-place form uses it on an NPU.
        npu: a body that is used for tensors of an NPU, where MindSpore has no operator for it. It consists of operators of
            the table, whose gradients are not recorded. It returns NotImplemented for calls that it does not take.
        promote: None, "default" or "float": the common dtype of ``promote_args`` (default: every tensor argument).
        forms: letters of f(unction), m(ethod), i(n-place method), n (the in-place form as a function too, such as
            ``torch.exp_``), o(ut=). ``out=`` is refused where the letter is missing.
        grad: argument name (or tuple of names) -> function of the output gradient and of what it reads by name.
        view: the body returns views of the first argument.
        node: the name of its graph node, where PyTorch's is not made of the operator's name.
        nodes: the names of nodes of PyTorch's other overloads, by a condition: an argument and "tensor", "number", "given"
            (not None), "list", "1d" or "2d" (its number of dims), or several of these with commas between. The first
            entry that holds counts, e.g. ``{"exponent tensor": "PowBackward1"}``.
        limits: argument -> the type that has to hold a Python number, as in PyTorch's kernel; a number beyond it is a
            RuntimeError. "element": the common dtype of the tensors; "compute": the same, but float32 for 16 bits. After
            "floating ", only floating point and complex elements count; after "narrow ", only integers and 16-bit floats.
            Other numbers wrap round or become infinite.
        older: PyTorch's deprecated signatures, each as the names of its positional arguments in their order, e.g.
            ``("self alpha other",)``. A call whose arguments do not fit the schema may fit one of these.
        aliases: further names; dunder: the operator's special method, e.g. ``"__add__"``.
        short: False if another operator has this name in the table ``t`` already. It is then found there under its full
            name, e.g. ``t.nn_functional_relu`` or ``t.torch_dropout``.

    Facts about the operator (the fields of Facts). All parts of the project read them here and nowhere else:
        pointwise: each element of a result depends only on the elements at the same position, after broadcasting. By
            default this is true for an operator with ``ms`` and ``promote`` whose arguments contain no sizes or dims.
        linear: the names of the tensors in each of which it is linear, or "jointly" if it is linear in all of them
            together, as a sum is.
        along: the arguments that name dims of the first tensor. Every other dim may be sharded or batched.
        reduction: how results of parts are combined ("sum", "mean", "max", "min", or "other" if they cannot be). The
            argument ``dim`` of the operator names the reduced dims.
        autocast: "lower" (precision), "float32", "widest" (of the operands), "as given" (neither its operands nor those of
            the operators inside it are cast) or ``Refused(message)``; a dict with the keys "cpu" and "accelerator" if they
            differ, as in torch's lists.
        fuses: the instruction of fused programs that computes it; ``{(argument, value): instruction}`` if an argument
            decides.
        native: the kinds of native code that csrc/dispatch has for it: "body", "gradient" or both.
        refuses_bool: its first two operands must not be bool.
        in_favor_of: what PyTorch wants to be called instead. Only an operator with a body can be deprecated.
        numbers_alone: it accepts two Python numbers without a tensor.
        writes_expanded: its in-place form also writes to tensors whose elements share memory; "deprecated" if PyTorch
            warns of that.
        separate_operands: its in-place form and its form with out= refuse operands that share memory with the written
            tensor. This is the default for pointwise operators of one tensor.
        copied_to_out: a composite whose form with out= copies the result, so that operands may require grad.
        out_dtype: which dtypes the tensor given as out= may have. "same" and "same scalar type": the result's, with two
            forms of PyTorch's message. "cast": one that type promotion lets the result's be cast to. "cat": the same, but
            the error is that of the function cat. "floating": any floating point type. "truth of all" and "truth of any":
            bool or uint8. "any". "decides": any, and it is the dtype of the computation, as the argument ``dtype`` or
            ``out_dtype`` is, which must be the same if it is given. "creates": the same, and also the device and the layout are
            those of the result. "fills": like "creates", and a tensor with as many elements as the result keeps its shape. By
            default, "creates" for functions that have an argument ``device``, "cast" for operators that promote, "same" for all
            others.
        converted: the argument whose numbers the result has, as another dtype: the argument ``dtype``, or that of the tensor
            that the in-place form writes. A conversion of complex numbers to real ones warns.
        chain_of_views: its result counts as a view of a view, like that of an index with several parts.
        copies: each number of the result is an unchanged number of the operand.
        whole: the result for a part of an operand is not part of the result. DTensor gathers the operands.
        keeps_zeros: the result for zero is zero, so a sparse tensor applies it to its stored values only.
        sample_rank: the number of dims of the first tensor without a batch. One more dim in front is a batch.
        random: it draws random numbers. "each": one for each element of the first tensor, whose values do not matter;
            "values": the same, but the values matter; "sizes": one for each element of the argument ``size``;
            "parameters": its tensors are the parameters of the distribution, in another way than "values"; "other".
            An operator with an argument ``training`` or ``train`` draws nothing if that is false, and one with ``p`` or
            ``dropout_p`` nothing if that is 0. It also draws nothing if ``_random_samples`` are given.
        foreach: ``torch._foreach_<name>`` exists and applies it to each tensor of a list; or the name of the operator
            that this function applies if the second operand is a number.
        backward: torch.ops.aten has ``<name>_backward``. "plain": its arguments are the gradient and those of the
            operator; "sizes": the gradient, the sizes of output and input, and the remaining arguments.
        float8: PyTorch has it for float8 tensors, and it has ``ms``. "any": for all; "tensors": if both operands are
            tensors; "infinite": for dtypes with infinities.
        complex32: PyTorch has it for complex32 tensors, where it computes in complex64 and rounds once.

    Raises ValueError for a name that is declared already, an unknown word for a fact, and a fact about an argument that
    the schema does not have; TypeError for an unknown fact.
    """
    options = {
        "numbers": numbers,
        "writers": writers,
        "npu": npu,
        "promote": promote,
        "promote_args": promote_args,
        "forms": forms,
        "grad": grad,
        "view": view,
        "node": node,
        "nodes": nodes,
        "limits": limits,
        "older": older,
        "aliases": aliases,
        "dunder": dunder,
        "notes": notes,
        "short": short,
        "facts": facts,
    }
    if ms is not None:
        caller = sys._getframe(1).f_globals[
            "__name__"
        ]  # the module that declares it, as there is no body that knows
        return _declare(schema, kind="operator", ms=ms, module=caller, **options).function
    return lambda body: _declare(schema, kind="body", body=body, module=body.__module__, **options).function


def composite(
    schema: str,
    *,
    forms: str = "fm",
    older=(),
    aliases=(),
    dunder: str | None = None,
    notes: str = "",
    short: bool = True,
    **facts,
):
    """Declares an operator as a function of other table operators; its gradient is theirs.

    The arguments are those of ``op``. ``native`` is "call" where csrc/dispatch has the ordinary call of that name.
    """
    return lambda body: (
        _declare(
            schema,
            kind="composite",
            body=body,
            module=body.__module__,
            forms=forms,
            older=older,
            aliases=aliases,
            dunder=dunder,
            notes=notes,
            short=short,
            facts=facts,
        ).function
    )
