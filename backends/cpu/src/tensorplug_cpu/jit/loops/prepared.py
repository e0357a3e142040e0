"""What loops read in the place of constants, shared by programs of several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from tensorplug_cpu.jit.loops.addresses import address

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug_cpu.arrays import Array


class Prepared:
    """What was made of a constant: ``result``; the constant itself is kept."""

    __slots__ = ("__weakref__", "_constant", "result")

    def __init__(self, constant: Array, result: Any) -> None:
        self._constant, self.result = constant, result


_known: Final[WeakValueDictionary[Hashable, Prepared]] = WeakValueDictionary()


def prepare(constant: Array, form: Hashable, make: Callable[[Array], Any]) -> Prepared:
    """Return what ``make`` makes of a constant, one object for all programs that have it now.

    A function with a program for each length of a sequence has the same weights in all of them.
    ``form``: what else the result depends on. A program keeps the result as long as the constant,
    so no other array can be at the constant's address meanwhile.
    """
    key = address(constant), constant.shape, constant.strides, constant.dtype.str, form
    known = _known.get(key)
    if known is None:
        known = _known[key] = Prepared(constant, make(constant))
    return known
