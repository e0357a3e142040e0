"""Fourier transforms over two axes: those of planes, such as images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.library.fft import spectra
from tensorplug.plugin import shapes

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, Axis, Norm, ShapeLike

__all__ = ["fft2", "ifft2", "irfft2", "rfft2"]


def _check_two(axes: Any, caller: str) -> Any:
    listed = shapes.as_ints(axes, f"{caller}: axes")
    if len(listed) != 2:
        raise ArgumentError(
            f"{caller}: axes must be two axes, got {list(listed)}; {caller[:-1]}n takes any number"
        )
    return listed


def fft2(
    x: ArrayLike,
    /,
    s: ShapeLike | None = None,
    axes: Axis = (-2, -1),
    *,
    norm: Norm = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along two axes, the last ones by default.

    It is ``fftn`` with these axes.

    Args:
        x: complex; real numbers are converted.
        s: two lengths to which the axes are cut or zero-padded first; -1 keeps an axis as it is.
        axes: the two axes to transform.
        norm: as for ``fft``, for the product of the lengths.

    Raises:
        ShapeError: an axis is out of range or empty.
        ArgumentError: there are not two axes or lengths, or ``norm`` is unknown.

    Source: NumPy's fft2.

    Examples:
        >>> tp.real(tp.fft.fft2([[1.0, 2.0], [3.0, 4.0]]))
        Tensor([[10., -2.],
                [-4.,  0.]], dtype=float32, device='cpu')
        >>> tp.fft.fft2(tp.ones((5, 8, 8)), s=(16, 4)).shape  # a batch of planes, padded and cut
        (5, 16, 4)

    """
    return spectra.transform(tp.fft.fft, x, s, _check_two(axes, "fft2"), norm, "fft2")


def ifft2(
    x: ArrayLike,
    /,
    s: ShapeLike | None = None,
    axes: Axis = (-2, -1),
    *,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of ``fft2``; ``x``, ``s``, ``axes``, ``norm`` and errors are as there.

    Source: NumPy's ifft2.

    Examples:
        >>> tp.real(tp.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]))
        Tensor([[1., 2.],
                [3., 4.]], dtype=float32, device='cpu')

    """
    return spectra.transform(tp.fft.ifft, x, s, _check_two(axes, "ifft2"), norm, "ifft2")


def rfft2(
    x: ArrayLike,
    /,
    s: ShapeLike | None = None,
    axes: Axis = (-2, -1),
    *,
    norm: Norm = "backward",
) -> Tensor:
    """Return the Fourier transform of real numbers along two axes, the last ones by default.

    It is ``rfftn`` with these axes: the second of them keeps n // 2 + 1 elements. ``x``, ``s``,
    ``axes``, ``norm`` and errors are as for ``fft2``; a complex ``x`` raises a ``DTypeError``.

    Source: NumPy's rfft2.

    Examples:
        >>> tp.fft.rfft2(tp.ones((3, 8, 8))).shape
        (3, 8, 5)

    """
    return spectra.transform_real(x, s, _check_two(axes, "rfft2"), norm, "rfft2")


def irfft2(
    x: ArrayLike,
    /,
    s: ShapeLike | None = None,
    axes: Axis = (-2, -1),
    *,
    norm: Norm = "backward",
) -> Tensor:
    """Return the inverse of ``rfft2``.

    ``s`` has the lengths of the result; the second is 2 * (m - 1) by default. ``x``, ``axes``,
    ``norm`` and errors are as for ``fft2``.

    Source: NumPy's irfft2.

    Examples:
        >>> x = tp.asarray([[1.0, 2.0, 3.0, 2.0], [1.0, 0.0, 1.0, 2.0]])
        >>> tp.fft.irfft2(tp.fft.rfft2(x))
        Tensor([[1., 2., 3., 2.],
                [1., 0., 1., 2.]], dtype=float32, device='cpu')

    """
    return spectra.restore_real(x, s, _check_two(axes, "irfft2"), norm, "irfft2")
