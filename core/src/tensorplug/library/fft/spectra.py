"""Fourier transforms over several axes, frequencies, and shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugin import arguments, as_tensor, host_values, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, Axis, DTypeLike, Norm, ShapeLike

__all__ = [
    "fftfreq",
    "fftn",
    "fftshift",
    "ifftn",
    "ifftshift",
    "irfftn",
    "rfftfreq",
    "rfftn",
]

Lengths = list[int | None]


def _plan(x: Any, s: Any, axes: Any, caller: str) -> tuple[Tensor, list[int], Lengths]:
    """Return the tensor, its axes to transform, and the requested length along each, or None."""
    tensor = as_tensor(x, what=f"{caller}: x")
    what = f"{caller} of {tensor.type}"
    sizes = None if s is None else shapes.as_ints(s, f"{what}: s")
    if axes is None:
        count = tensor.ndim if sizes is None else len(sizes)
        if count > tensor.ndim:
            raise ArgumentError(f"{what}: s has {count} lengths, but x has {tensor.ndim} axes")
        chosen = list(range(tensor.ndim - count, tensor.ndim))
    else:
        listed = shapes.as_ints(axes, f"{what}: axes")
        chosen = [shapes.normalize_axis(axis, tensor.ndim, f"{what}: axes") for axis in listed]
    lengths = (-1,) * len(chosen) if sizes is None else sizes
    if len(lengths) != len(chosen):
        raise ArgumentError(
            f"{what}: s has {len(lengths)} lengths, but axes has {len(chosen)} entries"
        )
    if not chosen:
        raise ArgumentError(f"{what} must have at least one axis to transform")
    return tensor, chosen, [None if length == -1 else length for length in lengths]


def _transform_each(
    along: Callable[..., Tensor], x: Tensor, axes: Sequence[int], s: Lengths, norm: Norm
) -> Tensor:
    for axis, length in reversed(list(zip(axes, s, strict=True))):
        x = along(x, n=length, axis=axis, norm=norm)
    return x


def transform(
    along: Callable[..., Tensor], x: Any, s: Any, axes: Any, norm: Norm, caller: str
) -> Tensor:
    """Return ``x`` transformed by ``fft`` or ``ifft`` along each of several axes."""
    tensor, chosen, lengths = _plan(x, s, axes, caller)
    return _transform_each(along, tensor, chosen, lengths, norm)


def transform_real(x: Any, s: Any, axes: Any, norm: Norm, caller: str) -> Tensor:
    """Return ``rfft`` along the last of several axes, then ``fft`` along the others."""
    tensor, (*others, last), (*sizes, length) = _plan(x, s, axes, caller)
    half = tp.fft.rfft(tensor, n=length, axis=last, norm=norm)
    return _transform_each(tp.fft.fft, half, others, sizes, norm)


def restore_real(x: Any, s: Any, axes: Any, norm: Norm, caller: str) -> Tensor:
    """Return ``ifft`` along several axes but the last, then ``irfft`` along that one."""
    tensor, (*others, last), (*sizes, length) = _plan(x, s, axes, caller)
    half = _transform_each(tp.fft.ifft, tensor, others, sizes, norm)
    return tp.fft.irfft(half, n=length, axis=last, norm=norm)


def fftn(
    x: ArrayLike,
    /,
    *,
    s: ShapeLike | None = None,
    axes: Axis | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along several axes.

    Args:
        x: complex; real numbers are converted.
        s: lengths to which the axes are cut or zero-padded first; -1 keeps an axis as it is.
        axes: the axes to transform; by default all, or the last ``len(s)``.
        norm: as for ``fft``, for the product of the lengths.

    Raises:
        ShapeError: an axis is out of range or empty.
        ArgumentError: the lengths do not fit the axes, or ``norm`` is unknown.

    Source: the array API standard.

    Examples:
        >>> tp.real(tp.fft.fftn([[1.0, 2.0], [3.0, 4.0]]))
        Tensor([[10., -2.],
                [-4.,  0.]], dtype=float32, device='cpu')
        >>> tp.fft.fftn(tp.ones((5, 8, 8)), axes=(1, 2)).shape
        (5, 8, 8)
        >>> tp.fft.fftn(tp.ones((5, 8, 8)), s=(16, 4)).shape  # the last two axes, padded and cut
        (5, 16, 4)

    """
    return transform(tp.fft.fft, x, s, axes, norm, "fftn")


def ifftn(
    x: ArrayLike,
    /,
    *,
    s: ShapeLike | None = None,
    axes: Axis | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of ``fftn``. Arguments and errors are the same.

    ``x``: real or complex numbers; ``s``: the lengths along the axes, as for ``fftn``; ``axes``:
    the axes to transform, all by default; ``norm``: ``"backward"`` (the default), ``"ortho"`` or
    ``"forward"``, as for ``fft``.

    Source: the array API standard.

    Examples:
        >>> tp.real(tp.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]))
        Tensor([[1., 2.],
                [3., 4.]], dtype=float32, device='cpu')

    """
    return transform(tp.fft.ifft, x, s, axes, norm, "ifftn")


def rfftn(
    x: ArrayLike,
    /,
    *,
    s: ShapeLike | None = None,
    axes: Axis | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform of real numbers along several axes.

    Along the last of the axes it is ``rfft``, which keeps n // 2 + 1 elements, and along the
    others ``fft``. Arguments and errors are those of ``fftn``, but ``x`` is real: complex numbers
    raise a ``DTypeError``.

    ``x``: real numbers; ``s``: the lengths along the axes, as for ``fftn``; ``norm``:
    ``"backward"`` (the default), ``"ortho"`` or ``"forward"``, as for ``fft``.

    Source: the array API standard.

    Examples:
        >>> tp.real(tp.fft.rfftn([[1.0, 2.0, 3.0, 2.0], [1.0, 0.0, 1.0, 2.0]]))
        Tensor([[12., -2.,  0.],
                [ 4., -2.,  0.]], dtype=float32, device='cpu')
        >>> tp.fft.rfftn(tp.ones((8, 8))).shape
        (8, 5)

    """
    return transform_real(x, s, axes, norm, "rfftn")


def irfftn(
    x: ArrayLike,
    /,
    *,
    s: ShapeLike | None = None,
    axes: Axis | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of ``rfftn``. Arguments and errors are the same.

    ``s`` has the lengths of the result; the last is 2 * (m - 1) by default.

    ``x``: what ``rfftn`` returns; ``axes``: the axes to transform, all by default; ``norm``:
    ``"backward"`` (the default), ``"ortho"`` or ``"forward"``, as for ``fft``.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[1.0, 2.0, 3.0, 2.0], [1.0, 0.0, 1.0, 2.0]])
        >>> tp.fft.irfftn(tp.fft.rfftn(x))
        Tensor([[1., 2., 3., 2.],
                [1., 0., 1., 2.]], dtype=float32, device='cpu')

    """
    return restore_real(x, s, axes, norm, "irfftn")


def _list_frequencies(
    n: Any, d: float, dtype: Any, device: Any, caller: str, *, half: bool
) -> Tensor:
    count = shapes.index(n, f"{caller}: n")
    if count < 1:
        raise ArgumentError(f"{caller}: n must be at least 1, got {count}")
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, caller)
    if result_dtype not in dt.FLOATING:
        raise DTypeError(f"{caller}: dtype must be floating, got {result_dtype}")
    distance = arguments.real(d, f"{caller}: d")
    last = count // 2 + 1 if half else count
    with (
        host_values.room_for((last,), caller),
        np.errstate(divide="ignore", invalid="ignore", over="ignore"),
    ):
        positions = np.arange(last)
        if not half:
            positions = np.where(positions < (count + 1) // 2, positions, positions - count)
        return tp.asarray(
            positions / np.float64(count * distance), dtype=result_dtype, device=device
        )


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return the frequencies of the elements of an ``fft`` of ``n`` points spaced by ``d``.

    They are ``[0, 1, ..., (n-1)//2, -(n//2), ..., -1] / (n * d)``, float32 by default.

    ``device``: the device of the result; the current one by default.

    Raises:
        ArgumentError: ``n`` is below 1.
        DTypeError: the dtype is not floating.

    Source: the array API standard.

    Examples:
        >>> tp.fft.fftfreq(5, d=0.2)
        Tensor([ 0.,  1.,  2., -2., -1.], dtype=float32, device='cpu')
        >>> tp.fft.fftfreq(4)
        Tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32, device='cpu')

    """
    return _list_frequencies(n, d, dtype, device, "fftfreq", half=False)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return the frequencies of the elements of an ``rfft`` of ``n`` points spaced by ``d``.

    They are ``[0, 1, ..., n//2] / (n * d)``, float32 by default. Errors are those of ``fftfreq``.

    ``dtype``: of the result; ``device``: the device of the result; the current one by default.

    Source: the array API standard.

    Examples:
        >>> tp.fft.rfftfreq(4, d=0.25)  # 4 points in one second: 0, 1 and 2 hertz
        Tensor([0., 1., 2.], dtype=float32, device='cpu')

    """
    return _list_frequencies(n, d, dtype, device, "rfftfreq", half=True)


def _shift(x: Any, axes: Any, caller: str, *, back: bool) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    chosen = shapes.normalize_axes(axes, tensor.ndim, f"{caller} of {tensor.type}: axes")
    halves = [tensor.shape[axis] // 2 for axis in chosen]
    return tp.roll(tensor, [-half if back else half for half in halves], axis=chosen)


def fftshift(x: ArrayLike, /, axes: Axis | None = None) -> Tensor:
    """Return ``x`` with frequency 0 in the middle of ``axes``; None stands for all.

    Raises:
        ShapeError: an axis is out of range.

    Source: the array API standard.

    Examples:
        >>> tp.fft.fftshift(tp.fft.fftfreq(4))
        Tensor([-0.5 , -0.25,  0.  ,  0.25], dtype=float32, device='cpu')
        >>> tp.fft.fftshift([[1, 2, 3], [4, 5, 6]], axes=1)
        Tensor([[3, 1, 2],
                [6, 4, 5]], dtype=int32, device='cpu')

    """
    return _shift(x, axes, "fftshift", back=False)


def ifftshift(x: ArrayLike, /, axes: Axis | None = None) -> Tensor:
    """Return ``x`` with frequency 0 moved from the middle of ``axes`` back to the front.

    Raises:
        ShapeError: an axis is out of range.

    Source: the array API standard.

    Examples:
        >>> tp.fft.ifftshift([-0.5, -0.25, 0.0, 0.25])
        Tensor([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32, device='cpu')
        >>> tp.fft.ifftshift(tp.fft.fftshift([0, 1, 2, 3, 4]))  # fftshift twice would not undo it
        Tensor([0, 1, 2, 3, 4], dtype=int32, device='cpu')

    """
    return _shift(x, axes, "ifftshift", back=True)
