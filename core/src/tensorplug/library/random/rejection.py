"""Rejection sampling: candidates for all elements, round by round, until each has an accepted one.

The host waits for the device after every round. An element takes its first accepted candidate,
so the numbers do not depend on the other elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape, Tensor


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
    result = tp.where(possible, tp.full(shape, 0.0, dtype=dtype), otherwise)
    open_ = tp.broadcast_to(possible, shape)
    number = 0
    while bool(tp.any(open_)):
        candidates, accepted = draw(tp.random.fold_in(rounds, number))
        taken = tp.logical_and(open_, accepted)
        result = tp.where(taken, candidates, result)
        open_ = tp.logical_and(open_, tp.logical_not(accepted))
        number += 1
    return result
