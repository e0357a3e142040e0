"""The kernel specs of special functions, named as in TensorFlow where it has them.

All are elementwise, and integers become the default float. Their formulas are long: within
``autocast`` they run in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import KernelSpec, inference
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Attribute, TensorType


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
