"""Discrete Fourier transforms: the kernels along the last axis, and the functions of one axis.

The exponent of the forward transform is negative. ``norm`` places the factor: ``"backward"``
(the default) puts 1/n on the inverse, ``"forward"`` on the forward transform, ``"ortho"`` puts
1/sqrt(n) on both. The source is the array API standard 2025.12.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import choice
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.complexes import conj
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import permute_dims

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Norm

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


def _check_length(input: TensorType) -> int:
    if not input.rank:
        raise ShapeError("input must have at least rank 1, got a scalar")
    return input.shape[-1]


def _infer_same(input: TensorType) -> TensorType:
    if not _check_length(input):
        raise ShapeError("the last axis must not be empty")
    return input


def _infer_rfft(input: TensorType, *, fft_length: int) -> TensorType:
    dtype = dt.complex128 if input.dtype is dt.float64 else dt.complex64
    return TensorType(dtype, (*input.shape[:-1], fft_length // 2 + 1))


def _infer_irfft(input: TensorType, *, fft_length: int) -> TensorType:
    return TensorType(dt.real_part(input.dtype), (*input.shape[:-1], fft_length))


def _define_fft_length(default: Callable[[int], int]) -> Attribute:
    """Return the attribute for the length of the real signal."""

    def canonical(value: Any, known: InputTypes) -> int:
        own = _check_length(known["input"])
        length = default(own) if value is None else shapes.index(value)
        if length < 1:
            raise ShapeError(f"must be at least 1, got {length} for a last axis of length {own}")
        return length

    return Attribute(canonical, None, "int >= 1; None becomes what the last axis of input implies")


FFT = KernelSpec("FFT", ("input",), _infer_same, accepts=dt.COMPLEX, linear=("input",), leading=())
IFFT = KernelSpec(
    "IFFT", ("input",), _infer_same, accepts=dt.COMPLEX, linear=("input",), leading=()
)
# tfjs composes the real transforms of FFT and copies; here they take half the time of FFT.
RFFT = KernelSpec(
    "RFFT",
    ("input",),
    _infer_rfft,
    attributes={"fft_length": _define_fft_length(lambda length: length)},
    accepts=dt.REAL,
    promote=("input",),
    inexact=True,
    linear=("input",),
    leading=(),
)
IRFFT = KernelSpec(
    "IRFFT",
    ("input",),
    _infer_irfft,
    attributes={"fft_length": _define_fft_length(lambda length: 2 * (length - 1))},
    accepts=dt.COMPLEX,
    linear=("input",),
    leading=(),
)

# Additional factors (forward, inverse); kernels have 1 for FFT and RFFT, 1/n for the inverses.
_NORM: dict[Norm, tuple[Callable[[int], float], Callable[[int], float]]] = {
    "backward": (lambda _n: 1.0, lambda _n: 1.0),
    "ortho": (lambda n: 1 / math.sqrt(n), math.sqrt),
    "forward": (lambda n: 1 / n, float),
}
_MIRRORED: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _read_complex(x: Any, caller: str) -> Tensor:
    """Return ``x`` as a complex tensor; real numbers get imaginary parts of 0."""
    tensor = as_tensor(x, what=f"{caller}: x")
    if tensor.dtype in dt.COMPLEX:
        return tensor
    if tensor.dtype not in dt.FIXED:
        raise DTypeError(f"{caller}: x must hold numbers, got {tensor.type}")
    return astype(tensor, dt.complex128 if tensor.dtype is dt.float64 else dt.complex64)


def _check_arguments(
    tensor: Tensor, n: Any, axis: Any, norm: Any, caller: str
) -> tuple[int | None, int]:
    """Return the requested length, or None, and the axis."""
    what = f"{caller} of {tensor.type}"
    choice(norm, _NORM, f"{what}: norm")
    at = shapes.normalize_axis(axis, tensor.ndim, f"{what}: axis")
    if n is None:
        return None, at
    length = shapes.index(n, f"{what}: n")
    if length < 1:
        raise ArgumentError(f"{what}: n must be at least 1, got {length}")
    return length, at


def _swap_last(x: Tensor, axis: int) -> Tensor:
    """Return ``x`` with ``axis`` and the last axis swapped; it is its own inverse."""
    if axis == x.ndim - 1:
        return x
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return permute_dims(x, order)


def resize_last(x: Tensor, length: int) -> Tensor:
    """Return ``x`` with its last axis cut or zero-padded to ``length``."""
    have = x.shape[-1]
    if have > length:
        return slice_(x, [0] * x.ndim, [*x.shape[:-1], length])
    if have < length:
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, length - have)])
    return x


def _scale(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else x * factor


@chained
def fft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the discrete Fourier transform along ``axis``.

    ``out[k] = sum over j of x[j] * exp(-2 pi i j k / n)``, times the factor of ``norm``.

    Args:
        x: complex; real numbers are converted (float64 to complex128, others to complex64).
        n: the length to which the axis is cut or zero-padded first.
        axis: the axis to transform.
        norm: ``"backward"``: no factor; ``"ortho"``: 1/sqrt(n); ``"forward"``: 1/n.

    Raises:
        ShapeError: the axis is out of range or empty.
        ArgumentError: ``n`` is below 1, or ``norm`` is unknown.

    Source: the array API standard 2025.12; TensorFlow's FFT.

    Examples:
        >>> tp.abs(tp.fft.fft([1.0, 0.0, -1.0, 0.0]))  # one wave: frequencies 1 and -1
        Tensor([0., 2., 0., 2.], dtype=float32, device='cpu')
        >>> tp.fft.fft([1 + 1j, 2.0, 0.0, 3j])
        Tensor([ 3.+4.j, -2.-1.j, -1.-2.j,  4.+3.j], dtype=complex64, device='cpu')
        >>> tp.abs(tp.fft.fft([1.0, 1.0, 1.0, 1.0], norm="ortho"))
        Tensor([2., 0., 0., 0.], dtype=float32, device='cpu')

    """
    tensor = _read_complex(x, "fft")
    length, at = _check_arguments(tensor, n, axis, norm, "fft")
    moved = _swap_last(tensor, at)
    sized = moved if length is None else resize_last(moved, length)
    return _swap_last(_scale(dispatch(FFT, sized), _NORM[norm][0](max(sized.shape[-1], 1))), at)


@chained
def ifft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse discrete Fourier transform along ``axis``.

    ``out[j] = 1/n * sum over k of x[k] * exp(2 pi i j k / n)``; with ``norm="ortho"`` the factor
    is 1/sqrt(n), with ``"forward"`` it is 1. Arguments and errors are those of ``fft``.

    Source: the array API standard 2025.12; TensorFlow's IFFT.

    Examples:
        >>> tp.real(tp.fft.ifft([4.0, -2j, 0.0, 2j]))
        Tensor([1., 2., 1., 0.], dtype=float32, device='cpu')
        >>> tp.fft.ifft(tp.ones(5), n=8).shape  # zeros are appended
        (8,)

    """
    tensor = _read_complex(x, "ifft")
    length, at = _check_arguments(tensor, n, axis, norm, "ifft")
    moved = _swap_last(tensor, at)
    sized = moved if length is None else resize_last(moved, length)
    return _swap_last(_scale(dispatch(IFFT, sized), _NORM[norm][1](max(sized.shape[-1], 1))), at)


@chained
def rfft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the Fourier transform of real numbers along ``axis``: its first n // 2 + 1 elements.

    The others are their conjugates. Arguments and errors are those of ``fft``, but ``x`` is real:
    integers and booleans become float32. float64 gives complex128, other floats complex64.

    ``x``: real numbers; ``n``: to which length to cut or pad it; ``norm``: ``"backward"`` (the
    default), ``"ortho"`` or ``"forward"``, as for ``fft``.

    Raises:
        DTypeError: complex numbers.

    Source: the array API standard.

    Examples:
        >>> tp.abs(tp.fft.rfft([1.0, 0.0, -1.0, 0.0]))  # one wave: frequency 1
        Tensor([0., 2., 0.], dtype=float32, device='cpu')
        >>> tp.fft.rfft(tp.ones((10, 256))).shape
        (10, 129)

    """
    tensor = as_tensor(x, what="rfft: x")
    if tensor.dtype is dt.bool_:
        tensor = astype(tensor, dt.default_float)
    length, at = _check_arguments(tensor, n, axis, norm, "rfft")
    points = tensor.shape[at] if length is None else length
    out = dispatch(RFFT, _swap_last(tensor, at), fft_length=points)
    return _swap_last(_scale(out, _NORM[norm][0](points)), at)


@chained
def irfft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the real numbers whose Fourier transform begins with ``x`` along ``axis``.

    Args:
        x: cut or zero-padded to n // 2 + 1 numbers. The imaginary part of the first (and of the
            last, if n is even) is ignored.
        n: length of the result; by default 2 * (m - 1) for m elements.
        axis: the axis to transform.
        norm: as for ``ifft``.

    Raises:
        ShapeError: the axis is out of range or too short.
        ArgumentError: ``n`` is below 1, or ``norm`` is unknown.

    Source: the array API standard.

    Examples:
        >>> tp.fft.irfft([4.0, -2j, 0.0])
        Tensor([1., 2., 1., 0.], dtype=float32, device='cpu')
        >>> tp.fft.irfft(tp.fft.rfft([1.0, 2.0, 3.0]), n=3).numpy().round(4)  # n is odd
        array([1., 2., 3.], dtype=float32)

    """
    tensor = _read_complex(x, "irfft")
    length, at = _check_arguments(tensor, n, axis, norm, "irfft")
    out = dispatch(IRFFT, _swap_last(tensor, at), fft_length=length)
    return _swap_last(_scale(out, _NORM[norm][1](out.shape[-1])), at)


def hfft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the (real) Fourier transform of a signal with Hermitian symmetry.

    ``x`` is the first half of the signal; ``n`` is the length of the result, by default
    2 * (m - 1) for m elements. Arguments and errors are those of ``irfft``, but the factors for
    ``norm`` are those of ``fft``.

    ``axis``: the axis to transform, the last by default; ``norm``: ``"backward"`` (the default),
    ``"ortho"`` or ``"forward"``, as for ``fft``.

    Source: the array API standard.

    Examples:
        >>> tp.fft.hfft([4.0, -2j, 0.0])
        Tensor([4., 0., 4., 8.], dtype=float32, device='cpu')
        >>> tp.fft.hfft([1.0, 2.0], n=3).numpy().round(4)  # of [1, 2, 2]
        array([ 5., -1., -1.], dtype=float32)

    """
    tensor = _read_complex(x, "hfft")
    _check_arguments(tensor, n, axis, norm, "hfft")
    return irfft(conj(tensor), n=n, axis=axis, norm=_MIRRORED[norm])


def ihfft(
    x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> Tensor:
    """Return the inverse Fourier transform of real numbers: its first n // 2 + 1 elements.

    The inverse of ``hfft``. Arguments and errors are those of ``rfft``, but the factors for
    ``norm`` are those of ``ifft``.

    ``x``: real numbers; ``n``: to which length to cut or pad it; ``axis``: the axis to transform,
    the last by default; ``norm``: ``"backward"`` (the default), ``"ortho"`` or ``"forward"``, as
    for ``fft``.

    Source: the array API standard.

    Examples:
        >>> tp.fft.ihfft([4.0, 0.0, 4.0, 8.0]).shape
        (3,)
        >>> tp.fft.hfft(tp.fft.ihfft([4.0, 0.0, 4.0, 8.0]))
        Tensor([4., 0., 4., 8.], dtype=float32, device='cpu')

    """
    tensor = as_tensor(x, what="ihfft: x")
    _check_arguments(tensor, n, axis, norm, "ihfft")
    return conj(rfft(tensor, n=n, axis=axis, norm=_MIRRORED[norm]))
