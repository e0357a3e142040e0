"""Rules of padding for the kernels from which others are decomposed (``padding``).

Each takes a call at both sizes and returns the masks that it needs. A rule that cannot tell
returns None, and the decomposition does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.compile.dynamic.padding import (
    Mask,
    RefusedError,
    check_broadcast,
    differ,
    elementwise,
    folds,
)
from tensorplug.contract import dtypes as dt
from tensorplug.ops import (
    creation,
    cumulative,
    extents,
    joining,
    matrix_products,
    movement,
    ranges,
    reduction,
    sorting,
)
from tensorplug.ops.indexing import indexing, writing
from tensorplug.ops.nn.convolution import convolution, depthwise, volumes
from tensorplug.ops.random import random

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.dynamic.padding import Case, Pair, Rule, Rules
    from tensorplug.contract.dtypes import DType, Scalar


# Moving elements -------------------------------------------------------------------------------


def _any_sizes(_case: Case) -> list[Mask]:
    """Allow a call whose padded results begin with the exact ones if the attributes agree."""
    return []


def _reshape(case: Case) -> list[Mask]:
    """Allow axes to be merged or split if only the outermost of them is padded."""
    left = [pair for pair in case.inputs[0] if pair != (1, 1)]
    right = [pair for pair in case.outputs[0] if pair != (1, 1)]
    while left or right:
        merged, split = [left.pop()] if left else [], [right.pop()] if right else []
        while _product(merged) != _product(split):
            side, rest = (merged, left) if _product(merged) < _product(split) else (split, right)
            if not rest:
                raise RefusedError("axes are merged or split in another way at the other size")
            side.insert(0, rest.pop())
        merged_total, split_total = (
            math.prod(size for _, size in axes) for axes in (merged, split)
        )
        if merged_total != split_total or differ(merged[1:]) or differ(split[1:]):
            raise RefusedError("it merges or splits a padded axis that is not the outermost")
    return []


def _product(axes: Sequence[Pair]) -> int:
    return math.prod(size for size, _ in axes)


def _pad(case: Case) -> list[Mask]:
    constant = case.attributes["constant_value"]
    masks = []
    both = zip(case.attributes["paddings"], case.padded.attributes["paddings"], strict=True)
    for axis, ((before, after), (before_padded, _)) in enumerate(both):
        if before != before_padded:
            raise RefusedError("it pads in front, and how much depends on the size")
        if axis in differ(case.inputs[0]) and after:
            masks.append(Mask(0, axis, constant))
    return masks


def _concat(case: Case) -> list[Mask]:
    axis = case.attributes["axis"]
    if any(axis in differ(sizes) for sizes in case.inputs[:-1]):
        raise RefusedError("something follows padding along the joined axis")
    return []


def _draw(case: Case) -> list[Mask]:
    """Allow numbers that are drawn in row-major order if only the outermost axis is padded."""
    real = [pair for pair in case.outputs[0] if pair != (1, 1)]
    if differ(real[1:]) or any(map(differ, case.inputs)):
        raise RefusedError("it draws numbers in row-major order, and an inner axis is padded")
    return []


# Reductions and products -----------------------------------------------------------------------


def _lowest(dtype: DType) -> Scalar:
    return -math.inf if dtype in dt.INEXACT else _least(dtype.min, dtype)


def _highest(dtype: DType) -> Scalar:
    return math.inf if dtype in dt.INEXACT else _least(dtype.max, dtype)


def _least(limit: int, dtype: DType) -> Scalar:
    return bool(limit) if dtype is dt.bool_ else limit


def _zero(dtype: DType) -> Scalar:
    # Adding -0.0 changes no number, and leaves a sum of -0.0 as it is.
    return False if dtype is dt.bool_ else -0.0 if dtype in dt.INEXACT else 0


def _one(dtype: DType) -> Scalar:
    return True if dtype is dt.bool_ else 1


def _reduce(neutral: Callable[[DType], Scalar], axes: str = "axis") -> Rule:
    def rule(case: Case) -> list[Mask]:
        given = case.attributes[axes]
        reduced = given if isinstance(given, tuple) else (given,)
        value = neutral(case.types[0].dtype)
        return [Mask(0, axis, value) for axis in differ(case.inputs[0]) if axis in reduced]

    return rule


def _scan(neutral: Scalar) -> Rule:
    def rule(case: Case) -> list[Mask]:
        axis = case.attributes["axis"]
        takes_part = case.attributes["reverse"] and axis in differ(case.inputs[0])
        return [Mask(0, axis, neutral)] if takes_part else []

    return rule


def _top_k(case: Case) -> list[Mask]:
    x = case.inputs[0]
    last = len(x) - 1
    if case.attributes["k"] != case.padded.attributes["k"] and not case.attributes["sorted"]:
        raise RefusedError("its number of results depends on the size, in any order")
    lowest = _lowest(case.types[0].dtype)
    return [Mask(0, last, lowest)] if last in differ(x) else []


def _sort(case: Case) -> list[Mask]:
    x = case.inputs[0]
    axis = case.attributes["axis"]
    if axis not in differ(x):
        return []
    if not case.attributes["stable"]:
        raise RefusedError("the order of equal elements is open: use a stable sort")
    dtype = case.types[0].dtype
    if case.attributes["descending"]:
        return [Mask(0, axis, _lowest(dtype))]
    return [Mask(0, axis, math.nan if dtype in dt.INEXACT else _highest(dtype))]


def _product_of_matrices(case: Case) -> list[Mask]:
    (a, b), (out,) = case.inputs, case.outputs
    for sizes in (a, b):
        check_broadcast(sizes[:-2], out[:-2])
    inner_a = len(a) - (2 if case.attributes["transpose_a"] else 1)
    inner_b = len(b) - (1 if case.attributes["transpose_b"] else 2)
    # Both, since zero times NaN or infinity is NaN.
    return [Mask(0, inner_a, 0), Mask(1, inner_b, 0)] if inner_a in differ(a) else []


# Indices ---------------------------------------------------------------------------------------


def _gather(case: Case) -> list[Mask]:
    x, indices = case.inputs
    axis = case.attributes["axis"]
    if axis in differ(x) and (differ(indices) or not case.are_places(1, [x[axis]])):
        raise RefusedError("indices might reach the padding")
    if not x[axis][0]:
        raise RefusedError("there is nothing that padded indices may point to")
    return [Mask(1, at, 0) for at in differ(indices)]


def _gather_nd(case: Case) -> list[Mask] | None:
    """Allow known places along padded axes; if no such axis is padded, the decomposition tells."""
    params, indices = case.inputs
    places = params[: indices[-1][0]]
    if not differ(places):
        return None
    if differ(indices) or not case.are_places(1, places):
        raise RefusedError("indices might reach the padding")
    return []


def _scatter(case: Case) -> list[Mask]:
    (indices, updates), (out,) = case.inputs, case.outputs
    depth = _depth(case)
    outer = len(updates) - len(out) + depth  # the axes of the list of updates
    if not math.prod(n for n, _ in out) or outer in differ(indices) or differ(out[:depth]):
        raise RefusedError("the places of its updates depend on the size")
    if case.types[1].dtype is dt.bool_:
        raise RefusedError("updates of booleans have no neutral element")
    return [
        *(Mask(0, at, 0) for at in differ(indices)),
        *(Mask(1, at, 0) for at in differ(updates) if at < outer),
    ]


def _scatter_update(case: Case) -> list[Mask] | None:
    """Allow updates at known places, however long the axes are; else the decomposition tells."""
    _, indices, updates = case.inputs
    places = case.outputs[0][: _depth(case)]
    outer = len(updates) - len(case.outputs[0]) + len(places)
    if differ(indices) or differ(updates[:outer]) or not case.are_places(1, places):
        return None
    return []


def _depth(case: Case) -> int:
    """Return the number of axes that each index of a scatter addresses."""
    sizes = (*case.inputs[-2:], case.outputs[0])
    return indexing.scatter_depth(*(tuple(exact for exact, _ in each) for each in sizes))


def _image_gradient(case: Case) -> list[Mask] | None:
    return [] if folds(case, (0,)) else None


def _filter_gradient(case: Case) -> list[Mask] | None:
    """Mask what a convolution sums over: the images."""
    if not folds(case, (0, 1)):
        return None
    return [Mask(0, 0, 0), Mask(1, 0, 0)]


RULES: Final[Rules] = {
    creation.FILL: (_any_sizes, ("shape",)),
    ranges.RANGE: (_any_sizes, ("stop",)),
    movement.BROADCAST_TO: (elementwise, ("shape", "input_shape")),
    movement.RESHAPE: (_reshape, ("shape",)),
    movement.TRANSPOSE: (_any_sizes, ()),
    extents.SLICE: (_any_sizes, ("size",)),
    extents.PAD_V2: (_pad, ("paddings",)),
    joining.CONCAT: (_concat, ()),
    joining.PACK: (_any_sizes, ()),
    reduction.SUM: (_reduce(_zero), ()),
    reduction.PROD: (_reduce(_one), ()),
    reduction.MAX: (_reduce(_lowest, "reduction_indices"), ()),
    reduction.MIN: (_reduce(_highest), ()),
    reduction.ALL: (_reduce(_one), ()),
    reduction.ANY: (_reduce(_zero), ()),
    reduction.ARG_MAX: (_reduce(_lowest), ()),
    reduction.ARG_MIN: (_reduce(_highest), ()),
    cumulative.CUMSUM: (_scan(0), ()),
    cumulative.CUMPROD: (_scan(1), ()),
    sorting.SORT: (_sort, ()),
    sorting.ARG_SORT: (_sort, ()),
    sorting.TOP_K: (_top_k, ("k",)),
    matrix_products.BATCH_MAT_MUL: (_product_of_matrices, ()),
    indexing.GATHER_V2: (_gather, ()),
    indexing.GATHER_ND: (_gather_nd, ()),
    writing.SCATTER_ND: (_scatter, ("shape",)),
    writing.TENSOR_SCATTER_UPDATE: (_scatter_update, ()),
    **dict.fromkeys(
        (
            random.RANDOM_BITS,
            random.RANDOM_EXPONENTIAL,
            random.RANDOM_INTEGERS,
            random.RANDOM_NORMAL,
            random.RANDOM_UNIFORM,
        ),
        (_draw, ("shape",)),
    ),
    **dict.fromkeys(
        (
            convolution.CONV2D_BACKPROP_INPUT,
            depthwise.DEPTHWISE_CONV2D_BACKPROP_INPUT,
            volumes.CONV3D_BACKPROP_INPUT,
        ),
        (_image_gradient, ("input_shape",)),
    ),
    **dict.fromkeys(
        (
            convolution.CONV2D_BACKPROP_FILTER,
            depthwise.DEPTHWISE_CONV2D_BACKPROP_FILTER,
            volumes.CONV3D_BACKPROP_FILTER,
        ),
        (_filter_gradient, ()),
    ),
}
