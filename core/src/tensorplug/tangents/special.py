"""Tangents of special functions."""

from __future__ import annotations

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.special import (
    bessel_functions,
    error_functions,
    gamma_functions,
    incomplete_functions,
)

tangents: TangentTable = TangentTable()
tangents.elementwise(
    *(gamma_functions.LGAMMA, gamma_functions.DIGAMMA, gamma_functions.POLYGAMMA),
    *(error_functions.ERFCX, error_functions.ERFINV, error_functions.NDTRI),
    *(bessel_functions.BESSEL_I0E, bessel_functions.BESSEL_I1E),
    *(bessel_functions.BESSEL_J0, bessel_functions.BESSEL_J1),
    *(incomplete_functions.IGAMMA, incomplete_functions.IGAMMAC, incomplete_functions.BETAINC),
)
