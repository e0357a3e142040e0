"""Gradients of pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.nn.convolution import argmax_pooling
from tensorplug.ops.nn.convolution import pooling as ops
from tensorplug.ops.nn.convolution.averaging import divide_by_counts, sum_pairwise
from tensorplug.ops.nn.convolution.dilated_pooling import POOL, pool_geometry
from tensorplug.ops.nn.convolution.patches import (
    find_first_matches,
    from_channels_last,
    places,
    taps,
    to_channels_last,
    untap,
)

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

    Attributes = dict[str, Any]

rules: RuleTable = RuleTable()


def _register(
    average: KernelSpec, average_grad: KernelSpec, largest: KernelSpec, largest_grad: KernelSpec
) -> None:
    """Register the rules of pooling of images, or of volumes."""
    rules.stop(average_grad, "input", because="only its shape matters")
    rules.stop(largest_grad, "input", "output", because="they only choose places")
    rules.formulas(
        average, x=lambda dy, x, attributes: dispatch(average_grad, dy, x, **attributes)
    )
    rules.formulas(average_grad, dy=lambda ddy, attributes: dispatch(average, ddy, **attributes))
    rules.formulas(
        largest, x=lambda dy, x, out, attributes: dispatch(largest_grad, dy, x, out, **attributes)
    )


_register(ops.AVG_POOL, ops.AVG_POOL_GRAD, ops.MAX_POOL, ops.MAX_POOL_GRAD)
_register(ops.AVG_POOL_3D, ops.AVG_POOL_3D_GRAD, ops.MAX_POOL_3D, ops.MAX_POOL_3D_GRAD)


@rules.vjp(argmax_pooling.MAX_POOL_WITH_ARGMAX, "x")
def max_pool_with_argmax(
    dy_result: Tensor, x: Tensor, result: Tensor, filter_size: Any, strides: Any, pad: Any
) -> Tensor:
    options = {"filter_size": filter_size, "strides": strides, "pad": pad}
    return dispatch(ops.MAX_POOL_GRAD, dy_result, x, result, **options)


@rules.vjp(ops.MAX_POOL_GRAD, "dy")
def max_pool_grad(
    ddy: Tensor, input: Tensor, output: Tensor, attributes: dict[str, Any]
) -> Tensor:
    return pick_largest(ddy, input, output, ops.geometry(input.shape, **attributes))


@rules.vjp(ops.MAX_POOL_3D_GRAD, "dy")
def max_pool_3d_grad(
    ddy: Tensor, input: Tensor, output: Tensor, attributes: dict[str, Any]
) -> Tensor:
    form = attributes["data_format"]
    windows = ops.geometry(input.shape, **attributes)
    last_ddy, x, largest = (to_channels_last(image, form) for image in (ddy, input, output))
    return from_channels_last(pick_largest(last_ddy, x, largest, windows), form)


def pick_largest(ddy: Tensor, x: Tensor, output: Tensor, windows: Any) -> Tensor:
    """Return the element of ``ddy`` at the place where each window of ``x`` is largest."""
    chosen = find_first_matches(x, output, windows)
    parts = zip(chosen, taps(ddy, windows, 0), strict=True)
    return sum_pairwise([where(first, tap, 0.0) for first, tap in parts])


@rules.vjp(POOL, "input")
def pool(
    dy: Tensor, input: Tensor, out: Tensor, pooling_type: str, attributes: dict[str, Any]
) -> Tensor:
    windows = pool_geometry(input.shape, **attributes)
    if pooling_type == "max":
        chosen = find_first_matches(input, out, windows)
        return untap([where(taken, dy, 0.0) for taken in chosen], windows)
    share = divide_by_counts(dy, windows)
    return untap([share for _ in places(windows)], windows)


rules.jvp(ops.MAX_POOL, "x")(
    lambda x_dot, x, out, attributes: max_pool_grad(x_dot, x, out, attributes)
)
rules.jvp(ops.MAX_POOL_3D, "x")(
    lambda x_dot, x, out, attributes: max_pool_3d_grad(x_dot, x, out, attributes)
)


@rules.jvp(argmax_pooling.MAX_POOL_WITH_ARGMAX, "x")
def max_pool_with_argmax_jvp(
    x_dot: Tensor, x: Tensor, result: Tensor, filter_size: Any, strides: Any, pad: Any
) -> list[Tensor | None]:
    options = {"filter_size": filter_size, "strides": strides, "pad": pad}
    windows = ops.geometry(x.shape, dim_rounding_mode=None, **options)
    return [pick_largest(x_dot, x, result, windows), None]


@rules.jvp(POOL, "input")
def pool_jvp(
    input_dot: Tensor, input: Tensor, out: Tensor, pooling_type: str, attributes: Attributes
) -> Tensor:
    if pooling_type == "avg":
        return dispatch(POOL, input_dot, **attributes)
    return pick_largest(input_dot, input, out, pool_geometry(input.shape, **attributes))
