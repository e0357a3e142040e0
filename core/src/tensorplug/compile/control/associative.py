"""Scans by an associative function, in a number of steps that grows like the logarithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.compile.control.trees import Given
from tensorplug.contract import shapes
from tensorplug.contract.arguments import flag
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.arrangement import flip
from tensorplug.ops.joining import concat, stack
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

    Combine = Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]]


T = TypeVar("T")


def associative_scan(
    f: Callable[[T, T], T],
    xs: T,
    reverse: bool = False,  # noqa: FBT001, FBT002  # as JAX's
    axis: int = 0,
) -> T:
    """Return ``x0, f(x0, x1), f(f(x0, x1), x2), ...`` of slices of ``xs``, in parallel.

    ``f`` must be associative, so that neighbours can be combined first: n slices take 2 log2(n)
    calls of ``f``, each for many slices at once, with about 2 n combinations in all. (``scan``
    takes n calls, one after the other.)

    Args:
        f: takes two trees like ``xs``, of several slices each, and returns the combinations of
            the first slices, of the second ones, and so on: a function of elements, or one that
            leaves ``axis`` alone.
        xs: a tree of tensors of one length along ``axis``.
        reverse: whether to begin at the last slice: ``f(x[n-1], x[n-2])`` and so on.
        axis: the axis of the slices; negative ones count from the end of each tensor.

    Returns:
        A tree like ``xs``.

    Raises:
        ArgumentError: ``f`` is not a function, or returns another structure, shape or dtype.
        ShapeError: tensors of ``xs`` have no such axis, or several lengths; or ``xs`` has none.

    Source: "Prefix sums and their applications" (Blelloch, 1990).

    Examples:
        >>> tp.associative_scan(tp.maximum, tp.asarray([1, 3, 2, 5, 4])).tolist()
        [1, 3, 3, 5, 5]

    """
    if not callable(f):
        raise ArgumentError(f"associative_scan: f must be a function, got {type(f).__name__}")
    flag(reverse, "associative_scan: reverse")
    elements = Given(xs, "associative_scan: xs")
    axes = _read_axes(elements, axis)
    tensors = elements.tensors
    if reverse:
        tensors = [flip(x, axis=at) for x, at in zip(tensors, axes, strict=True)]

    def combine(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        first = Given(elements.build(list(a)), "associative_scan: a")
        scanned = f(first.tree, elements.build(list(b)))
        return first.read(scanned, "associative_scan: the result of f")

    scanned = _scan(combine, tensors, axes)
    if reverse:
        scanned = [flip(x, axis=at) for x, at in zip(scanned, axes, strict=True)]
    tree: T = elements.build(scanned)
    return tree


def _read_axes(elements: Given, axis: Any) -> list[int]:
    """Return the axis of each tensor, counted from the front."""
    number = shapes.index(axis, "associative_scan: axis")
    axes = []
    length: int | None = None
    for type_, path in zip(elements.types, elements.places, strict=True):
        if not -type_.rank <= number < type_.rank:
            raise ShapeError(f"associative_scan: xs{path} is {type_}, which has no axis {number}")
        axes.append(number % type_.rank)
        size = type_.shape[axes[-1]]
        if length not in (None, size):
            raise ShapeError(
                f"associative_scan: xs{path} is {type_}, of {size} slices along axis {number}, "
                f"but the tensors before have {length}"
            )
        length = size
    if length is None:
        raise ShapeError("associative_scan: xs has no tensor")
    return axes


def _scan(combine: Combine, xs: list[Tensor], axes: Sequence[int]) -> list[Tensor]:
    """Return the scan of ``xs``.

    Pairs of neighbours are scanned: these are the results at odd places. One more combination
    with the slice after it gives the result at each even place.
    """
    length = xs[0].shape[axes[0]]
    if length < 2:
        return xs

    def part(tensors: Sequence[Tensor], start: int, stop: int, step: int = 1) -> list[Tensor]:
        return [
            x[(*[slice(None)] * at, slice(start, stop, step))]
            for x, at in zip(tensors, axes, strict=True)
        ]

    pairs = combine(part(xs, 0, length - 1, 2), part(xs, 1, length, 2))
    odd = _scan(combine, pairs, axes)
    even = part(xs, 0, 1)
    if length > 2:
        rest = combine(part(odd, 0, (length - 1) // 2), part(xs, 2, length, 2))
        even = [concat([a, b], axis=at) for a, b, at in zip(even, rest, axes, strict=True)]
    return [_interleave(a, b, at) for a, b, at in zip(even, odd, axes, strict=True)]


def _interleave(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """Return the slices of both in turn; ``even`` may have one more."""
    count = odd.shape[axis]
    key = (slice(None),) * axis
    both = stack([even[(*key, slice(0, count))], odd], axis=axis + 1)
    mixed = reshape(both, (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :]))
    if even.shape[axis] == count:
        return mixed
    return concat([mixed, even[(*key, slice(count, count + 1))]], axis=axis)
