"""Groups of dtypes that no compiler has, as groups of others in the same memory.

What is only moved, such as a dtype for storage, is moved as whole numbers of its size, and becomes
other numbers by its bits. A complex
number is two real ones along one more axis, if all that is done are sums: these treat both alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import Expression, Group, GroupInput, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import groups as loops
from tensorplug_loops import formats
from tensorplug_loops.statements import rewritten

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Scalar

_BITS: Final = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32, 8: dt.uint64}
_MOST: Final = 2048
_MOVES: Final = {"parameter", "constant", "where"}
_SUMS: Final = _MOVES | {"add", "subtract", "negative"}


def dtypes_of(group: Group) -> frozenset[DType]:
    """Return the dtypes of all arrays and values."""
    arrays = [*(each.type for each in group.inputs), *(each.type for each in group.outputs)]
    return _dtypes_in(tuple(group.expressions())).union(type_.dtype for type_ in arrays)


@lru_cache(_MOST)
def _dtypes_in(roots: tuple[Expression, ...]) -> frozenset[DType]:
    return frozenset(node.dtype for node in expressions.order(roots, lambda _: False))


def in_real_numbers(group: Group) -> Group | None:
    """Return a group of real numbers that does the same with the same memory.

    Complex arrays have one more axis of length 2, the last one. None if there is no such group.
    """
    foreign = dtypes_of(group) & (dt.COMPLEX | dt.STORAGE)
    if not foreign:
        return group
    nodes = expressions.linearize(group.expressions())
    if group.folds:
        return None
    own = [node for node in nodes if node.dtype in foreign]
    ops = {node.op for node in own}
    ops |= {
        node.op
        for node in nodes
        if node.dtype not in foreign and any(operand.dtype in foreign for operand in node.operands)
    }
    sums = {each.op for each in group.reductions if each.expression.dtype in foreign}
    meets = {each.combine for each in group.outputs if each.type.dtype in foreign}
    moves = _MOVES | {"cast"} if foreign <= dt.STORAGE else _MOVES
    moved = ops <= moves and not sums and meets <= {None, "last"}
    if moved and all(dtype.itemsize in _BITS for dtype in foreign):
        return _rewritten(group, {dtype: _BITS[dtype.itemsize] for dtype in foreign}, _bits)
    if foreign <= dt.COMPLEX and ops <= _SUMS and sums | meets <= {None, "last", "sum"}:
        return _paired(group, foreign)
    return None


def in_bits(group: Group) -> Group:
    """Return a group that does the same with whole numbers for what it only moves.

    So one kernel moves numbers of all dtypes of a size. Reductions and folds compute.
    """
    if group.reductions or group.folds:
        return group
    types = [*(each.type for each in group.inputs), *(each.type for each in group.outputs)]
    computed = {each.type.dtype for each in group.outputs if each.combine not in {None, "last"}}
    indices = [each.index or () for each in group.inputs]
    indices += [each.index or () for each in group.outputs]
    if any(at.op != "axis" for index in indices for at in index):
        computed.add(dt.int64)  # an index is no number that is moved
    moved = {type_.dtype for type_ in types} - _computed(tuple(group.expressions())) - computed
    new = {
        dtype: _BITS[dtype.itemsize] for dtype in moved - dt.UNSIGNED if dtype.itemsize in _BITS
    }
    return _rewritten(group, new, _bits) if new else group


@lru_cache(_MOST)
def _computed(roots: tuple[Expression, ...]) -> frozenset[DType]:
    """Return the dtypes of what is not only moved; conditions are not."""
    dtypes = set()
    for node in expressions.order(roots, lambda _: False):
        if node.op == "where":
            dtypes.add(node.operands[0].dtype)
        elif node.op not in _MOVES:
            dtypes |= {node.dtype, *(operand.dtype for operand in node.operands)}
    return frozenset(dtypes)


def _bits(value: Scalar, dtype: DType) -> Scalar:
    with np.errstate(over="ignore", invalid="ignore"):
        return int(
            np.array(value).astype(dtype.numpy).reshape(1).view(_BITS[dtype.itemsize].numpy)[0]
        )


def _rewritten(
    group: Group, new: dict[DType, DType], convert: Callable[[Scalar, DType], Scalar]
) -> Group:
    """Return the group with other dtypes, and with constants that are converted."""

    def retyped(type_: TensorType) -> TensorType:
        return TensorType(new.get(type_.dtype, type_.dtype), type_.shape)

    def constant(node: Expression) -> Expression:
        assert node.value is not None
        return expressions.constant(convert(node.value, node.dtype), new[node.dtype])

    def rule(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        dtype = new.get(node.dtype, node.dtype)
        if node.op == "constant" and dtype is not node.dtype:
            return constant(node)
        if node.op == "cast":
            return _cast(operands[0], node.operands[0].dtype, node.dtype)
        return Expression(node.op, dtype, operands, node.value)

    def outside(each: GroupInput) -> Scalar | None:
        if each.outside is None or each.type.dtype not in new:
            return each.outside
        return convert(each.outside, each.type.dtype)

    made = group.rewritten(rewritten(group.expressions(), rule))
    return replace(
        made,
        inputs=tuple(
            replace(each, type=retyped(each.type), outside=outside(each)) for each in made.inputs
        ),
        outputs=tuple(
            replace(
                each,
                type=retyped(each.type),
                initial=each.initial and rule(each.initial, ()),
            )
            for each in made.outputs
        ),
    )


def _cast(x: Expression, source: DType, target: DType) -> Expression:
    """Convert between numbers and the bits of dtypes for storage."""
    if source in dt.STORAGE:
        x = formats.decode(x, source)
    return (formats.encode if target in dt.STORAGE else expressions.cast)(x, target)


def _paired(group: Group, foreign: frozenset[DType]) -> Group | None:
    """Return the group with an axis for the parts of complex numbers."""
    last = len(group.shape)
    is_imaginary = expressions.apply("equal", loops.axis(last), 1)
    real = {dtype: dt.real_part(dtype) for dtype in foreign}
    outside = [e.outside for e in group.inputs if e.type.dtype in foreign and e.outside]
    constants = [each.initial for each in group.outputs if each.initial is not None]
    whole = [complex(n.value) for n in constants if n.op == "constant" and n.dtype in foreign]  # type: ignore[arg-type]
    if outside or any(value != 0 for value in whole):
        return None

    def rule(node: Expression, operands: tuple[Expression, ...]) -> Expression:
        dtype = real.get(node.dtype)
        if node.op != "constant" or dtype is None:
            return Expression(node.op, dtype or node.dtype, operands, node.value)
        value = complex(node.value)  # type: ignore[arg-type]  # a number
        a, b = (expressions.constant(part, dtype) for part in (value.real, value.imag))
        return expressions.where(is_imaginary, b, a)

    def typed(type_: TensorType) -> TensorType:
        dtype = real.get(type_.dtype)
        return type_ if dtype is None else TensorType(dtype, (*type_.shape, 2))

    made = group.rewritten(rewritten(group.expressions(), rule))
    inputs = []
    for each in made.inputs:
        is_complex = each.type.dtype in foreign
        parts = [loops.axis(last)] if is_complex else []
        index = None if each.index is None else (*each.index, *parts)
        inputs.append(
            GroupInput(
                typed(each.type),
                (*each.spans, is_complex),
                index,
                0 if is_complex and each.outside is not None else each.outside,
            )
        )
    outputs = []
    for output in made.outputs:
        if output.type.dtype not in foreign:
            return None
        index = None if output.index is None else (*output.index, loops.axis(last))
        initial = output.initial and rule(output.initial, ())
        if initial is not None and output.initial is not None and output.initial.op == "constant":
            initial = expressions.constant(0, real[output.type.dtype])
        outputs.append(
            replace(
                output,
                type=typed(output.type),
                spans=(*output.spans, True),
                index=index,
                initial=initial,
            )
        )
    reductions = tuple(replace(each, axes=(*each.axes, False)) for each in made.reductions)
    return Group(made.name, (*made.shape, 2), tuple(inputs), reductions, tuple(outputs))
