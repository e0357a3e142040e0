"""Values in the step of a loop: where they begin, and how their elements follow one another."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorplug_cpu.jit.loops.addresses import address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Shape, TensorType
    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.stepping.driver import Place


class Value(NamedTuple):
    """An array; ``strides``: in bytes."""

    place: Place
    shape: Shape
    dtype: np.dtype[Any]
    strides: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def is_dense(self) -> bool:
        """Whether its elements follow one another in row-major order."""
        pairs = zip(self.shape, self.strides, _strides(self.shape, self.dtype), strict=True)
        return all(length == 1 or step == other for length, step, other in pairs)

    def elements(self) -> list[int]:
        """Return the strides in elements."""
        return [step // self.dtype.itemsize for step in self.strides]

    def turned(self) -> Value:
        """Return the value with its last two axes exchanged."""
        shape, steps = list(self.shape), list(self.strides)
        shape[-2:], steps[-2:] = shape[:-3:-1], steps[:-3:-1]
        return self._replace(shape=tuple(shape), strides=tuple(steps))

    def array(self) -> Array:
        """Return an array of this form, of any elements, to make views of."""
        distances = [
            (length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)
        ]
        memory = np.empty(sum(map(abs, distances)) + self.dtype.itemsize, np.uint8)
        before = -sum(distance for distance in distances if distance < 0)
        first = memory[before : before + self.dtype.itemsize].view(self.dtype)
        return as_strided(first, self.shape, self.strides)

    def of(self, array: Array) -> Array:
        """Return the value as a view of the dense ``array`` whose address its place refers to."""
        return np.ndarray(self.shape, self.dtype, array, self.place.offset, self.strides)

    def seen(self, array: Array, view: Array) -> Value | None:
        """Return what a view of ``array()`` is of this value; None if it is no view."""
        if not np.may_share_memory(array, view) or view.dtype != self.dtype:
            return None
        place = self.place.after(address(view) - address(array))
        return Value(place, view.shape, view.dtype, view.strides)

    def apart(self, before: Sequence[int]) -> int | None:
        """Return how many elements its matrices are apart, which broadcast to axes ``before``.

        None if they are not always as far apart.
        """
        lengths, steps = self.shape[:-2], self.elements()[:-2]
        if prod(lengths) == 1:
            return 0
        found = [(length, step) for length, step in zip(lengths, steps, strict=True) if length > 1]
        _, least = found[-1]
        expected = least
        for length, step in reversed(found):
            if step != expected:
                return None
            expected *= length
        return least if tuple(lengths) == tuple(before) else None


def dense(type_: TensorType, place: Place) -> Value:
    """Return a value of a type whose elements follow one another."""
    dtype = type_.dtype.numpy
    return Value(place, type_.shape, dtype, _strides(type_.shape, dtype))


def _strides(shape: Shape, dtype: np.dtype[Any]) -> tuple[int, ...]:
    return tuple(dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
