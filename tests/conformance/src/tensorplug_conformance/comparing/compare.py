"""Judges one output: shape and dtype first, NaN and infinities exactly, then the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug_conformance.case import Bounded, Exactly
from tensorplug_conformance.floats import computing, finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case import Array, Reference


_COPIED = 4096  # bytes: copying fewer is quicker than comparing in place
_SLACK = 2.0**-10  # of an ulp: the error of the reference itself


@dataclass(frozen=True, slots=True)
class Judgement:
    """A comparison: ``fault`` is empty if nothing is wrong; ``ulp`` is the worst error."""

    fault: str = ""
    ulp: float = 0.0


def judge(
    actual: Array, type_: TensorType, reference: Reference, *, ulp: float, signed_zero: bool
) -> Judgement:
    """Compare ``actual`` with what the oracle says.

    Args:
        actual: what the backend returned.
        type_: dtype and shape that it must have.
        reference: exact values of the dtype, or wide ones, perhaps with absolute bounds.
        ulp: error allowed in units in the last place of the true value (0.5: correctly rounded).
        signed_zero: whether a zero must have the reference's sign.

    """
    value = reference.value if isinstance(reference, Bounded) else reference
    shape = type_.shape if type_.known else value.shape  # sizes that depend on the data
    if actual.shape != shape:
        return Judgement(f"shape is {list(actual.shape)}, must be {list(shape)}")
    if actual.dtype != type_.dtype.numpy:
        return Judgement(f"dtype is {actual.dtype}, must be {type_.dtype}")
    if value.shape != actual.shape:
        raise ValueError(
            f"the oracle returned shape {value.shape}, but the spec says {actual.shape}"
        )
    if isinstance(reference, Exactly):
        return _bitwise(actual, value)
    if actual.dtype == np.bool_ and bool((actual.view(np.uint8) > 1).any()):
        return Judgement("a boolean has another byte than 0 or 1")
    if same_bits(actual, value):
        return Judgement()  # at once, without wide arithmetic
    bound = reference.bound if isinstance(reference, Bounded) else None
    if kind_of(actual.dtype) not in "fc":
        return _exact(actual, value, bound)
    return _close(actual, value, bound, ulp, signed_zero)


def _bitwise(actual: Array, value: Array) -> Judgement:
    """Compare floats by their bits, those of a complex number together."""
    width = actual.dtype.itemsize
    got, meant = (
        np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8).reshape(-1, width)[:, ::-1]
        for x in (actual, value)
    )
    wrong = (got != meant).any(axis=1)
    if not wrong.any():
        return Judgement()
    at = int(np.argmax(wrong))
    place = tuple(int(number) for number in np.unravel_index(at, actual.shape))
    where = f"[{', '.join(map(str, place))}]" if actual.ndim else "the scalar"
    return Judgement(
        f"{int(wrong.sum())} of {actual.size} have other bits; first at {where}: got "
        f"0x{got[at].tobytes().hex()}, must be 0x{meant[at].tobytes().hex()}",
        float("inf"),
    )


def judge_periods(
    actual: Array, type_: TensorType, reference: Reference, *, ulp: float, signed_zero: bool
) -> Judgement:
    """Compare ``actual``, of rank 1, with a reference that repeats itself to the end of it.

    Elements with the bits of those one period before are as right as these; where all have, the
    arithmetic in wide numbers is done for one period alone. Of rank 2, each row is a period.
    Arguments as of ``judge``.
    """
    parts = [reference.value, reference.bound] if isinstance(reference, Bounded) else [reference]
    period = len(parts[0])
    if actual.shape == type_.shape and actual.ndim == 2:
        first, one = actual[0], TensorType(type_.dtype, (period,))
        judgement = judge(first, one, reference, ulp=ulp, signed_zero=signed_zero)
        number = np.dtype(f"u{actual.dtype.itemsize}")
        rows = np.ascontiguousarray(actual).view(number)
        if judgement.fault or bool((rows == rows[0]).all()):
            return judgement
    elif actual.shape == type_.shape:
        first, one = actual[:period], TensorType(type_.dtype, (period,))
        judgement = judge(first, one, reference, ulp=ulp, signed_zero=signed_zero)
        if judgement.fault or same_bits(np.resize(first, actual.shape), actual):
            return judgement
    repeated = [np.resize(part, type_.shape) for part in parts]
    whole = Bounded(*repeated) if isinstance(reference, Bounded) else repeated[0]
    return judge(actual, type_, whole, ulp=ulp, signed_zero=signed_zero)


def wrong_elements(
    actual: Array, reference: Reference, *, ulp: float, signed_zero: bool, least: float = 0.0
) -> Array:
    """Return which elements ``judge`` would not accept, of an array that has the right type.

    ``least``: an absolute error that is allowed in any case.
    """
    value = reference.value if isinstance(reference, Bounded) else reference
    bound = reference.bound if isinstance(reference, Bounded) else None
    if kind_of(actual.dtype) not in "fc":
        return _unequal(actual, value, bound)
    with np.errstate(all="ignore"):  # as in ``_close``
        differences = _differences(actual, value, bound, ulp, signed_zero, least)
        return np.asarray(np.any([difference.wrong for difference in differences], axis=0))


@dataclass(frozen=True, slots=True)
class _Difference:
    """Elements that are wrong in one respect: ``before`` and ``after`` surround the message."""

    wrong: Array
    ulp: float
    before: str = ""
    after: str = ""


def _exact(actual: Array, value: Array, bound: Array | None) -> Judgement:
    wrong = _unequal(actual, value, bound)
    return Judgement(_describe(wrong, actual, value) if wrong.any() else "")


def _unequal(actual: Array, value: Array, bound: Array | None) -> Array:
    wrong = np.atleast_1d(actual != value)
    if bound is not None:  # where the input's rounding may decide between neighbours
        wrong &= np.atleast_1d(np.abs(actual.astype(np.longdouble) - value) > bound)
    return wrong


def _close(
    actual: Array, value: Array, bound: Array | None, ulp: float, signed_zero: bool
) -> Judgement:
    worst = 0.0
    with np.errstate(all="ignore"):  # NaN and overflow are expected here
        for difference in _differences(actual, value, bound, ulp, signed_zero):
            worst = difference.ulp
            if difference.wrong.any():
                what = _describe(difference.wrong, actual, value)
                return Judgement(f"{difference.before}{what}{difference.after}", worst)
    return Judgement("", worst)


def _differences(
    actual: Array,
    value: Array,
    bound: Array | None,
    ulp: float,
    signed_zero: bool,
    least: float = 0.0,
) -> Iterator[_Difference]:
    """Yield what may be wrong, the worst first; each with the worst error in ulp so far."""
    rounded = value.astype(actual.dtype)
    for special in (_nan, _infinite):
        wrong = np.atleast_1d(special(actual) != special(rounded))
        yield _Difference(wrong, float("inf") if wrong.any() else 0.0)
    got, meant = (_without_infinities(x, rounded) for x in (actual, value))
    finite = np.isfinite(_without_infinities(rounded, rounded))
    error = np.where(finite, np.abs(_widened(got) - meant), 0)
    unit = ulp_of(np.where(finite, np.abs(meant), 0), actual.dtype)
    # Each part of a complex number is rounded: together they may be off by sqrt(2) as much.
    allowed = (ulp + _SLACK) * unit * (2**0.5 if actual.dtype.kind == "c" else 1)
    if bound is not None:
        narrow = computing(actual.dtype) != actual.dtype  # rounded after what the bound is of
        allowed = allowed + bound if narrow else np.maximum(allowed, bound)
    if least:
        allowed = np.maximum(allowed, least)
    # A bound that is not finite would allow anything.
    wrong = np.atleast_1d(finite & ~(error <= np.where(np.isfinite(allowed), allowed, 0)))
    worst = float(np.max(error / unit, initial=0))
    yield _Difference(wrong, worst, after=f"; {worst:.3g} ulp off")
    if signed_zero and kind_of(actual.dtype) == "f":
        zero = finite & (value == 0)
        wrong = np.atleast_1d(zero & (np.signbit(actual) != np.signbit(value)))
        yield _Difference(wrong, worst, "sign of zero: ")


def ulp_of(value: Array, dtype: np.dtype[Any]) -> Array:
    """Return the unit in the last place of ``dtype`` at magnitudes ``value``, wide."""
    about = finfo(dtype)
    _, exponent = np.frexp(value.real.astype(np.longdouble))
    least = int(about.minexp)
    clipped = np.where(value == 0, least, np.maximum(exponent - 1, least))
    return np.asarray(np.ldexp(np.longdouble(1), (clipped - about.nmant).astype(np.int32)))


def _widened(actual: Array) -> Array:
    return actual.astype(np.clongdouble if actual.dtype.kind == "c" else np.longdouble)


def _nan(x: Array) -> Array:
    return np.asarray(
        np.isnan(x.real) + 2 * np.isnan(x.imag) if x.dtype.kind == "c" else np.isnan(x)
    )


def _infinite(x: Array) -> Array:
    """Return 0 where finite, else the sign of the infinity; of complex numbers for each part."""
    if x.dtype.kind == "c":
        return np.asarray(_infinite(x.real) + 3 * _infinite(x.imag))
    return np.asarray(np.where(np.isinf(x), np.sign(x), 0))


def _without_infinities(x: Array, rounded: Array) -> Array:
    """Return complex numbers ``x`` with 0 for the parts in which ``rounded`` is not finite."""
    if x.dtype.kind != "c":
        return x
    result = np.array(x)  # a view of the parts of an array, which a scalar is not
    for part, right in ((result.real, rounded.real), (result.imag, rounded.imag)):
        part[~np.isfinite(right)] = 0
    return result


def _describe(wrong: Array, actual: Array, value: Array) -> str:
    count = int(np.count_nonzero(wrong))
    at = tuple(int(number) for number in np.argwhere(wrong)[0])
    got = np.atleast_1d(actual)[at]
    meant = np.atleast_1d(value)[at]
    place = f"[{', '.join(map(str, at))}]" if actual.ndim else "the scalar"
    return f"{count} of {actual.size} wrong; first at {place}: got {got!s}, must be {meant!s}"


def bits(array: Array) -> bytes:
    """Return an array's shape, dtype and bits, for comparison."""
    if array.dtype.kind == "T":
        return repr(array.tolist()).encode()
    return np.ascontiguousarray(array).tobytes()


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays have one shape, one dtype and the same bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "T":
        return bool(a.tolist() == b.tolist())
    if a.nbytes < _COPIED:
        return bits(a) == bits(b)
    x, y = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (a, b))
    return bool(np.array_equal(x, y))
