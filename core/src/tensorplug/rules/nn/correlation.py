"""Gradients of convolutions: the three kernels of a family are transposes of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import to_shape
from tensorplug.ops.nn.convolution import convolution, depthwise, volumes
from tensorplug.ops.nn.convolution.correlation import window_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Family

rules: RuleTable = RuleTable()
Attributes = dict[str, Any]


def _register_family(family: Family) -> None:
    """Register the rules of one family."""

    def convolved(x: Tensor, filter: Tensor, attributes: Attributes) -> Tensor:
        return dispatch(family.forward, x, filter, **window_attributes(attributes))

    def to_input(dy: Tensor, filter: Tensor, shape: Shape, attributes: Attributes) -> Tensor:
        window = window_attributes(attributes)
        return dispatch(family.backprop_input, dy, filter, **window, input_shape=shape)

    def to_filter(x: Tensor, dy: Tensor, shape: Shape, attributes: Attributes) -> Tensor:
        window = window_attributes(attributes)
        return dispatch(family.backprop_filter, x, dy, **window, filter_shape=shape)

    rules.formulas(
        family.forward,
        x=lambda dy, filter, x_type, attributes: to_input(dy, filter, x_type.sizes, attributes),
        filter=lambda dy, x, filter_type, attributes: to_filter(
            x, dy, filter_type.sizes, attributes
        ),
    )
    rules.formulas(
        family.backprop_input,
        dy=lambda ddy, filter, attributes: convolved(ddy, filter, attributes),
        filter=lambda ddy, dy, filter_type, attributes: to_filter(
            ddy, dy, filter_type.sizes, attributes
        ),
    )
    rules.formulas(
        family.backprop_filter,
        x=lambda ddy, dy, x_type, attributes: to_input(dy, ddy, x_type.sizes, attributes),
        dy=lambda ddy, x, attributes: convolved(x, ddy, attributes),
    )


for _family in (convolution.FAMILY, depthwise.FAMILY, volumes.FAMILY):
    _register_family(_family)


# Batching of convolutions: the examples join the batch of images.
#
# Where the filter differs from example to example, their decompositions are batched.


def _of_input(spec: KernelSpec) -> Callable[..., Any]:
    """Return the rule of a gradient with respect to images."""

    def rule(
        dy: Tensor,
        filter: Tensor,
        *,
        attributes: dict[str, Any],
        batched: frozenset[str],
        size: int,
    ) -> Any:
        if "filter" in batched:
            return NotImplemented
        shape: Shape = attributes["input_shape"]
        joined = to_shape(dy, (size * dy.shape[1], *dy.shape[2:]))
        changed = {**attributes, "input_shape": (size * shape[0], *shape[1:])}
        return to_shape(dispatch(spec, joined, filter, **changed), (size, *shape))

    return rule


for _family in (convolution.FAMILY, depthwise.FAMILY, volumes.FAMILY):
    rules.batch(_family.backprop_input)(_of_input(_family.backprop_input))
