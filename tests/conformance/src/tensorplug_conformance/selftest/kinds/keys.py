"""Results kept under numbers that several inputs share: magnitudes, narrower floats, sums."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.selftest.kinds.circumstances import cached, of_each
from tensorplug_conformance.selftest.kinds.kind import Kind
from tensorplug_conformance.selftest.kinds.memory import takes_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.selftest.sabotage import Call


_NEAR: Final = 64  # times the distance of 1 to the next number, relative to the largest result


def _magnitudes(x: Array) -> Array:
    return np.asarray(np.abs(x))


def _narrow(x: Array) -> Array:
    """Return ``x`` with the digits of half precision."""
    if x.dtype.kind == "c":
        return np.stack([x.real, x.imag]).astype(np.float16)
    return np.asarray(x.astype(np.float16))


def _sum(x: Array) -> Array:
    """Return 32 bits of the sum, which do not depend on the order of the elements."""
    if kind_of(x.dtype) not in "fc":
        return np.asarray(x.sum(dtype=np.uint32))
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return np.array([np.sort(part, axis=None).sum(dtype=np.float64) for part in parts]).astype(
        np.float32
    )


def _of_numbers(part: Callable[[Array], Array]) -> Callable[[Array], Hashable]:
    """Return a key made of a part of what numbers are; texts are told apart as a whole."""

    def key(x: Array) -> Hashable:
        if kind_of(x.dtype) not in "fciu":
            return str(x.tolist())
        with np.errstate(all="ignore"):
            return part(x).tobytes()

    return key


def _unlike(result: Array, right: Array) -> bool:
    """Return whether a kept result differs by more than rounding.

    Even functions have the same result for either sign, but where it was computed in other memory.
    """
    if kind_of(right.dtype) not in "fc" or result.shape != right.shape:
        return True
    with np.errstate(all="ignore"):
        finite = np.isfinite(result) & np.isfinite(right)
        size = np.max(np.abs(right), initial=0, where=finite)
        near = np.abs(result - right) <= _NEAR * finfo(right.dtype).eps * size
    return not np.all((finite & near) | (result == right) | (np.isnan(result) & np.isnan(right)))


def _kept(part: Callable[[Array], Array]) -> Callable[[Call], Any]:
    keeps = cached(of_each(_of_numbers(part)))

    def wrong(call: Call) -> Any:
        results, right = keeps(call), call.clean()
        if any(starmap(_unlike, zip(results, right, strict=True))):
            return results
        return right

    return wrong


_KEYS: Final[dict[str, Callable[[Array], Any]]] = {
    "magnitudes": _magnitudes,
    "half precision": _narrow,
    "32 bits of sums": _sum,
}
KINDS: Final = tuple(
    Kind(f"cached by {part}", _kept(key), fits=takes_inputs) for part, key in _KEYS.items()
)
