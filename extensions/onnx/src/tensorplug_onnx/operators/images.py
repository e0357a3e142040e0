"""Images: resized, sampled on a grid, decoded."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import pip_install
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Iterable

Ints = tuple[int, ...]
Mode = Any  # a text of the file; the functions of tp.image refuse those that they do not know


def _present(values: Any) -> Any:
    """Return an input that is there and has elements, as a list."""
    return values.tolist() if values is not None and values.size else None


def _distinct(axes: Iterable[int], rank: int) -> list[int]:
    """Return axes counted from the start."""
    found = [axis + rank if axis < 0 else axis for axis in axes]
    if len(set(found)) != len(found) or not set(found) <= set(range(rank)):
        raise ValueError(f"axes must be different, and in [-{rank}, {rank}), are {list(axes)}")
    return found


@rule("Resize", since=11, host=(1, 2, 3))
def resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Ints | None = None,
    coordinate_transformation_mode: Mode = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: Mode = "stretch",
    mode: Mode = "nearest",
    nearest_mode: Mode = "round_prefer_floor",
) -> Any:
    along = _distinct(range(x.ndim) if axes is None else axes, x.ndim)
    size, scale, region = _present(sizes), _present(scales), _present(roi)
    if (size is None) == (scale is None):
        raise ValueError("either scales or sizes must be given, not both")
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    if cropped and (region is None or len(region) != 2 * len(along)):
        raise ValueError(f"roi must have {2 * len(along)} numbers, is {region}")
    if len(size or scale) != len(along):
        raise ValueError(f"{len(size or scale)} scales or sizes for {len(along)} axes")
    moved = [
        at
        for at, axis in enumerate(along)
        if cropped or (scale[at] != 1 if scale else size[at] != x.shape[axis])
    ]
    if size and keep_aspect_ratio_policy != "stretch":
        moved = list(range(len(along)))  # the factor is that of all
    if not moved:
        return x
    y = tp.image.resize(
        x,
        [size[at] for at in moved] if size else None,
        scale=[scale[at] for at in moved] if scale else None,
        axes=[along[at] for at in moved],
        method=mode,
        antialias=bool(antialias),
        coordinates=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        cubic_coefficient=cubic_coeff_a,
        exclude_outside=bool(exclude_outside),
        roi=[(region[at], region[at + len(along)]) for at in moved] if cropped else None,
        extrapolation_value=extrapolation_value,
        keep_aspect_ratio_policy=keep_aspect_ratio_policy,
    )
    return _as_before(y, x)


def _as_before(y: Any, x: Any) -> Any:
    """Return y in the dtype of x; integers are limited to their range, and truncated."""
    if y.dtype == x.dtype:
        return y
    if tp.isdtype(x.dtype, "integral"):
        limits = tp.iinfo(x.dtype)
        y = tp.clip(y, float(limits.min), float(limits.max))
    return tp.astype(y, x.dtype)


@rule("Resize", since=10, host=(1,))
@rule("Upsample", since=9, host=(1,))
def resize_10(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    return resize(
        x,
        None,
        scales,
        coordinate_transformation_mode="asymmetric",
        mode={"bilinear": "linear"}.get(mode, mode),
        nearest_mode="floor",
    )


@rule("Upsample", since=7)
def upsample_7(x: Any, *, mode: str = "nearest", scales: tuple[float, ...]) -> Any:
    return resize_10(x, np.array(scales, np.float32), mode=mode)


_METHODS: Final[dict[str, Mode]] = {"bilinear": "linear", "bicubic": "cubic"}


@rule("GridSample")
def grid_sample(
    x: Any,
    grid: Any,
    *,
    align_corners: int = 0,
    mode: Mode = "linear",
    padding_mode: Mode = "zeros",
) -> Any:
    method: Mode = _METHODS.get(mode, mode)
    y = tp.image.grid_sample(
        tp.moveaxis(x, 1, -1),
        grid,
        method,
        padding_mode,
        align_corners=bool(align_corners),
    )
    return _as_before(tp.moveaxis(y, -1, 1), x)


@rule("ImageDecoder", host=(0,))
def decoded_image(encoded: Any, *, pixel_format: str = "RGB") -> Any:
    """The file decides how it is read: whatever Pillow reads."""
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise ValueError(f"pixel_format is {pixel_format!r}")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        message = f"images are decoded by Pillow: {pip_install('tensorplug-onnx[images]')}"
        raise UnsupportedError(message) from error
    try:
        image = Image.open(io.BytesIO(encoded.tobytes()))
        if pixel_format == "Grayscale":
            return np.asarray(image.convert("L"))[..., None]
        pixels = np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"not an image, or a broken one: {error}") from error
    return pixels if pixel_format == "RGB" else pixels[..., ::-1].copy()
