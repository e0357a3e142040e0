"""Backends with a vendor's errors, and worse ones: each gets both verdicts on a row right."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.denominator import Row
from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.selftest.trials import Trial
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.case_entry import CaseEntry


@dataclass(frozen=True, slots=True)
class Vendor:
    """A kernel with errors of one kind, and whether its row must pass within a vendor's bounds.

    No such row passes strictly. ``flushes``: what the backend declares to flush.
    """

    name: str
    spec: KernelSpec
    dtype: str
    kernel: Callable[..., Any]
    passes: bool
    flushes: frozenset[DType] = frozenset()

    @property
    def row(self) -> Row:
        """The row that tells."""
        return Row(self.spec.name, self.dtype, "native")


def _below(x: Array, steps: int) -> Array:
    for _ in range(steps):
        x = np.where(np.isfinite(x), np.nextafter(x, x.dtype.type(0)), x)
    return x


def _root(steps: int) -> Callable[[Array], Array]:
    """Return a root that is rounded towards 0, then moved."""

    def root(x: Array) -> Array:
        result = np.sqrt(x)
        above = result.astype(np.longdouble) ** 2 > x
        return _below(np.where(above, _below(result, 1), result), steps)

    return root


def _erfc(ulps: int) -> Callable[[Array], Array]:
    def erfc(x: Array) -> Array:
        flat = [math.erfc(float(number)) for number in np.ravel(x)]
        right = np.reshape(np.array(flat), x.shape).astype(x.dtype)
        return _below(right, ulps)

    return erfc


def _flush(x: Array) -> Array:
    if kind_of(x.dtype) != "f":
        return x
    tiny = finfo(x.dtype).tiny
    return np.where(np.abs(x) < tiny, np.copysign(x.dtype.type(0), x), x)


def _flushing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def kernel(*inputs: Array, **attributes: Any) -> Any:
        result = np.asarray(function(*map(_flush, inputs), **attributes))
        return _flush(result)

    return kernel


def _product(a: Array, b: Array) -> Array:
    return a * b


def _maximum(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


def _sign(x: Array) -> Array:
    return np.sign(x)


def _equal(a: Array, b: Array) -> Array:
    return np.equal(_flush(a), _flush(b))


def _copy(x: Array) -> Array:
    return np.copy(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _silu_far_from_right(x: Array) -> Array:
    return np.where(x < -50, x.dtype.type(np.nan), _silu(x))


def _gelu(x: Array, *, approximate: bool) -> Array:
    """The right numbers, but NaN at minus infinity."""
    z = x.astype(np.float64)
    if approximate:
        below = 1 / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    else:
        flat = [math.erfc(-number * math.sqrt(0.5)) / 2 for number in np.ravel(z)]
        below = np.reshape(np.array(flat), z.shape)
    return np.asarray((z * below).astype(x.dtype))


def _layer_norm_grad(dy: Array, x: Array, *, axis: Any, epsilon: float) -> Array:
    """The right numbers, but NaN wherever an example of dy has an infinity."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    z, wide = x.astype(np.longdouble), dy.astype(np.longdouble)

    def mean(of: Array) -> Any:
        total = of.sum(axis=axes, keepdims=True)  # NumPy's mean of no elements warns
        return total / (of.size / np.longdouble(total.size))

    centred = z - mean(z)
    deviation = np.sqrt(mean(centred**2) + epsilon)
    scores = centred / deviation
    slope = (wide - mean(wide) - scores * mean(wide * scores)) / deviation
    lost = np.isinf(dy).any(axis=axes, keepdims=True)
    return np.asarray(np.where(lost, np.nan, slope).astype(x.dtype))


_SINGLE: Final = frozenset({dt.float32})
_DOUBLE: Final = frozenset({dt.float64})

VENDORS: Final[Sequence[Vendor]] = (
    Vendor("rounds float64 roots towards 0", specs.SQRT, "float64", _root(0), True),
    Vendor("has float64 roots two ulp off", specs.SQRT, "float64", _root(2), False),
    Vendor("has erfc 12 ulp off", specs.ERFC, "float32", _erfc(12), True),
    Vendor("has erfc 20 ulp off", specs.ERFC, "float32", _erfc(20), False),
    Vendor("flushes products", specs.MULTIPLY, "float32", _flushing(_product), True, _SINGLE),
    Vendor("flushes maxima", specs.MAXIMUM, "float32", _flushing(_maximum), True, _SINGLE),
    Vendor("flushes signs", specs.SIGN, "float32", _flushing(_sign), True, _SINGLE),
    Vendor("flushes comparisons", specs.EQUAL, "float32", _equal, True, _SINGLE),
    Vendor("flushes, and does not say so", specs.MULTIPLY, "float32", _flushing(_product), False),
    Vendor("flushes float64", specs.MAXIMUM, "float64", _flushing(_maximum), False, _DOUBLE),
    Vendor("flushes what it moves", specs.IDENTITY, "float32", _flushing(_copy), False, _SINGLE),
    Vendor("has the textbook's sigmoid", specs.SIGMOID, "float32", _sigmoid, True),
    Vendor("has the textbook's silu", specs.SILU, "float32", _silu, True),
    Vendor("loses silu far out", specs.SILU, "float32", _silu_far_from_right, False),
    Vendor("has the textbook's gelu", specs.GELU, "float32", _gelu, True),
    Vendor(
        "loses examples with an infinite dy",
        specs.LAYER_NORM_GRAD,
        "float32",
        _layer_norm_grad,
        True,
    ),
)


class _Declares(Delegate):
    """Declares what it flushes."""

    def __init__(self, clean: Any, flushes: frozenset[DType]) -> None:
        super().__init__(clean)
        self.flushes_subnormals = flushes


def _engine(backend: str, vendor: Vendor) -> Engine:
    @functools.wraps(vendor.kernel)
    def quietly(*inputs: Any, **attributes: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(vendor.kernel(*inputs, **attributes))

    wrong = WrongBackend(vendor.name, lambda clean: _Declares(clean, vendor.flushes), 2, "")
    engine = engine_with(wrong)
    engine.open(backend)
    entry = kernel_entry(vendor.spec, quietly)
    engine.registry.add(Owner("vendor"), kernels=[(backend, entry)], override=True)
    return engine


def rounds_roots() -> Engine:
    """Return an engine with the first error of the table, for another process."""
    return _engine("cpu", VENDORS[0])


def try_vendor(backend: str, known: Mapping[str, CaseEntry], vendor: Vendor) -> Trial:
    """Run the row of a vendor's kernel; it must fail strictly, and pass as the table says."""
    session = Session(lambda: _engine(backend, vendor), backend)
    try:
        verdict = run_row(session, known[vendor.spec.name], vendor.row, 0)
    finally:
        session.close()
    right = verdict.status == "fail" and (verdict.vendor == "pass native") is vendor.passes
    # What decides comes first: a row that a vendor's bounds fail has a failure outside of them.
    message = next((f.message for f in sorted(verdict.failures, key=lambda f: f.tolerated)), "")
    evidence = f"strictly: {verdict.status}, within a vendor's bounds: {verdict.vendor}; {message}"
    return Trial(f"backend that {vendor.name}", right, evidence)
