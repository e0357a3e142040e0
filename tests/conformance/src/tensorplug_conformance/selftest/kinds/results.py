"""Results that are always wrong: values, rounding, special values, order, type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.selftest.kinds.kind import EXACT, FLOATS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


def each_result(change: Callable[[Array], Any]) -> Callable[[Call], Any]:
    """Return a saboteur that changes every output."""

    def wrong(call: Call) -> Any:
        with np.errstate(all="ignore"):
            return [change(output) for output in call.clean()]

    return wrong


def changed(x: Array, at: int = 0) -> Array:
    """Return a copy with one element changed."""
    out = x.copy()
    if not out.size:
        return out
    flat = out.reshape(-1)
    if out.dtype.kind == "T":
        flat[at] = f"{flat[at]}x"
    elif out.dtype.kind == "b":
        flat[at] = not flat[at]
    elif kind_of(out.dtype) in "fc":
        flat[at] = flat[at] + np.maximum(np.abs(flat[at]), 1) if np.isfinite(flat[at]) else 0
    else:
        flat[at] = flat[at] ^ 1
    return flat.reshape(x.shape)


def _last_left_out(x: Array) -> Array:
    out = x.copy()
    if out.size > 1:
        out.flat[-1] = out.flat[-2]
    return out


def _shifted(x: Array) -> Array:
    return np.roll(x.reshape(-1), 1).reshape(x.shape)


def _columns_first(x: Array) -> Array:
    return x.ravel(order="F").reshape(x.shape)


def _floating(x: Array) -> bool:
    return kind_of(x.dtype) in "fc"


def _nan_lost(x: Array) -> Array:
    return np.where(np.isnan(x), x.dtype.type(0), x) if _floating(x) else x


def _payload_lost(x: Array) -> Array:
    return np.where(x != x, x.dtype.type(np.nan), x)  # noqa: PLR0124  # NaN is unlike itself


def _clipped(x: Array) -> Array:
    if not _floating(x):
        return x
    return np.asarray(np.nan_to_num(x, nan=np.nan))


def _zeros_positive(x: Array) -> Array:
    return x + x.dtype.type(0) if _floating(x) else x


def _coarse(x: Array) -> Array:
    """Return the array rounded to a third of its digits."""
    return x * x.dtype.type(1 + 2.0 ** (-finfo(x.dtype).nmant // 3)) if _floating(x) else x


def _through_float32(x: Array) -> Array:
    narrow = {"f": np.float32, "c": np.complex64}.get(kind_of(x.dtype))
    return x.astype(narrow).astype(x.dtype) if narrow else x


def _too_far(call: Call) -> Any:
    """Move every result a little further than the table allows, away from zero."""
    ulps = 2 * call.allowed + 2
    results = call.clean()
    return [_moved(array, ulps) for array in results]


def _moved(x: Array, ulps: float) -> Array:
    if x.dtype.kind == "c":
        return np.asarray(_moved(x.real, 2 * ulps) + 1j * _moved(x.imag, 2 * ulps))
    if kind_of(x.dtype) != "f":
        return x
    with np.errstate(all="ignore"):
        unit = np.copysign(np.spacing(np.abs(x)), x)
        far = (x + x.dtype.type(np.ceil(ulps)) * unit).astype(x.dtype)
    return np.where((x == 0) | ~np.isfinite(far), x, far)


def _subnormals_flushed(x: Array) -> Array:
    if not _floating(x):
        return x
    return np.where(np.abs(x) < finfo(x.dtype).tiny, x * 0, x)


def _wider(call: Call) -> Any:
    other = {
        "float32": np.float64,
        "int32": np.int64,
        "bool": np.uint8,
        "complex64": np.complex128,
        "float64": np.float32,
        "int64": np.int32,
        "complex128": np.complex64,
    }
    results = call.clean()
    return [
        call.backend.from_host(array.astype(other.get(array.dtype.name, np.float32)))
        if array.dtype.kind != "T"
        else call.backend.from_host(np.zeros(array.shape, np.int32))
        for array in results
    ]


def _one_axis_more(call: Call) -> Any:
    return [call.backend.from_host(output.reshape(*output.shape, 1)) for output in call.clean()]


def _later_outputs(call: Call) -> Any:
    first, *rest = call.clean()
    return [first, *(changed(array) for array in rest)]


def _has_several(entry: CaseEntry) -> bool:
    return entry.spec.multiple_outputs


def _judges_zeros(entry: CaseEntry) -> bool:
    return entry.signed_zero


KINDS: Final = (
    Kind("one element wrong", each_result(changed)),
    Kind("last element left out", each_result(_last_left_out)),
    Kind("off by one element", each_result(_shifted)),
    Kind("rows and columns mixed", each_result(_columns_first), EXACT),
    Kind("NaN lost", each_result(_nan_lost), FLOATS, strict=True),
    Kind(
        "bits of NaN lost",
        each_result(_payload_lost),
        FLOATS,
        strict=True,
        fits=lambda entry: entry.moves,
        demanded=True,
    ),
    Kind("infinities clipped", each_result(_clipped), FLOATS, strict=True),
    Kind(
        "sign of zero lost",
        each_result(_zeros_positive),
        ("float32",),
        strict=True,
        fits=_judges_zeros,
    ),
    Kind("half the digits", each_result(_coarse), FLOATS, strict=True),
    Kind(
        "float64 in float32", each_result(_through_float32), ("float64", "complex128"), strict=True
    ),
    Kind("too many ulp", _too_far, FLOATS, strict=True),
    Kind("subnormals flushed", each_result(_subnormals_flushed), ("float32",), strict=True),
    Kind("wrong dtype", _wider, raw=True),
    Kind("wrong shape", _one_axis_more, raw=True),
    Kind("wrong second output", _later_outputs, fits=_has_several, raw=False),
)
