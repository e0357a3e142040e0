"""Rules of padding for the kernels from which others are decomposed.

Each takes a call at both sizes and returns the masks that it needs. A rule that cannot tell
returns None, and the decomposition does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.padding import (
    Mask,
    Padding,
    RefusedError,
    check_broadcast,
    differ,
    folds,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.padding import PaddedCall, Pair
    from tensorplug.contract.shapes import Shape

    Depth = Callable[[Shape, Shape, Shape], int]


# Moving elements -------------------------------------------------------------------------------


def _reshape(call: PaddedCall) -> list[Mask]:
    """Allow axes to be merged or split if only the outermost of them is padded."""
    left = [pair for pair in call.inputs[0] if pair != (1, 1)]
    right = [pair for pair in call.outputs[0] if pair != (1, 1)]
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


def _pad(call: PaddedCall) -> list[Mask]:
    constant = call.attributes["constant_value"]
    masks = []
    both = zip(call.attributes["paddings"], call.padded["paddings"], strict=True)
    for axis, ((before, after), (before_padded, _)) in enumerate(both):
        if before != before_padded:
            raise RefusedError("it pads in front, and how much depends on the size")
        if axis in differ(call.inputs[0]) and after:
            masks.append(Mask(0, axis, constant))
    return masks


def _concat(call: PaddedCall) -> list[Mask]:
    axis = call.attributes["axis"]
    if any(axis in differ(sizes) for sizes in call.inputs[:-1]):
        raise RefusedError("something follows padding along the joined axis")
    return []


def _draw(call: PaddedCall) -> list[Mask]:
    """Allow numbers that are drawn in row-major order if only the outermost axis is padded."""
    real = [pair for pair in call.outputs[0] if pair != (1, 1)]
    if differ(real[1:]) or any(map(differ, call.inputs)):
        raise RefusedError("it draws numbers in row-major order, and an inner axis is padded")
    return []


# Reductions and products -----------------------------------------------------------------------


def lowest(dtype: DType) -> Scalar:
    """Return what changes no maximum."""
    return -math.inf if dtype in dt.INEXACT else _least(dtype.min, dtype)


def highest(dtype: DType) -> Scalar:
    """Return what changes no minimum."""
    return math.inf if dtype in dt.INEXACT else _least(dtype.max, dtype)


def _least(limit: int, dtype: DType) -> Scalar:
    return bool(limit) if dtype is dt.bool_ else limit


def zero(dtype: DType) -> Scalar:
    """Return what changes no sum, or no "any"."""
    # Adding -0.0 changes no number, and leaves a sum of -0.0 as it is.
    return False if dtype is dt.bool_ else -0.0 if dtype in dt.INEXACT else 0


def one(dtype: DType) -> Scalar:
    """Return what changes no product, or no "all"."""
    return True if dtype is dt.bool_ else 1


def reduced(neutral: Callable[[DType], Scalar], axes: str = "axis") -> Padding:
    """Return the rule of a reduction: padding along its axes becomes neutral."""

    def reduction(call: PaddedCall) -> list[Mask]:
        reduced = call.attributes[axes]
        along = reduced if isinstance(reduced, tuple) else (reduced,)
        value = neutral(call.types[0].dtype)
        return [Mask(0, axis, value) for axis in differ(call.inputs[0]) if axis in along]

    return Padding(reduction)


def scanned(neutral: Scalar) -> Padding:
    """Return the rule of a running sum or product: what comes behind takes no part forward."""

    def scan(call: PaddedCall) -> list[Mask]:
        axis = call.attributes["axis"]
        takes_part = call.attributes["reverse"] and axis in differ(call.inputs[0])
        return [Mask(0, axis, neutral)] if takes_part else []

    return Padding(scan)


def _top_k(call: PaddedCall) -> list[Mask]:
    x = call.inputs[0]
    last = len(x) - 1
    if call.attributes["k"] != call.padded["k"] and not call.attributes["sorted"]:
        raise RefusedError("its number of results depends on the size, in any order")
    return [Mask(0, last, lowest(call.types[0].dtype))] if last in differ(x) else []


def _sort(call: PaddedCall) -> list[Mask]:
    x = call.inputs[0]
    axis = call.attributes["axis"]
    if axis not in differ(x):
        return []
    if not call.attributes["stable"]:
        raise RefusedError("the order of equal elements is open: use a stable sort")
    dtype = call.types[0].dtype
    if call.attributes["descending"]:
        return [Mask(0, axis, lowest(dtype))]
    return [Mask(0, axis, math.nan if dtype in dt.INEXACT else highest(dtype))]


def _product_of_matrices(call: PaddedCall) -> list[Mask]:
    (a, b), (out,) = call.inputs, call.outputs
    for sizes in (a, b):
        check_broadcast(sizes[:-2], out[:-2])
    inner_a = len(a) - (2 if call.attributes["transpose_a"] else 1)
    inner_b = len(b) - (1 if call.attributes["transpose_b"] else 2)
    # Both, since zero times NaN or infinity is NaN.
    return [Mask(0, inner_a, 0), Mask(1, inner_b, 0)] if inner_a in differ(a) else []


# Indices ---------------------------------------------------------------------------------------


def _gather(call: PaddedCall) -> list[Mask]:
    x, indices = call.inputs
    axis = call.attributes["axis"]
    if axis in differ(x) and (differ(indices) or not call.are_places(1, [x[axis]])):
        raise RefusedError("indices might reach the padding")
    if not x[axis][0]:
        raise RefusedError("there is nothing that padded indices may point to")
    return [Mask(1, at, 0) for at in differ(indices)]


def _gather_nd(call: PaddedCall) -> list[Mask] | None:
    """Allow known places along padded axes; if no such axis is padded, the decomposition tells."""
    params, indices = call.inputs
    places = params[: indices[-1][0]]
    if not differ(places):
        return None
    if differ(indices) or not call.are_places(1, places):
        raise RefusedError("indices might reach the padding")
    return []


def scattered(depth: Depth) -> Padding:
    """Return the rule of a scatter; ``depth``: of the axes that an index addresses."""

    def scatter(call: PaddedCall) -> list[Mask]:
        (indices, updates), (out,) = call.inputs, call.outputs
        addressed = _depth(call, depth)
        outer = len(updates) - len(out) + addressed  # the axes of the list of updates
        if not math.prod(n for n, _ in out) or outer in differ(indices) or differ(out[:addressed]):
            raise RefusedError("the places of its updates depend on the size")
        if call.types[1].dtype is dt.bool_:
            raise RefusedError("updates of booleans have no neutral element")
        return [
            *(Mask(0, at, 0) for at in differ(indices)),
            *(Mask(1, at, 0) for at in differ(updates) if at < outer),
        ]

    return Padding(scatter, ("shape",))


def scattered_into(depth: Depth) -> Padding:
    """Return the rule of updates of a tensor; ``depth`` as for ``scattered``."""

    def scatter_update(call: PaddedCall) -> list[Mask] | None:
        # Known places allow any length of the axes; of others the decomposition tells.
        _, indices, updates = call.inputs
        places = call.outputs[0][: _depth(call, depth)]
        outer = len(updates) - len(call.outputs[0]) + len(places)
        if differ(indices) or differ(updates[:outer]) or not call.are_places(1, places):
            return None
        return []

    return Padding(scatter_update)


def _depth(call: PaddedCall, depth: Depth) -> int:
    """Return the number of axes that each index of a scatter addresses."""
    sizes = (*call.inputs[-2:], call.outputs[0])
    return depth(*(tuple(exact for exact, _ in each) for each in sizes))


def _image_gradient(call: PaddedCall) -> list[Mask] | None:
    return [] if folds(call, (0,)) else None


def _filter_gradient(call: PaddedCall) -> list[Mask] | None:
    """Mask what a convolution sums over: the images."""
    if not folds(call, (0, 1)):
        return None
    return [Mask(0, 0, 0), Mask(1, 0, 0)]


RESHAPED: Final = Padding(_reshape, ("shape",))
PADDED: Final = Padding(_pad, ("paddings",))
JOINED: Final = Padding(_concat)
DRAWN: Final = Padding(_draw, ("shape",))
TOP: Final = Padding(_top_k, ("k",))
SORTED: Final = Padding(_sort)
MATRIX_PRODUCT: Final = Padding(_product_of_matrices)
GATHERED: Final = Padding(_gather)
GATHERED_AT_POINTS: Final = Padding(_gather_nd)
IMAGE_GRADIENT: Final = Padding(_image_gradient, ("input_shape",))
FILTER_GRADIENT: Final = Padding(_filter_gradient)
