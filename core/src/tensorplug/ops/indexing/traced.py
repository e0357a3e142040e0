"""Subscripts without data yet, as those of a compiled function: windows whose place is traced.

``x[:, i : i + n]`` has a fixed size: its bounds differ by a constant, which the trace finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt
from tensorplug.errors import DataNeededError
from tensorplug.ops import movement
from tensorplug.ops.indexing import dynamic, subscripts

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor


_FULL: Final = slice(None)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a tensor that the integers, slices and traced entries of a key select.

    ``starts``: numbers and tensors of rank 0, by axis, as for ``dynamic_slice``. ``shape``: that
    of the window without the axes of integers, and with new axes. ``rest``: the key that selects
    from that what the window does not: with index arrays and steps; None if there is none.
    """

    starts: tuple[Any, ...]
    sizes: Shape
    shape: Shape
    rest: tuple[Any, ...] | None

    def read(self, x: Tensor) -> Tensor:
        """Return the window; the rest of the key still applies to it."""
        block = dynamic.dynamic_slice(x, self.starts, self.sizes)
        return block if self.shape == self.sizes else movement.reshape(block, self.shape)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        """Return ``x`` with ``value``, of the shape of the window, in its place."""
        return dynamic.dynamic_update_slice(x, movement.reshape(value, self.sizes), self.starts)


def find_window(x: TensorType, key: Any, *, writes: bool = False) -> Window | None:
    """Return the window of a key that has traced bounds; None if it has none.

    ``writes``: whether traced integers count too, as windows of one element. When they are read,
    and beside index arrays, they are indices of ``gather``, which may find them out of range.

    Raises:
        DataNeededError: the size of a slice depends on data.
        OutOfRangeError, SubscriptError, ArgumentError: as ``subscripts.parse``.

    """
    entries = key if key.__class__ is tuple else (key,)
    spans = [entry.__class__ is slice and _has_traced_bounds(entry) for entry in entries]
    if not any(spans) and not (writes and any(map(_is_traced, entries))):
        return None
    parts = [
        _read_span(x, entry) if is_span else subscripts.read_part(x, entry)
        for entry, is_span in zip(entries, spans, strict=True)
    ]
    parts, _ = subscripts.expand_ellipsis(x, parts)
    arrays = any(
        part.__class__ is subscripts.IndexArray and not _is_traced(part.index) for part in parts
    )
    if arrays and not any(spans):
        return None
    builder = _Builder(x, arrays=arrays)
    for part in parts:
        builder.add(part)
    return builder.window()


class _Span:
    """A slice of ``size`` elements from a traced place on."""

    def __init__(self, start: Tensor, size: int) -> None:
        self.start, self.size = start, size


def _is_traced(entry: Any) -> bool:
    """Return whether an entry or a bound is an integer that has no data yet."""
    return (
        hasattr(entry, "_placement")
        and not entry.shape
        and entry.dtype in dt.INTEGER
        and subscripts.is_unknown(entry)
    )


def _has_traced_bounds(entry: slice) -> bool:
    return _is_traced(entry.start) or _is_traced(entry.stop) or _is_traced(entry.step)


def _read_span(x: TensorType, entry: slice) -> _Span:
    """Return a slice whose bounds differ by a constant."""
    start, stop = entry.start, entry.stop
    if hasattr(start, "_placement") and hasattr(stop, "_placement") and entry.step in (None, 1):
        device = (start if _is_traced(start) else stop)._placement.device
        size = device.interpreter.distance(start, stop)
        if size is not None:
            return _Span(start, max(size, 0))
    raise DataNeededError(
        f"indexing {x}: the size of a slice depends on data, which a traced function does not "
        "have. A slice i:i + n has a fixed size, with a tensor i, a number n and no step; other "
        "windows of fixed sizes: dynamic_slice(x, starts, sizes) and dynamic_update_slice",
        "the size of a slice depends on data",
    )


class _Builder:
    """Collects the window of a key, part by part."""

    def __init__(self, x: TensorType, *, arrays: bool) -> None:
        self.x, self.arrays = x, arrays
        self.starts: list[Any] = []
        self.sizes: list[int] = []
        self.shape: list[int] = []
        self.rest: list[Any] = []

    def add(self, part: Any) -> None:
        """Add the next part."""
        if part is None:
            self.shape.append(1)
            self.rest.append(_FULL)
        elif isinstance(part, _Span):
            self._take(part.start, part.size)
        elif isinstance(part, slice):
            self._add_slice(part)
        elif isinstance(part, subscripts.IndexArray):
            self._add_index(part)
        elif part is not Ellipsis and self.arrays:  # an integer, which is one of the indices then
            self._leave(1, part)
        elif part is not Ellipsis:
            self.starts.append(subscripts.normalize_number(self.x, part, len(self.starts)))
            self.sizes.append(1)

    def _take(self, start: Any, size: int) -> None:
        self.starts.append(start)
        self.sizes.append(size)
        self.shape.append(size)
        self.rest.append(_FULL)

    def _leave(self, axes: int, part: Any) -> None:
        """Take whole axes, to which ``part`` still applies."""
        lengths = self.x.shape[len(self.starts) : len(self.starts) + axes]
        self.starts += [0] * axes
        self.sizes += lengths
        self.shape += lengths
        self.rest.append(part)

    def _add_slice(self, part: slice) -> None:
        start, stop, step = subscripts.read_bounds(self.x, part, len(self.starts))
        if step == 1:
            self._take(start, len(range(start, stop)))
        else:
            self._leave(1, part)

    def _add_index(self, part: subscripts.IndexArray) -> None:
        if self.arrays:
            self._leave(part.axes, part.index)
        else:  # a traced integer
            self.starts.append(part.index)
            self.sizes.append(1)

    def window(self) -> Window:
        """Return the window."""
        whole = all(isinstance(part, slice) and part == _FULL for part in self.rest)
        rest = None if whole else tuple(self.rest)
        return Window(tuple(self.starts), tuple(self.sizes), tuple(self.shape), rest)
