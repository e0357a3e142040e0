"""Batching of convolutions: the examples join the batch of images.

Where the filter differs from example to example, their decompositions are batched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import to_shape
from tensorplug.ops.nn.convolution import convolution, depthwise, morphology, volumes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()


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
    batching.folded(_family.forward, "x")
    batching.of(_family.backprop_input)(_of_input(_family.backprop_input))

batching.folded(morphology.DILATION2D, "x")
batching.folded(morphology.DILATION2D_BACKPROP_INPUT, "x", "dy")
