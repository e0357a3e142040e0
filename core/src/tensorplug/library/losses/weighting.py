"""What all losses share: pairs of arguments, weights and reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["compute_weighted_loss"]

Reduction: TypeAlias = Literal["none", "sum", "mean", "sum_by_nonzero_weights"]
"""How losses are reduced; see ``compute_weighted_loss``."""

DEFAULT: Final = "sum_by_nonzero_weights"
_REDUCTIONS: Final = get_args(Reduction)

# What messages call the arguments.
PREDICTED: Final = ("labels", "predictions")
SCORED: Final = ("labels", "logits")


def compute_weighted_loss(
    losses: ArrayLike, weights: ArrayLike | None = None, *, reduction: Reduction = DEFAULT
) -> Tensor:
    """Return losses weighted and reduced, as all losses of this module are.

    Args:
        losses: numbers or booleans of any shape.
        weights: multiply the losses, to which they broadcast. By default all are 1.
        reduction: "none" returns the weighted losses, "sum" their sum, "mean" their sum divided
            by the sum of the broadcast weights, "sum_by_nonzero_weights" their sum divided by the
            number of losses whose weight is not 0; NaN if there are none.

    Raises:
        ArgumentError: an unknown reduction.
        ShapeError: the weights do not broadcast to the losses.
        DTypeError: strings.

    Source: TensorFlow.js's losses.computeWeightedLoss.

    Examples:
        >>> losses, weights = [1.0, 2.0, 3.0], [0.5, 0.0, 2.0]
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="none")
        Tensor([0.5, 0. , 6. ], dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="sum")
        Tensor(6.5, dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights, reduction="mean")  # 6.5 / 2.5
        Tensor(2.6, dtype=float32, device='cpu')
        >>> tp.losses.compute_weighted_loss(losses, weights)  # 6.5 / 2
        Tensor(3.25, dtype=float32, device='cpu')

    """
    return reduce(read_numbers(losses, "compute_weighted_loss: losses"), weights, reduction)


def reduce(
    losses: Tensor, weights: Any, how: str, caller: str = "compute_weighted_loss"
) -> Tensor:
    arguments.choice(how, _REDUCTIONS, f"{caller}: reduction")
    if weights is None:
        if how == "none":
            return losses
        return tp.sum(losses) if how == "sum" else tp.mean(losses)
    weights = dt.as_number(weights)
    factors = read_numbers(weights, f"{caller}: weights")
    try:
        spread = tp.broadcast_to(factors, losses.shape)
    except ShapeError:
        raise ShapeError(
            f"{caller}: weights {factors.type} do not broadcast to the losses {losses.type}"
        ) from None
    weighted = losses * spread
    if how == "none":
        return weighted
    result = tp.sum(weighted)
    if how == "sum":
        return result
    counted = spread if how == "mean" else tp.not_equal(spread, 0)
    return result / tp.astype(tp.sum(counted), result.dtype)


def read_numbers(value: Any, what: str) -> Tensor:
    """Return a tensor of numbers or booleans."""
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.FIXED:
        raise DTypeError(f"{what} must hold numbers or booleans, got {tensor.type}")
    return tensor


def read_pair(
    first: Any, second: Any, caller: str, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Return two tensors of the same shape."""
    a = read_numbers(first, f"{caller}: {names[0]}")
    b = read_numbers(second, f"{caller}: {names[1]}")
    if a.shape != b.shape:
        raise ShapeError(
            f"{caller}: {names[0]} and {names[1]} must have the same shape, got {a.type} and "
            f"{b.type}"
        )
    return a, b
