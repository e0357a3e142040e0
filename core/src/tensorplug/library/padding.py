"""Padding with a constant, or with elements of the tensor itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_tensor, chained, dispatch, shapes, specs
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import TensorLike

__all__ = ["pad"]

Array = np.ndarray[Any, Any]


def _reflect(positions: Array, size: int) -> Array:
    period = max(2 * (size - 1), 1)
    within = positions % period
    return np.asarray(np.minimum(within, period - within) if size > 1 else within)


def _mirror(positions: Array, size: int) -> Array:
    within = positions % (2 * size)
    return np.asarray(np.minimum(within, 2 * size - 1 - within))


# Map places outside an axis of some length to places on it.
_MODES: Final[dict[str, Callable[[Array, int], Array]]] = {
    "edge": lambda places, size: places.clip(0, size - 1),
    "reflect": _reflect,
    "symmetric": _mirror,
    "wrap": lambda places, size: places % size,
}


@chained
def pad(
    x: TensorLike,
    paddings: int | Sequence[int] | Sequence[Sequence[int]],
    constant_value: dt.Scalar | str | None = None,
    *,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
) -> Tensor:
    """Return ``x`` with elements added before and after each axis.

    Args:
        x: a tensor of any dtype.
        paddings: one (before, after) pair of non-negative ints per axis, or one pair or one int
            for all axes.
        constant_value: what to add in mode "constant": a number that fits the dtype of ``x``; 0
            by default, and "" for strings. (TensorFlow's PadV2.)
        mode: what to add. ``[1, 2, 3]`` padded by (4, 3) is, for

            - "constant": ``[0, 0, 0, 0, 1, 2, 3, 0, 0, 0]``
            - "edge", the outermost element: ``[1, 1, 1, 1, 1, 2, 3, 3, 3, 3]``
            - "reflect", the elements in reverse order, without the outermost one:
              ``[1, 2, 3, 2, 1, 2, 3, 2, 1, 2]``
            - "symmetric", the same with the outermost one: ``[3, 3, 2, 1, 1, 2, 3, 3, 2, 1]``
            - "wrap", the elements from the other end: ``[3, 1, 2, 3, 1, 2, 3, 1, 2, 3]``

    Raises:
        ShapeError: the pairs do not fit the rank, or an axis without elements is padded in a
            mode other than "constant".
        ArgumentError: the mode is unknown, or there is a value for a mode other than "constant".
        DTypeError: the value does not fit the dtype.

    Source: NumPy's pad.

    Examples:
        >>> tp.pad([1, 2, 3], (1, 2))
        Tensor([0, 1, 2, 3, 0, 0], dtype=int32, device='cpu')
        >>> tp.pad([[1, 2], [3, 4]], [(1, 0), (0, 1)], constant_value=9)
        Tensor([[9, 9, 9],
                [1, 2, 9],
                [3, 4, 9]], dtype=int32, device='cpu')
        >>> tp.pad([1, 2, 3], (2, 2), mode="reflect")
        Tensor([3, 2, 1, 2, 3, 2, 1], dtype=int32, device='cpu')

    """
    if arguments.is_text(mode, "constant"):
        if isinstance(constant_value, str):
            _check_text(constant_value, x)
        pairs = _read_pairs(paddings, x) if _is_short(paddings) else paddings
        return dispatch(specs.PAD_V2, x, paddings=pairs, constant_value=constant_value)
    arguments.choice(mode, ("constant", *_MODES), "pad: mode")
    if constant_value is not None:
        raise ArgumentError(
            f"pad: constant_value is for mode 'constant', "
            f"got {arguments.quoted(constant_value)} for {mode!r}"
        )
    tensor = as_tensor(x, what="pad: x")
    pairs = _read_pairs(paddings, tensor)
    for axis, (pair, size) in enumerate(zip(pairs, tensor.shape, strict=True)):
        if any(pair) and not size:
            raise ShapeError(
                f"pad: axis {axis} of {tensor.type} has no elements to pad it with in mode "
                f"{mode!r}"
            )
    if mode in ("reflect", "symmetric") and _fits(pairs, tensor.shape, mode):
        return dispatch(specs.MIRROR_PAD, tensor, paddings=pairs, mode=mode)
    result = tensor
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            size = tensor.shape[axis]
            positions = np.arange(-before, size + after)
            result = tp.gather(result, _MODES[mode](positions, size).astype(np.int32), axis=axis)
    return result


def _check_text(value: str, x: Any) -> None:
    """Refuse the name of a mode in the place of the value, where NumPy has the mode."""
    if value in ("constant", *_MODES) and as_tensor(x, what="pad: x").dtype is not dt.string:
        raise ArgumentError(f"pad: pass the mode by name, mode={value!r}")


def _is_short(paddings: Any) -> bool:
    """Return whether one int or one pair stands for all axes."""
    if not isinstance(paddings, list | tuple):
        return True
    return len(paddings) == 2 and not isinstance(paddings[0], list | tuple)


def _read_pairs(paddings: Any, x: Any) -> tuple[tuple[int, int], ...]:
    tensor = as_tensor(x, what="pad: x")
    pairs = paddings
    if _is_short(paddings):
        ends = shapes.as_ints(paddings, "pad: paddings")
        pairs = [ends * (2 // len(ends))] * tensor.ndim
    try:
        return shapes.pairs(pairs, tensor.ndim)
    except ArgumentError as error:
        raise type(error)(f"pad: paddings {error}") from None


def _fits(pairs: tuple[tuple[int, int], ...], shape: shapes.Shape, mode: str) -> bool:
    """Return whether each padding is at most one whole mirror image of its axis."""
    omitted = 1 if mode == "reflect" else 0
    return all(max(pair) <= size - omitted for pair, size in zip(pairs, shape, strict=True))
