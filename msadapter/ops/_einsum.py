"""Einstein summation. The equation is parsed into labels, and batched products contract pairs of operands."""

from __future__ import annotations

import math
import string

from ._declare import namespaces, t

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def _from_sublists(args):
    """Return the equation for the form (operand, labels, operand, labels, ..., labels of the result)."""
    operands, terms, rest = [], [], list(args)
    while len(rest) >= 2:
        operands.append(rest.pop(0))
        terms.append(rest.pop(0))

    def text(labels):
        return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)

    return ",".join(text(x) for x in terms) + ("->" + text(rest[0]) if rest else ""), operands


def _expand_term(term, dims, index):
    """Return one label for each dimension of an operand: a letter, or (k,) inside `...`.

    k counts the dimensions that `...` covers from the right, so that operands of different rank align.
    """
    parts = term.split("...")
    if len(parts) > 2 or "." in "".join(parts):
        raise RuntimeError(f"einsum(): found '.' for operand {index} that is not part of any ellipsis")
    for ch in "".join(parts):
        if ch not in _LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {term.index(ch)} in the equation string, subscripts must "
                "be in [a-zA-Z]"
            )
    named = len("".join(parts))
    if len(parts) == 1:
        if named != dims:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({dims}) for operand {index} and no ellipsis was given"
            )
        return list(parts[0])
    if named > dims:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions "
            f"({dims}) for operand {index}"
        )
    hidden = dims - named
    return list(parts[0]) + [(hidden - i,) for i in range(hidden)] + list(parts[1])


def _result_labels(right, labels, covered):
    ellipsis = [(k,) for k in range(covered, 0, -1)]
    flat = [x for term in labels for x in term]
    if right is None:
        once = sorted({x for x in flat if isinstance(x, str) and sum(y == x for y in flat) == 1})
        return ellipsis + once
    before, dots, after = right.partition("...")
    out = list(before) + (ellipsis if dots else []) + list(after)
    for i, x in enumerate(out):
        if isinstance(x, str) and x in out[:i]:
            raise RuntimeError(f"einsum(): output subscript {x} appears more than once in the output")
        if x not in flat and isinstance(x, str):
            raise RuntimeError(
                f"einsum(): output subscript {x} does not appear in the equation for any input operand"
            )
    return out


def _diagonals(x, labels):
    """Merge dimensions with the same label into their diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand with sizes {x.shape[first]} and {x.shape[second]}"
                )
            x = t.diagonal(x, 0, first, second)
            labels = [y for i, y in enumerate(labels) if i not in (first, second)] + [label]
    return x, labels


def _sum_labels(x, labels, gone):
    dims = [i for i, y in enumerate(labels) if y in gone]
    if not dims:
        return x, labels
    return x.sum(dims), [y for y in labels if y not in gone]


def _contract(a, la, b, lb, keep):
    """Multiply two operands and sum over the labels that are not in ``keep``."""
    a, la = _sum_labels(a, la, [y for y in la if y not in lb and y not in keep])
    b, lb = _sum_labels(b, lb, [y for y in lb if y not in la and y not in keep])
    shared = [y for y in la if y in lb]
    size = {y: max(a.shape[la.index(y)], b.shape[lb.index(y)]) for y in shared}
    # If only one operand has size 1 in a contracted dimension, the other is summed over it first.
    summed = [y for y in shared if y not in keep]
    for y in summed:
        i, j = la.index(y), lb.index(y)
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                b = b.sum(j, keepdim=True)
            else:
                a = a.sum(i, keepdim=True)
    batch = [y for y in shared if y in keep]
    left, right = [y for y in la if y not in lb], [y for y in lb if y not in la]
    if not summed:
        order = batch + left + right
        x = a.permute([la.index(y) for y in batch + left]).reshape(
            [a.shape[la.index(y)] for y in batch + left] + [1] * len(right)
        )
        z = b.permute([lb.index(y) for y in batch + right])
        z = z.reshape(
            [b.shape[lb.index(y)] for y in batch] + [1] * len(left) + [b.shape[lb.index(y)] for y in right]
        )
        return x * z, order
    a = a.permute([la.index(y) for y in batch + left + summed])
    b = b.permute([lb.index(y) for y in batch + summed + right])
    nb, nl, ns = len(batch), len(left), len(summed)
    a = a.expand([size[y] for y in batch] + list(a.shape[nb:]))
    b = b.expand([size[y] for y in batch] + list(b.shape[nb:]))
    dims = [size[y] for y in batch], list(a.shape[nb : nb + nl]), list(b.shape[nb + ns :])
    inner = math.prod(a.shape[nb + nl :])
    product = t.bmm(
        a.reshape(math.prod(dims[0]), math.prod(dims[1]), inner),
        b.reshape(math.prod(dims[0]), inner, math.prod(dims[2])),
    )
    return product.reshape(dims[0] + dims[1] + dims[2]), batch + left + right


def _check_sizes(labels, operands):
    seen = {}
    for i, (term, x) in enumerate(zip(labels, operands, strict=True)):
        for label, n in zip(term, x.shape, strict=True):
            have = seen.setdefault(label, n)
            if have != n and have != 1 and n != 1:
                name = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {n} for operand {i} which does not broadcast with previously "
                    f"seen size {have}"
                )
            seen[label] = max(have, n) if 0 not in (have, n) else 0


def einsum(*args):
    """Sum products of operands according to an equation such as ``"bij,bjk->bik"``.

    The alternative form is (operand, list of label numbers, ..., labels of the result).
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
        operands = list(operands)
    else:
        equation, operands = _from_sublists(args)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        few = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation")
    labels = [_expand_term(term, x.dim(), i) for i, (term, x) in enumerate(zip(terms, operands, strict=True))]
    covered = max((sum(isinstance(y, tuple) for y in term) for term in labels), default=0)
    out = _result_labels(right if arrow else None, labels, covered)
    _check_sizes(labels, operands)
    pairs = [_diagonals(x, term) for x, term in zip(operands, labels, strict=True)]
    x, have = pairs[0]
    for i, (other, term) in enumerate(pairs[1:], 1):
        keep = set(out).union(*[set(later) for _, later in pairs[i + 1 :]])
        x, have = _contract(x, have, other, term, keep)
    x, have = _sum_labels(x, have, [y for y in have if y not in out])
    if have == out:
        return x.view_as(x) if len(pairs) == 1 else x
    return x.permute([have.index(y) for y in out])


namespaces["torch"]["einsum"] = einsum
t.einsum = einsum
