"""The kernel specs of special functions, named as in TensorFlow where it has them.

All are elementwise, and integers become the default float. Their formulas are long: within
``autocast`` they run in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelSpec, TensorType, attributes, inference, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Attribute

_HIGHEST: Final = 163  # order whose polynomial in cot(pi x) has coefficients of float64


def _elementwise(
    name: str,
    *inputs: str,
    infer: Callable[..., TensorType] = inference.same,
    attributes: dict[str, Attribute] | None = None,
) -> KernelSpec:
    return KernelSpec(
        name,
        inputs,
        infer,
        attributes=attributes or {},
        accepts=dt.REAL,
        promote=inputs,
        inexact=True,
        elementwise=True,
        autocast="float32",
    )


BESSEL_I0E = _elementwise("BesselI0e", "x")
BESSEL_I1E = _elementwise("BesselI1e", "x")
BESSEL_J0 = _elementwise("BesselJ0", "x")
BESSEL_J1 = _elementwise("BesselJ1", "x")

ERFCX = _elementwise("Erfcx", "x")
ERFINV = _elementwise("Erfinv", "x")
NDTRI = _elementwise("Ndtri", "x")

LGAMMA = _elementwise("Lgamma", "x")
DIGAMMA = _elementwise("Digamma", "x")


def _infer_polygamma(x: TensorType, *, n: int) -> TensorType:  # noqa: ARG001 - an attribute
    return x


POLYGAMMA = _elementwise(
    "Polygamma",
    "x",
    infer=_infer_polygamma,
    attributes={"n": attributes.integer(at_least=1, at_most=_HIGHEST)},
)

IGAMMA = _elementwise("Igamma", "a", "x", infer=inference.broadcast)
IGAMMAC = _elementwise("Igammac", "a", "x", infer=inference.broadcast)


def _infer_betainc(a: TensorType, b: TensorType, x: TensorType) -> TensorType:
    """Infer the broadcast shape of the inputs."""
    return TensorType(a.dtype, shapes.broadcast(a.shape, b.shape, x.shape))


BETAINC = _elementwise("Betainc", "a", "b", "x", infer=_infer_betainc)
