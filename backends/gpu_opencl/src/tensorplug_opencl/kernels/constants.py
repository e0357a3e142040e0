"""Constants of groups as arguments: one program serves all bounds, slopes and lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tensorplug.plugin import Expression, Group, GroupInput, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import ctypes

__all__ = ["extract"]

MOST: Final = 640  # bytes of the arguments for arrays and constants: the rest is for sizes
COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what compilers make use of


def extract(group: Group) -> tuple[Group, list[np.generic]]:
    """Return the group with further inputs for its constants, and their values as arguments.

    Numbers that many groups have stay in the program. So do all of a group with more of them than
    a kernel may have arguments.
    """
    roots = expressions.unify(group.expressions())
    nodes = expressions.linearize(roots)
    chosen = [node for node in nodes if node.op == "constant" and _is_particular(node)]
    values = [_make_argument(node) for node in chosen]
    pointers = 16 * (len(group.inputs) + len(group.outputs) + len(group.reductions))
    if not chosen or pointers + sum(value.nbytes for value in values) > MOST:
        return group, []
    first = len(group.inputs)
    new: dict[int, Expression] = {
        id(node): expressions.parameter(first + at, node.dtype) for at, node in enumerate(chosen)
    }
    for node in nodes:
        number = int(node.value) if node.op == "parameter" else -1  # type: ignore[arg-type]
        if number >= first:  # the result of a reduction
            new[id(node)] = expressions.parameter(number + len(chosen), node.dtype)
        elif id(node) not in new:
            operands = tuple(new[id(operand)] for operand in node.operands)
            new[id(node)] = (
                Expression(node.op, node.dtype, operands, node.value) if operands else node
            )
    made = [new[id(root)] for root in roots]
    count = len(group.reductions)
    scalars = (
        GroupInput(TensorType(node.dtype, ()), (False,) * len(group.shape)) for node in chosen
    )
    return (
        Group(
            group.name,
            group.shape,
            (*group.inputs, *scalars),
            tuple(
                replace(each, expression=root)
                for each, root in zip(group.reductions, made[:count], strict=True)
            ),
            tuple(
                replace(each, expression=root)
                for each, root in zip(group.outputs, made[count:], strict=True)
            ),
        ),
        values,
    )


def _is_particular(constant: Expression) -> bool:
    return constant.dtype is not dt.bool_ and constant.value not in COMMON


def _make_argument(constant: Expression) -> np.generic:
    """Return a constant, rounded to its dtype, in the type that computes with it."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(constant.value).astype(constant.dtype.numpy)
    argument: np.generic = ctypes.host(ctypes.computed(constant.dtype)).type(rounded[()])
    return argument
