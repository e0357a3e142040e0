"""Complex numbers from primitives, with every part exact: signed zeros, infinities and NaN."""

from __future__ import annotations

import builtins
from math import inf, nan
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import complexes as onhost
from tensorplug.ops.elementwise import complexes as ops
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, isnan, logical_and
from tensorplug.ops.elementwise.powers import hypot
from tensorplug.ops.elementwise.rounding import signbit
from tensorplug.ops.elementwise.unary import abs as abs_

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

# Arithmetic cannot take the imaginary part from a number whose real part is infinite or NaN.
decompositions.on_host(ops.IMAG)(onhost.imag)


@decompositions.of(ops.REAL)
def real(input: Tensor, *, out: TensorType) -> Tensor:
    return astype(input, out.dtype)


@decompositions.of(ops.COMPLEX)
def complex(real: Tensor, imag: Tensor, *, out: TensorType) -> Tensor:
    # Each part has one term that is not -0.0; x + -0.0 is x, for zeros too.
    first = -astype(-real, out.dtype)
    size = astype(abs_(imag), out.dtype)
    second = where(imag < 0, -(size * 1j), size * _make_imaginary(1.0))
    zero = equal(imag, 0.0)
    for special, condition in (
        (inf, equal(imag, inf)),
        (-inf, equal(imag, -inf)),
        (nan, isnan(imag)),
        (0.0, zero),
        (-0.0, logical_and(zero, signbit(imag))),
    ):
        second = where(condition, _make_imaginary(special), second)
    return first + second


def _make_imaginary(number: float) -> builtins.complex:
    """The number -0.0 + i * ``number``."""
    return builtins.complex(-0.0, number)


decompositions.of(ops.COMPLEX_ABS)(lambda x: hypot(ops.real(x), ops.imag(x)))
decompositions.of(ops.CONJ)(
    lambda x: ops.complex(ops.real(x), -ops.imag(x)) if x.dtype in dt.COMPLEX else x
)
