"""Rejection sampling: candidates for all elements, round by round, until each has an accepted one.

The host waits for the device after every round. An element takes its first accepted candidate,
so the numbers do not depend on the other elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops import comparison, movement, reduction
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise import where
from tensorplug.ops.random.random import fold_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor


def first_accepted(
    rounds: Tensor,
    possible: Tensor,
    shape: Shape,
    otherwise: float,
    draw: Callable[[Tensor], tuple[Tensor, Tensor]],
    dtype: Any,
) -> Tensor:
    """Return the first accepted candidate of every element.

    Args:
        rounds: a key, from which every round makes its own.
        possible: booleans: where there is a distribution to draw from. It broadcasts to ``shape``.
        shape: of the result.
        otherwise: the result elsewhere.
        draw: takes a key and returns the candidates, and whether each is accepted.
        dtype: of the candidates.

    """
    result = where(possible, full(shape, 0.0, dtype=dtype), otherwise)
    open_ = movement.broadcast_to(possible, shape)
    number = 0
    while bool(reduction.any(open_)):
        candidates, accepted = draw(fold_in(rounds, number))
        taken = comparison.logical_and(open_, accepted)
        result = where(taken, candidates, result)
        open_ = comparison.logical_and(open_, comparison.logical_not(accepted))
        number += 1
    return result
