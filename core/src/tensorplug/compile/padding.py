"""What kernels do with padding: rules that compare a call with the same call at padded sizes.

A padded value holds the exact one as its first elements along each axis, followed by anything at
all: axes are padded where the two sizes differ. A rule says whether the results of the padded call
begin with those of the exact call, and which inputs must first be masked along an axis, because
their padding would take part. Kernels without a rule are judged by their decompositions
(``compile.alignment``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import parameter
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.engine.operands import flatten
from tensorplug.errors import ArgumentError
from tensorplug.ops import creation, cumulative, matrix_products, movement, reduction, sorting
from tensorplug.ops.indexing import indexing
from tensorplug.ops.nn.convolution import convolution, depthwise, volumes
from tensorplug.ops.random import random

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.engine.plans import Plan

__all__ = ["Mask", "RefusedError", "judge", "same_call", "same_shape_attributes"]

Pair: TypeAlias = tuple[int, int]
"""An exact size and the padded one."""


class Mask(NamedTuple):
    """Padding of one input along one axis that must become ``neutral``.

    ``input``: its position among the tensors of the call, those in lists included.
    """

    input: int
    axis: int
    neutral: Scalar


class RefusedError(Exception):
    """A call does not allow padding; the message says why."""


Rule: TypeAlias = "Callable[[Plan, Plan], list[Mask] | None]"


def pairs(exact: TensorType, padded: TensorType) -> list[Pair]:
    """Return the sizes of both types by axis.

    Raises:
        RefusedError: they differ in dtype or rank.

    """
    if exact.dtype is not padded.dtype or exact.rank != padded.rank:
        raise RefusedError("a dtype or a rank depends on the size")
    return list(zip(exact.shape, padded.shape, strict=True))


def same_call(exact: Plan, padded: Plan) -> bool:
    """Return whether two calls of one kernel are the same, with the same types."""
    return (
        exact.inputs == padded.inputs
        and [output.type for output in exact.outputs] == [output.type for output in padded.outputs]
        and same_shape_attributes(exact, padded, ())
    )


def same_shape_attributes(exact: Plan, padded: Plan, sizes: Collection[str]) -> bool:
    """Return whether all attributes are equal but ``sizes``."""

    def rest(plan: Plan) -> Any:
        return freeze_attributes({k: v for k, v in plan.attributes.items() if k not in sizes})

    try:
        return bool(rest(exact) == rest(padded))
    except TypeError:  # a value that is not hashable
        return False


def judge(exact: Plan, padded: Plan) -> list[Mask] | None:
    """Return the masks that a call needs; None if its decomposition must tell.

    Raises:
        RefusedError: the results do not begin with the exact ones, whatever is masked.

    """
    rule, sizes = _RULES.get(exact.spec, (None, ()))
    if rule is None and _is_elementwise(exact):
        rule = _elementwise
    if rule is None:
        return _by_batching(exact, padded)
    if not same_shape_attributes(exact, padded, sizes):
        raise RefusedError("an attribute depends on the size")
    return rule(exact, padded)


# Elementwise kernels, and those that only move elements --------------------------------------


def _is_elementwise(plan: Plan) -> bool:
    """Return whether a kernel has an expression, or Jacobians that are diagonal."""
    rule = plan.spec.expression_rule
    if plan.spec.multiple_outputs:
        return False
    if rule is None:
        found = [plan.state.tangent(plan.spec.name, name) for name in plan.spec.input_names]
        return bool(found) and all(
            owned is not None and owned.entry.kind == "elementwise" for owned in found
        )
    operands = [
        [parameter(0, member.dtype) for member in type_]
        if isinstance(type_, list)
        else type_ and parameter(0, type_.dtype)
        for type_ in plan.inputs
    ]
    return rule(operands, plan.attributes, plan.output.type) is not None


def _inputs(exact: Plan, padded: Plan) -> list[list[Pair]]:
    """Return the sizes of each tensor that is given."""
    both = zip(flatten(exact.inputs), flatten(padded.inputs), strict=True)
    return [pairs(a, b) for a, b in both]


def _outputs(exact: Plan, padded: Plan) -> list[list[Pair]]:
    both = zip(exact.outputs, padded.outputs, strict=True)
    return [pairs(a.type, b.type) for a, b in both]


def _differ(sizes: Sequence[Pair]) -> list[int]:
    """Return the padded axes."""
    return [axis for axis, (exact, padded) in enumerate(sizes) if exact != padded]


def _elementwise(exact: Plan, padded: Plan) -> list[Mask]:
    (out,) = _outputs(exact, padded)
    for sizes in _inputs(exact, padded):
        _check_broadcast(sizes, out)
    return []


def _check_broadcast(sizes: Sequence[Pair], out: Sequence[Pair]) -> None:
    for pair, whole in zip(reversed(sizes), reversed(out), strict=False):
        if pair not in (whole, (1, 1)):
            raise RefusedError("an axis broadcasts at one of the sizes only")


def _any_sizes(_exact: Plan, _padded: Plan) -> list[Mask]:
    """Allow a call whose padded results begin with the exact ones if the attributes agree."""
    return []


def _reshape(exact: Plan, padded: Plan) -> list[Mask]:
    """Allow axes to be merged or split if only the outermost of them is padded."""
    (old,), (new,) = _inputs(exact, padded), _outputs(exact, padded)
    left = [pair for pair in old if pair != (1, 1)]
    right = [pair for pair in new if pair != (1, 1)]
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
        if merged_total != split_total or _differ(merged[1:]) or _differ(split[1:]):
            raise RefusedError("it merges or splits a padded axis that is not the outermost")
    return []


def _product(axes: Sequence[Pair]) -> int:
    return math.prod(size for size, _ in axes)


def _pad(exact: Plan, padded: Plan) -> list[Mask]:
    (x,) = _inputs(exact, padded)
    constant = exact.attributes["constant_value"]
    masks = []
    both = zip(exact.attributes["paddings"], padded.attributes["paddings"], strict=True)
    for axis, ((before, after), (before_padded, _)) in enumerate(both):
        if before != before_padded:
            raise RefusedError("it pads in front, and how much depends on the size")
        if x[axis][0] != x[axis][1] and after:
            masks.append(Mask(0, axis, constant))
    return masks


def _concat(exact: Plan, padded: Plan) -> list[Mask]:
    axis = exact.attributes["axis"]
    if any(axis in _differ(sizes) for sizes in _inputs(exact, padded)[:-1]):
        raise RefusedError("something follows padding along the joined axis")
    return []


def _draw(exact: Plan, padded: Plan) -> list[Mask]:
    """Allow numbers that are drawn in row-major order if only the outermost axis is padded."""
    (out,) = _outputs(exact, padded)
    real = [pair for pair in out if pair != (1, 1)]
    if _differ(real[1:]) or any(map(_differ, _inputs(exact, padded))):
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
    def rule(exact: Plan, padded: Plan) -> list[Mask]:
        (x,) = _inputs(exact, padded)
        given = exact.attributes[axes]
        reduced = given if isinstance(given, tuple) else (given,)
        value = neutral(exact.inputs[0].dtype)  # type: ignore[union-attr]  # one tensor
        return [Mask(0, axis, value) for axis in _differ(x) if axis in reduced]

    return rule


def _scan(neutral: Scalar) -> Rule:
    def rule(exact: Plan, padded: Plan) -> list[Mask]:
        (x,) = _inputs(exact, padded)
        axis = exact.attributes["axis"]
        return (
            [Mask(0, axis, neutral)] if exact.attributes["reverse"] and axis in _differ(x) else []
        )

    return rule


def _top_k(exact: Plan, padded: Plan) -> list[Mask]:
    (x,) = _inputs(exact, padded)
    last = len(x) - 1
    if exact.attributes["k"] != padded.attributes["k"] and not exact.attributes["sorted"]:
        raise RefusedError("its number of results depends on the size, in any order")
    lowest = _lowest(exact.inputs[0].dtype)  # type: ignore[union-attr]  # one tensor
    return [Mask(0, last, lowest)] if last in _differ(x) else []


def _sort(exact: Plan, padded: Plan) -> list[Mask]:
    (x,) = _inputs(exact, padded)
    axis = exact.attributes["axis"]
    if axis not in _differ(x):
        return []
    if not exact.attributes["stable"]:
        raise RefusedError("the order of equal elements is open: use a stable sort")
    dtype = exact.inputs[0].dtype  # type: ignore[union-attr]  # one tensor
    if exact.attributes["descending"]:
        return [Mask(0, axis, _lowest(dtype))]
    return [Mask(0, axis, math.nan if dtype in dt.INEXACT else _highest(dtype))]


def _product_of_matrices(exact: Plan, padded: Plan) -> list[Mask]:
    a, b = _inputs(exact, padded)
    (out,) = _outputs(exact, padded)
    for sizes in (a, b):
        _check_broadcast(sizes[:-2], out[:-2])
    inner_a = len(a) - (2 if exact.attributes["transpose_a"] else 1)
    inner_b = len(b) - (1 if exact.attributes["transpose_b"] else 2)
    # Both, since zero times NaN or infinity is NaN.
    return [Mask(0, inner_a, 0), Mask(1, inner_b, 0)] if inner_a in _differ(a) else []


# Indices ---------------------------------------------------------------------------------------


def _gather(exact: Plan, padded: Plan) -> list[Mask]:
    x, indices = _inputs(exact, padded)
    axis = exact.attributes["axis"]
    if axis in _differ(x):
        raise RefusedError("indices might reach the padding")
    if not x[axis][0]:
        raise RefusedError("there is nothing that padded indices may point to")
    return [Mask(1, at, 0) for at in _differ(indices)]


def _scatter(exact: Plan, padded: Plan) -> list[Mask]:
    indices, updates = _inputs(exact, padded)
    (out,) = _outputs(exact, padded)
    places, outer = _differ(indices), len(updates) - len(out)
    depth = indexing.scatter_depth(
        *(tuple(n for n, _ in each) for each in (indices, updates, out))
    )
    outer += depth  # the axes of the list of updates
    if outer in places or _differ(out[:depth]) or not math.prod(n for n, _ in out):
        raise RefusedError("the places of its updates depend on the size")
    if exact.inputs[1].dtype is dt.bool_:  # type: ignore[union-attr]  # one tensor
        raise RefusedError("updates of booleans have no neutral element")
    return [
        *(Mask(0, at, 0) for at in places),
        *(Mask(1, at, 0) for at in _differ(updates) if at < outer),
    ]


# What the batching rules state ----------------------------------------------------------------


def _by_batching(exact: Plan, padded: Plan) -> list[Mask] | None:
    """Judge a call by axes along which its kernel does the same; None if that is not enough."""
    owned = exact.state.batching(exact.spec.name)
    if owned is None or not same_shape_attributes(exact, padded, ()):
        return None
    entry = owned.entry
    inputs, outputs = _inputs(exact, padded), _outputs(exact, padded)
    if entry.kind == "folded":
        batch = {at for at, name in enumerate(exact.spec.input_names) if name in entry.names}
        return [] if _folds(exact, inputs, batch) else None
    decomposition = exact.state.decomposition(exact.spec.name)
    if entry.kind != "leading" or decomposition is None or decomposition.entry.on_host:
        return None  # a function of the host may refuse what the padding holds
    depth = 1 + max(axis for sizes in (*inputs, *outputs) for axis in _differ(sizes))
    front = outputs[0][:depth]
    if any(len(sizes) < depth or sizes[:depth] != front for sizes in (*inputs, *outputs)):
        return None
    return [] if _is_leading(exact, entry.names, depth) else None


def _is_leading(plan: Plan, axes: Collection[str], depth: int) -> bool:
    """Return whether the kernel takes the same call without the first axes, ``depth`` of them."""

    def inner(type_: Any) -> Any:
        if isinstance(type_, list):
            return [inner(member) for member in type_]
        return type_ and TensorType(type_.dtype, type_.shape[depth:])

    attributes = dict(plan.attributes)
    for name in axes:
        given = attributes[name]
        numbers = given if isinstance(given, tuple) else (given,)
        if any(axis < depth for axis in numbers):
            return False
        moved = tuple(axis - depth for axis in numbers)
        attributes[name] = moved if isinstance(given, tuple) else moved[0]
    try:
        _, found = plan.spec.resolve([inner(type_) for type_ in plan.inputs], attributes)
    except ArgumentError:
        return False
    return list(found) == [inner(output.type) for output in plan.outputs]


def _image_gradient(exact: Plan, padded: Plan) -> list[Mask] | None:
    return [] if _folds(exact, _inputs(exact, padded), (0,)) else None


def _filter_gradient(exact: Plan, padded: Plan) -> list[Mask] | None:
    """Mask what a convolution sums over: the images."""
    if not _folds(exact, _inputs(exact, padded), (0, 1)):
        return None
    return [Mask(0, 0, 0), Mask(1, 0, 0)]


def _folds(plan: Plan, inputs: Sequence[Sequence[Pair]], batch: Collection[int]) -> bool:
    """Return whether no more than axis 0 of the inputs at the positions ``batch`` is padded."""
    if None in plan.inputs or len(inputs) != len(plan.inputs):
        return False  # positions of tensors are not those of inputs
    return all(
        not _differ(sizes) or (_differ(sizes) == [0] and at in batch)
        for at, sizes in enumerate(inputs)
    )


_RULES: Final[dict[KernelSpec, tuple[Rule, Collection[str]]]] = {
    creation.FILL: (_any_sizes, ("shape",)),
    creation.RANGE: (_any_sizes, ("stop",)),
    movement.BROADCAST_TO: (_elementwise, ("shape", "input_shape")),
    movement.RESHAPE: (_reshape, ("shape",)),
    movement.TRANSPOSE: (_any_sizes, ()),
    movement.SLICE: (_any_sizes, ("size",)),
    movement.PAD_V2: (_pad, ("paddings",)),
    movement.CONCAT: (_concat, ()),
    movement.PACK: (_any_sizes, ()),
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
    indexing.SCATTER_ND: (_scatter, ("shape",)),
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
