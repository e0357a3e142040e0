"""Resizing along one axis after the other, the cheaper order first.

A new row is one long run of memory, a new pixel only its channels: so columns are resized while
there are few rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import Taps, bilinear_taps, nearest_pixels
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families.resizing import blender
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

    Step = Callable[[Array], Array]

kernels = Kernels()

_MANY_TERMS = 16  # of one sum, beyond which they are added by a reduction, in float64


@kernels.prepare(specs.RESIZE_BILINEAR, because="faster")
def resize_bilinear(
    images: TensorType, *, size: tuple[int, int], attributes: dict[str, Any], out: TensorType
) -> Call:
    """Take the two neighbours along an axis and blend them."""
    work, growing = working(out.dtype), images.shape[1] <= size[0]
    taps = [bilinear_taps(images.shape[at], out.shape[at], **_grid(attributes)) for at in (1, 2)]
    channels = images.shape[3]
    width = size[1] if growing else images.shape[2]  # when the height is changed
    steps = [
        _blend(tap, axis, after, work, out.size)
        for axis, after, tap in ((1, width * channels, taps[0]), (2, channels, taps[1]))
        if tap is not None
    ]
    return _sequence(steps, growing, out, work)


def _blend(taps: Taps, axis: int, after: int, work: np.dtype[Any], size: int) -> Step:
    """Return the step along one axis.

    ``after``: the elements behind a position of it. ``size``: those of the result of all steps.
    """
    lower, upper = taps.lower.astype(np.intp), taps.upper.astype(np.intp)
    fraction = _along(taps.fraction.astype(work), axis)
    native = blender(taps, axis, after, work, size)
    if native is not None:
        return native

    def run(x: Array) -> Array:
        below = x.take(lower, axis=axis)
        blended = x.take(upper, axis=axis)
        blended -= below
        blended *= fraction
        blended += below
        return blended

    return run


@kernels.prepare(specs.RESIZE_NEAREST_NEIGHBOR, because="faster")
def resize_nearest_neighbor(
    images: TensorType, *, size: tuple[int, int], attributes: dict[str, Any], out: TensorType
) -> Call:
    """Take rows and columns."""
    steps = [
        _pick(nearest_pixels(images.shape[at], out.shape[at], **_grid(attributes)), at)
        for at in (1, 2)
    ]
    return _sequence(steps, images.shape[1] <= size[0], out, out.dtype.numpy)


def _pick(shown: Any, axis: int) -> Step:
    at = shown.astype(np.intp)
    return lambda x: x.take(at, axis=axis)


@kernels.prepare(specs.RESIZE_BILINEAR_GRAD, because="faster")
def resize_bilinear_grad(
    images: TensorType, dy: TensorType, *, attributes: dict[str, Any], out: TensorType
) -> Call:
    """Add to each neighbour its share of dy."""
    work = working(out.dtype)
    steps = []
    for axis in (1, 2):
        old, new = images.shape[axis], dy.shape[axis]
        taps = bilinear_taps(old, new, **_grid(attributes))
        if taps is not None:
            target, source, share = taps.shares()
            steps.append(_collect(target, source, share.astype(work), old, axis))
    run = _sequence(steps, images.shape[1] <= dy.shape[1], out, work, backwards=True)
    return lambda _images, dy: run(dy)


@kernels.prepare(specs.RESIZE_NEAREST_NEIGHBOR_GRAD, because="faster")
def resize_nearest_neighbor_grad(
    images: TensorType, dy: TensorType, *, attributes: dict[str, Any], out: TensorType
) -> Call:
    """Add dy to the source pixel."""
    work = working(out.dtype)
    steps = []
    for axis in (1, 2):
        old, new = images.shape[axis], dy.shape[axis]
        shown = nearest_pixels(old, new, **_grid(attributes))
        steps.append(_collect(shown, np.arange(new), None, old, axis))
    run = _sequence(steps, images.shape[1] <= dy.shape[1], out, work, backwards=True)
    return lambda _images, dy: run(dy)


def _collect(target: Any, source: Any, share: Array | None, size: int, axis: int) -> Step:
    """Return what adds ``share[i]`` of slice ``source[i]`` along ``axis`` to slice ``target[i]``.

    The first terms of all sums are taken together, then the second ones, and so on; sums of
    very many terms are runs for ``reduceat``.
    """
    order = np.argsort(target, kind="stable")
    target, source = target[order].astype(np.intp), source[order].astype(np.intp)
    share = None if share is None else _along(share[order], axis)
    starts = np.flatnonzero(np.diff(target, prepend=-1))
    lengths = np.diff(starts, append=len(order))
    most = int(lengths.max(initial=0))
    if most > _MANY_TERMS:
        return _in_runs(target[starts], source, share, starts, size, axis)
    turns = []
    for turn in range(most):
        at = starts[lengths > turn] + turn
        part = None if share is None else share.take(at, axis=axis)
        turns.append(((*_before(axis), _consecutive(target[at])), source[at], part))

    def run(dy: Array) -> Array:
        total = _zeros(dy, size, axis)
        for key, taken, part in turns:
            term = dy.take(taken, axis=axis)
            if part is not None:
                term *= part
            total[key] += term
        return total

    return run


def _in_runs(
    target: Any, source: Any, share: Array | None, starts: Any, size: int, axis: int
) -> Step:
    key = (*_before(axis), _consecutive(target))

    def run(dy: Array) -> Array:
        total = _zeros(dy, size, axis)
        terms = dy.take(source, axis=axis)
        if share is not None:
            terms *= share
        total[key] = np.add.reduceat(terms, starts, axis=axis, dtype=np.float64)
        return total

    return run


def _consecutive(at: Any) -> Any:
    """Return indices as a slice where they follow one another: no copy is made then."""
    last = int(at[-1])
    return slice(int(at[0]), last + 1) if last - int(at[0]) == len(at) - 1 else at


def _before(axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis


def _along(weights: Any, axis: int) -> Array:
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    return np.asarray(weights).reshape(shape)


def _zeros(like: Array, size: int, axis: int) -> Array:
    return np.zeros((*like.shape[:axis], size, *like.shape[axis + 1 :]), like.dtype)


def _grid(attributes: dict[str, Any]) -> dict[str, bool]:
    return {name: attributes[name] for name in ("align_corners", "half_pixel_centers")}


def _sequence(
    steps: list[Step],
    growing: bool,  # noqa: FBT001
    out: TensorType,
    work: np.dtype[Any],
    *,
    backwards: bool = False,
) -> Call:
    """Return the steps (height, width) one after the other; ``growing``: in height."""
    order = steps[::-1] if growing is not backwards else steps
    narrow, shape = out.dtype.numpy, out.shape
    if not out.size:
        return lambda _x: np.zeros(shape, narrow)

    def run(x: Array) -> Array:
        result = x.astype(work, copy=False)
        for step in order:
            result = step(result)
        return result.astype(narrow, copy=False)

    return without_warnings(run)
