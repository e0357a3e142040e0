"""Making complex numbers and taking their parts.

Arithmetic and functions of complex numbers are in the modules of the real ones. The source is the
array API standard 2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "complex",
    "conj",
    "imag",
    "real",
]


def _infer_complex(real: TensorType, imag: TensorType) -> TensorType:
    dtype = dt.complex128 if real.dtype is dt.float64 else dt.complex64
    return TensorType(dtype, shapes.broadcast(real.shape, imag.shape))


def _infer_part(input: TensorType) -> TensorType:
    return TensorType(dt.real_part(input.dtype), input.shape)


def _infer_modulus(x: TensorType) -> TensorType:
    return _infer_part(x)


def _infer_conjugate(x: TensorType) -> TensorType:
    return x


COMPLEX = KernelSpec(
    "Complex",
    ("real", "imag"),
    _infer_complex,
    accepts=dt.REAL,
    promote=("real", "imag"),
    inexact=True,
    linear=(("real", "imag"),),
    elementwise=True,
)
REAL = KernelSpec(
    "Real",
    ("input",),
    _infer_part,
    accepts=dt.NUMERIC,
    promote=("input",),
    linear=("input",),
    elementwise=True,
)
IMAG = KernelSpec(
    "Imag",
    ("input",),
    _infer_part,
    accepts=dt.NUMERIC,
    promote=("input",),
    linear=("input",),
    elementwise=True,
)
COMPLEX_ABS = KernelSpec(
    "ComplexAbs", ("x",), _infer_modulus, accepts=dt.COMPLEX, promote=("x",), elementwise=True
)
CONJ = KernelSpec(
    "Conj",
    ("x",),
    _infer_conjugate,
    accepts=dt.NUMERIC,
    promote=("x",),
    linear=("x",),
    elementwise=True,
)


def complex(real: ArrayLike, imag: ArrayLike, /) -> Tensor:
    """Return ``real + imag * 1j`` elementwise, with broadcasting. Each part is exact.

    float64 gives complex128, other floats complex64. Integers and booleans become floats, float32
    by default.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers or strings.

    Source: TensorFlow's Complex.

    Examples:
        >>> tp.complex([1.0, 2.0], [0.0, -3.0])
        Tensor([1.+0.j, 2.-3.j], dtype=complex64, device='cpu')
        >>> tp.complex(0.0, [1.0, 2.0])
        Tensor([0.+1.j, 0.+2.j], dtype=complex64, device='cpu')

    """
    return dispatch_binary(COMPLEX, real, imag)


@chained
def conj(x: ArrayLike, /) -> Tensor:
    """Return the complex conjugate elementwise; real numbers stay as they are.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.conj([1 + 2j, 3 - 1j])
        Tensor([1.-2.j, 3.+1.j], dtype=complex64, device='cpu')
        >>> tp.conj([1.5, 2.5])
        Tensor([1.5, 2.5], dtype=float32, device='cpu')

    """
    return dispatch_unary(CONJ, x)


def imag(x: ArrayLike, /) -> Tensor:
    """Return the imaginary part elementwise, in the dtype of the parts; 0 for real numbers.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.imag([1 + 2j, 3 - 1j])
        Tensor([ 2., -1.], dtype=float32, device='cpu')
        >>> tp.imag([1.5, 2.5])
        Tensor([0., 0.], dtype=float32, device='cpu')

    """
    return dispatch_unary(IMAG, x)


def real(x: ArrayLike, /) -> Tensor:
    """Return the real part elementwise, in the dtype of the parts; real numbers stay.

    ``x``: numbers of any shape.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.real([1 + 2j, 3 - 1j])
        Tensor([1., 3.], dtype=float32, device='cpu')

    """
    return dispatch_unary(REAL, x)
