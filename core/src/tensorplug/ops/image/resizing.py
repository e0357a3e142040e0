"""Resizing images, bilinear and nearest-neighbour, and the transposes of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.movement import expand_dims, squeeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "resize_bilinear",
    "resize_nearest_neighbor",
]

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """The two old pixels of an axis around each new pixel, and its distance to the lower one.

    ``lower``, ``upper``: the old pixels, int32[n]. ``fraction``: the distance in pixels,
    float64[n], in [0, 1).
    """

    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    fraction: NDArray[np.float64]

    def shares(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        """Return all pairs of an old and a new pixel with a weight, and these weights."""
        counted = np.arange(self.lower.size, dtype=np.int32)
        old = np.concatenate([self.lower, self.upper])
        share = np.concatenate([1 - self.fraction, self.fraction])
        some = np.flatnonzero(share)  # 0 times infinity would be NaN
        return old[some], np.tile(counted, 2)[some], share[some]


def bilinear_taps(
    old: int, new: int, *, align_corners: bool, half_pixel_centers: bool
) -> Taps | None:
    """Return the taps of ``new`` pixels on an axis of ``old``; None if they are the old ones.

    Places outside use the nearest pixel.

    ``align_corners``: whether the centers of the corners stay in place; ``half_pixel_centers``:
    whether pixels are sampled at their centers.
    """
    if old == new:
        return None
    at = _compute_positions(
        old, new, align_corners=align_corners, half_pixel_centers=half_pixel_centers
    )
    if half_pixel_centers:
        at = np.maximum(at - 0.5, 0)
    lower = np.floor(at)
    upper = np.minimum(np.ceil(at), old - 1)
    fraction = np.where(upper > lower, at - lower, 0)
    return Taps(lower.astype(np.int32), upper.astype(np.int32), fraction)


def nearest_pixels(
    old: int, new: int, *, align_corners: bool, half_pixel_centers: bool
) -> NDArray[np.int32]:
    """Return for each of ``new`` pixels the number of the ``old`` one.

    ``align_corners``: whether the centers of the corners stay in place; ``half_pixel_centers``:
    whether pixels are sampled at their centers.
    """
    at = _compute_positions(
        old, new, align_corners=align_corners, half_pixel_centers=half_pixel_centers
    )
    pixel = np.floor(at)
    if align_corners:
        pixel += at - pixel >= 0.5
    return np.minimum(pixel, old - 1).astype(np.int32)


def _compute_positions(
    old: int, new: int, *, align_corners: bool, half_pixel_centers: bool
) -> NDArray[np.float64]:
    """Return each new pixel's place on the old axis."""
    positions = np.arange(new, dtype=np.float64)
    if half_pixel_centers:
        positions += 0.5
    if align_corners and new > 1:
        return positions * ((old - 1) / (new - 1))
    return positions * (old / max(new, 1))


def size_attribute() -> Attribute:
    """Return an attribute of two sizes, (height, width)."""

    def canonical(value: Any, _known: InputTypes) -> Pair:
        pair = shapes.as_shape(value, "size")
        if len(pair) != 2:
            raise ArgumentError(f"must be a pair of sizes, (height, width), got {quoted(value)}")
        return pair[0], pair[1]

    return Attribute(canonical, form="pair of ints >= 0, (height, width)")


def _read_half_pixel_centers(value: Any, known: InputTypes) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"must be True or False, got {quoted(value)}")
    if value and known["align_corners"]:
        raise ArgumentError("must be False where align_corners is True")
    return value


_OPTIONS = {
    "size": size_attribute(),
    "align_corners": attributes.flag(default=False),
    "half_pixel_centers": Attribute(
        _read_half_pixel_centers, default=False, form="bool; False where align_corners is True"
    ),
}


def _read_size_of_dy(known: InputTypes) -> Pair:
    shape: Shape = known["dy"].shape
    return (shape[1], shape[2]) if len(shape) == 4 else (0, 0)  # infer rejects other ranks


_GRAD_OPTIONS = {**_OPTIONS, "size": attributes.optional(size_attribute(), _read_size_of_dy)}


def _infer_resize(images: TensorType, *, size: Pair) -> TensorType:
    if images.rank != 4:
        raise ShapeError("images must have rank 4: [batch, height, width, channels]")
    batch, height, width, channels = images.shape
    out = TensorType(images.dtype, (batch, *size, channels))
    if out.size and not height * width:
        raise ShapeError(f"images must not be empty, got {height} by {width} pixels")
    return out


def _infer_resize_grad(images: TensorType, dy: TensorType, *, size: Pair) -> TensorType:
    if dy.rank != 4:
        raise ShapeError("dy must have rank 4: [batch, height, width, channels]")
    expected = _infer_resize(images, size=size)
    if dy != expected:
        raise ShapeError(f"dy must be {expected}")
    return images


RESIZE_BILINEAR = KernelSpec(
    "ResizeBilinear",
    ("images",),
    _infer_resize,
    attributes=_OPTIONS,
    accepts=dt.REAL | dt.BOOL,
    promote=("images",),
    inexact=True,
    linear=("images",),
    fold=("images",),
)
RESIZE_BILINEAR_GRAD = KernelSpec(
    "ResizeBilinearGrad",
    ("images", "dy"),
    _infer_resize_grad,
    attributes=_GRAD_OPTIONS,
    accepts=dt.FLOATING,
    promote=("images", "dy"),
    inexact=True,
    linear=("dy",),
    fold=("images", "dy"),
)
RESIZE_NEAREST_NEIGHBOR = KernelSpec(
    "ResizeNearestNeighbor",
    ("images",),
    _infer_resize,
    attributes=_OPTIONS,
    accepts=dt.FIXED,
    exact=True,
    linear=("images",),
    fold=("images",),
)
RESIZE_NEAREST_NEIGHBOR_GRAD = KernelSpec(
    "ResizeNearestNeighborGrad",
    ("images", "dy"),
    _infer_resize_grad,
    attributes=_GRAD_OPTIONS,
    accepts=dt.FLOATING,
    promote=("images", "dy"),
    inexact=True,
    linear=("dy",),
    fold=("images", "dy"),
)


@chained
def resize_bilinear(
    images: ArrayLike,
    size: Sequence[SupportsIndex],
    align_corners: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
    half_pixel_centers: bool = False,  # noqa: FBT001, FBT002
) -> Tensor:
    """Return images resized by bilinear interpolation.

    New pixel ``i`` of ``new`` lies at ``i * old / new`` on an axis of ``old`` pixels.

    Args:
        images: [batch, height, width, channels], or one image [height, width, channels].
        size: the new (height, width).
        align_corners: whether the centres of the corner pixels stay: pixel ``i`` lies at
            ``i * (old - 1) / (new - 1)``.
        half_pixel_centers: whether to interpolate between pixel centres: pixel ``i`` lies at
            ``(i + 0.5) * old / new - 0.5``. Not with ``align_corners``.

    Returns:
        A tensor of the images' dtype, float32 for integers and booleans. An axis that keeps
        its size keeps its pixels.

    Raises:
        ShapeError: the rank is neither 3 nor 4, or there are no pixels.
        ArgumentError: ``size`` is not a pair, or both options are set.

    Source: TensorFlow's ResizeBilinear.

    Examples:
        >>> x = [[[0.0], [4.0]]]  # one row of two pixels
        >>> tp.image.resize_bilinear(x, (1, 4))[0, :, 0]
        Tensor([0., 2., 4., 4.], dtype=float32, device='cpu')
        >>> tp.image.resize_bilinear(x, (1, 4), half_pixel_centers=True)[0, :, 0]
        Tensor([0., 1., 3., 4.], dtype=float32, device='cpu')
        >>> tp.image.resize_bilinear(x, (1, 5), align_corners=True)[0, :, 0]
        Tensor([0., 1., 2., 3., 4.], dtype=float32, device='cpu')

    """
    return _resize(
        RESIZE_BILINEAR, "resize_bilinear", images, size, align_corners, half_pixel_centers
    )


@chained
def resize_nearest_neighbor(
    images: ArrayLike,
    size: Sequence[SupportsIndex],
    align_corners: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
    half_pixel_centers: bool = False,  # noqa: FBT001, FBT002
) -> Tensor:
    """Return images resized by nearest-neighbour interpolation.

    New pixel ``i`` of ``new`` is old pixel ``floor(i * old / new)`` of ``old``.

    Args:
        images: [batch, height, width, channels], or one image [height, width, channels].
        size: the new (height, width).
        align_corners: whether the old pixel is ``i * (old - 1) / (new - 1)``, halves rounded up.
        half_pixel_centers: whether the old pixel is ``floor((i + 0.5) * old / new)``, under the
            new centre. Not with ``align_corners``.

    Returns:
        A tensor of the images' dtype.

    Raises:
        ShapeError: the rank is neither 3 nor 4, or there are no pixels.
        ArgumentError: ``size`` is not a pair, or both options are set.

    Source: TensorFlow's ResizeNearestNeighbor.

    Examples:
        >>> x = [[[1], [2], [3]]]  # one row of three pixels
        >>> tp.image.resize_nearest_neighbor(x, (1, 6))[0, :, 0]
        Tensor([1, 1, 2, 2, 3, 3], dtype=int32, device='cpu')
        >>> tp.image.resize_nearest_neighbor(x, (1, 2))[0, :, 0]
        Tensor([1, 2], dtype=int32, device='cpu')
        >>> tp.image.resize_nearest_neighbor(x, (1, 2), half_pixel_centers=True)[0, :, 0]
        Tensor([1, 3], dtype=int32, device='cpu')

    """
    return _resize(
        RESIZE_NEAREST_NEIGHBOR,
        "resize_nearest_neighbor",
        images,
        size,
        align_corners,
        half_pixel_centers,
    )


def _resize(
    spec: KernelSpec,
    caller: str,
    images: Any,
    size: Any,
    align_corners: bool,  # noqa: FBT001
    half_pixel_centers: bool,  # noqa: FBT001
) -> Tensor:
    tensor = as_tensor(images, what=f"{caller}: images")
    single = tensor.ndim == 3
    result = dispatch(
        spec,
        expand_dims(tensor, axis=0) if single else tensor,
        size=size,
        align_corners=align_corners,
        half_pixel_centers=half_pixel_centers,
    )
    return squeeze(result, 0) if single else result
