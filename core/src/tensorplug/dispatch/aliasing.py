"""Which live tensors NumPy would have share elements, so that writing to one is safe or refused.

Tensors are values, whatever memory they share. But programs written for NumPy know views: there
``y = x[1:]`` sees what is later written to x. An op whose result would be a view there says so
here (``view``), and an assignment asks whether a live tensor would see it (``check_write``).

Nothing here holds data or a tensor. Each tensor concerned has an ``Alias``, which says how it came
from another; where two of them lie in common memory is worked out when somebody writes, on
arrays over no memory at all (docs/adr/0015).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorplug.contract.dtypes import COMPLEX
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import AliasError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

    Array = np.ndarray[Any, Any]

__all__ = [
    "apart",
    "broadcast",
    "check_write",
    "diagonal",
    "flipped",
    "forget",
    "imaginary",
    "indexed",
    "outdated",
    "permuted",
    "real",
    "reshaped",
    "shows",
    "view",
    "views",
]

_number: Final = itertools.count().__next__
_lock: Final = Lock()

_FEW: Final = 32  # members up to which a family is not searched for dead ones
_DEEP: Final = 32  # views of views whose geometry is not worked out before somebody asks
_WORK: Final = 10_000  # how hard NumPy may try to tell interleaved views apart


class Region:
    """Where a tensor's elements would lie: an array over ``root``'s memory, which nobody reads."""

    __slots__ = ("array", "root")

    def __init__(self, root: object, array: Array) -> None:
        self.root = root
        self.array = array

    @classmethod
    def of(cls, shape: Shape, dtype: np.dtype[Any]) -> Region:
        """Return one of its own. Elements are bytes; complex ones have two parts."""
        strides = np.cumprod((dtype.itemsize, *shape[:0:-1]))[::-1] if shape else ()
        return cls(object(), as_strided(np.empty((), dtype), shape, tuple(strides)))

    def viewed(self, array: Array) -> Region:
        """Return the region of a view."""
        return Region(self.root, array)

    def meets(self, other: Region) -> bool:
        """Return whether they have an element in common, or NumPy cannot tell in time."""
        if self.root is not other.root:
            return False
        try:
            return np.shares_memory(self.array, other.array, max_work=_WORK)  # type: ignore[arg-type]  # any number will do
        except np.exceptions.TooHardError:
            return True

    def equals(self, other: Region) -> bool:
        """Return whether they have the same elements in the same places."""
        mine, others = (item.array.__array_interface__ for item in (self, other))
        return self.root is other.root and all(
            mine[name] == others[name] for name in ("data", "shape", "strides", "typestr")
        )


class Alias:
    """How a tensor came from another: ``step(region of parent, argument)`` is its region.

    ``family``: weak references to all tensors that came from one another, by number.
    """

    __slots__ = ("argument", "depth", "family", "parent", "region", "step")

    def __init__(
        self,
        family: dict[int, ref[Tensor]],
        parent: Alias | None,
        step: Callable[[Region, Any], Region] | None,
        argument: Any,
    ) -> None:
        self.family = family
        self.parent = parent
        self.step = step
        self.argument = argument
        self.region: Region | None = None
        self.depth = 0

    def located(self) -> Region:
        """Return the region, worked out once; then the way there is forgotten."""
        found = self.region
        if found is None:
            if self.parent is None or self.step is None:
                type_: TensorType = self.argument
                dtype = np.dtype(np.complex64 if type_.dtype in COMPLEX else np.int8)
                found = Region.of(type_.shape, dtype)
            else:
                found = self.step(self.parent.located(), self.argument)
            self.region = found
            self.parent = self.step = self.argument = None
        return found


def view(
    result: Tensor, source: Any, step: Callable[[Region, Any], Region], argument: Any = None
) -> Tensor:
    """Note that NumPy would make ``result`` a view of ``source``; return it.

    ``source``: what the caller gave, which may be no tensor. ``step`` is one of the functions
    below. ``argument`` is what it needs, and not changed later.
    """
    origin = getattr(source, "_alias", None)
    if origin is None:
        if not hasattr(source, "_placement"):
            return result  # data from outside; nobody else has this tensor
        origin = _begin(source)
    family = origin.family
    family[_number()] = ref(result)
    alias = Alias(family, origin, step, argument)
    depth = origin.depth + 1
    if depth > _DEEP:  # a tensor that is made a view of itself again and again
        with _lock:
            alias.located()
        depth = 0
    alias.depth = depth
    result._alias = alias
    count = len(family)
    if count > _FEW and not count & (count - 1):  # each time it has doubled
        _bury(family)
    return result


def views(
    results: Sequence[Tensor],
    source: Any,
    step: Callable[[Region, Any], Region],
    arguments: Iterable[Any],
) -> None:
    """Note the same as ``view`` for all parts of ``source``, each with its argument."""
    origin = getattr(source, "_alias", None)
    if origin is None:
        if not hasattr(source, "_placement"):
            return  # as above
        origin = _begin(source)
    if origin.depth == _DEEP:
        with _lock:
            origin.located()
        origin.depth = 0  # the way to it is forgotten
    family, depth = origin.family, origin.depth + 1
    for result, argument in zip(results, arguments, strict=True):
        family[_number()] = ref(result)
        alias = Alias(family, origin, step, argument)
        alias.depth = depth
        result._alias = alias
    count = len(family)
    if count > _FEW and count.bit_length() > (count - len(results)).bit_length():
        _bury(family)  # as above, each time it has doubled


def _begin(source: Tensor) -> Alias:
    """Return the alias of a tensor that is no view yet, and has none yet."""
    with _lock:  # two threads may make the first two views at once
        found: Alias | None = getattr(source, "_alias", None)
        if found is None:
            found = Alias({_number(): ref(source)}, None, None, source.type)
            source._alias = found
        return found


def _bury(family: dict[int, ref[Tensor]]) -> None:
    """Forget members that are gone. Numbers are not used again, so nobody is hit by mistake."""
    for number, member in list(family.items()):
        if member() is None:
            family.pop(number, None)


def _others(tensor: Tensor, alias: Alias) -> Iterator[Tensor]:
    """Yield the live members of the family beside ``tensor``."""
    for member in list(alias.family.values()):
        other = member()
        if other is not None and other is not tensor and not other.is_disposed:
            yield other


def check_write(tensor: Tensor, key: Any, what: str = "", value: Any = None) -> None:
    """Refuse to write to ``tensor[key]`` where NumPy would let another live tensor see it.

    ``key``: slices, integers and None: no more than is written. ``what`` begins the message;
    by default it is an assignment.
    ``value``, what is written, may itself be such a tensor: ``x[1:] = x[:-1]``. Unless it shows
    just what is written, it can be used no more afterwards; ``outdate`` is what is called then.

    Raises:
        AliasError: there is one.

    """
    alias: Alias | None = getattr(tensor, "_alias", None)
    if alias is None:
        return
    others = list(_others(tensor, alias))
    if not others:
        forget(tensor)
        return
    with _lock:
        written = indexed(alias.located(), key)
        for other in others:
            if other is value and not hasattr(other.__class__, "_reading"):  # no variable
                continue
            if other._alias.located().meets(written):
                what = what or f"assignment to {tensor.type}"
                raise AliasError(
                    f"{what}: another live tensor, {other.type}, shares elements with this one, "
                    f"{tensor.type}, as a view or the other way round. NumPy would change both; "
                    "here tensors are values. Write to the tensor from which the view was made "
                    "before making it, or to a copy: asarray(x, copy=True)"
                )


def shows(view: Tensor, tensor: Tensor, key: Any) -> bool:
    """Return whether ``view`` is a view of just ``tensor[key]``."""
    own: Alias | None = getattr(view, "_alias", None)
    alias: Alias | None = getattr(tensor, "_alias", None)
    if own is None or alias is None or own.family is not alias.family:
        return False
    with _lock:
        return own.located().equals(indexed(alias.located(), key))


def outdated(tensor: Tensor, key: Any, value: Any) -> bool:
    """Return whether writing ``value`` to ``tensor[key]`` would change ``value`` in NumPy."""
    alias = getattr(tensor, "_alias", None)
    own = getattr(value, "_alias", None)
    if alias is None or own is None or own.family is not alias.family or value is tensor:
        return False
    with _lock:
        written, read = indexed(alias.located(), key), own.located()
        return read.meets(written) and not read.equals(written)


def forget(tensor: Tensor) -> None:
    """Take ``tensor`` out of its family: from now on it has its elements for itself."""
    alias: Alias | None = getattr(tensor, "_alias", None)
    if alias is not None:
        del tensor._alias
        for number, member in list(alias.family.items()):
            if member() is tensor:
                alias.family.pop(number, None)


def apart(result: Tensor) -> Tensor:
    """Return ``result``, made with ops that give views, as what NumPy would copy."""
    forget(result)
    return result


# How a view lies in what it was made from -------------------------------------------------


def indexed(region: Region, key: Any) -> Region:
    """``x[key]`` for slices, integers, None and an ellipsis."""
    # The ellipsis keeps NumPy from reading an element where all axes have an integer.
    return region.viewed(region.array[key if Ellipsis in key else (*key, ...)])


def reshaped(region: Region, shape: Shape) -> Region:
    """``x.reshape(shape)``: a copy, with elements of its own, where strides allow no view."""
    try:
        return region.viewed(region.array.reshape(shape, copy=False))
    except ValueError:
        return Region.of(shape, region.array.dtype)


def permuted(region: Region, axes: tuple[int, ...] | None) -> Region:
    """``x.transpose(axes)``."""
    return region.viewed(region.array.transpose(axes))


def broadcast(region: Region, shape: Shape) -> Region:
    """``broadcast_to(x, shape)``."""
    return region.viewed(np.broadcast_to(region.array, shape))


def flipped(region: Region, axes: Any) -> Region:
    """``flip(x, axis=axes)``."""
    return region.viewed(np.flip(region.array, axes))


def diagonal(region: Region, offset: int) -> Region:
    """The diagonals of matrices."""
    return region.viewed(region.array.diagonal(offset, -2, -1))


def real(region: Region, _argument: None) -> Region:
    """``x.real``, which is x itself for real numbers."""
    return region.viewed(region.array.real)


def imaginary(region: Region, _argument: None) -> Region:
    """``x.imag``, which of real numbers is zeros of its own."""
    if region.array.dtype.kind != "c":
        return Region.of(region.array.shape, region.array.dtype)
    return region.viewed(region.array.imag)
