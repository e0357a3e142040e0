"""Conversion between images of other libraries and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, PackageNotInstalledError, ShapeError
from tensorplug.ops.elementwise.comparison import greater, less, logical_or
from tensorplug.ops.reduction import any as any_
from tensorplug.system.distributions import pip_install

if TYPE_CHECKING:
    from PIL.Image import Image

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.image.fill_modes import Arithmetic
    from tensorplug.typing import ArrayLike

__all__ = ["draw", "from_pixels", "to_pixels"]

OPAQUE = 255


class ImageData(Protocol):
    """An image as RGBA bytes, row by row, such as JavaScript's ImageData."""

    @property
    def data(self) -> bytes | bytearray | memoryview | np.ndarray[Any, Any]: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


# Indices of red, green, blue and alpha among an image's channels; None: opaque.
CHANNELS: dict[int, tuple[int | None, ...]] = {
    1: (0, 0, 0, None),
    2: (0, 0, 0, 1),
    3: (0, 1, 2, None),
    4: (0, 1, 2, 3),
}
# Pillow modes whose arrays hold levels; the others have palettes or other colour spaces.
_PLAIN_MODES = frozenset({"1", "L", "LA", "RGB", "RGBA", "I", "I;16"})


def levels(x: Any, by: Arithmetic) -> Any:
    """Return ``x`` from 0 to 1 as integers from 0 to 255, with halves rounded upwards.

    It takes tensors and arrays. 255 x may round up to a half; 256 x is exact, and so is its
    distance to the next integer.

    ``by``: multiplies, exactly: ``operator.mul`` or a function like it.
    """
    level = by.floor(x * 255 + 0.5)
    return by.where(x * 256 - (level - 0.5) < x, level - 1, level)


def _infer_from_pixels(pixels: TensorType, *, num_channels: int) -> TensorType:
    if pixels.rank not in (2, 3):
        raise ShapeError("pixels must have shape [height, width] or [height, width, channels]")
    if pixels.rank == 3 and pixels.shape[2] not in CHANNELS:
        raise ShapeError(f"pixels must have 1 to 4 channels, got {pixels.shape[2]}")
    return TensorType(dt.int32, (*pixels.shape[:2], num_channels))


def _read_num_channels(value: Any, known: InputTypes) -> int:
    number: int = attributes.integer(at_least=1).canonical(value, known)  # type: ignore[assignment]  # as it says
    if number > 4:
        raise ArgumentError(f"must be from 1 to 4, got {number}")
    return number


FROM_PIXELS = KernelSpec(
    "FromPixels",
    ("pixels",),
    _infer_from_pixels,
    attributes={"num_channels": Attribute(_read_num_channels, 3, "int in [1, 4]")},
    accepts=dt.BOOL | dt.FLOATING | {dt.int8, dt.int16, dt.int32, dt.uint8, dt.uint16},
)


def from_pixels(
    pixels: ArrayLike | Image | ImageData | Mapping[str, Any], num_channels: int = 3
) -> Tensor:
    """Return an image as an int32 tensor [height, width, num_channels] of levels from 0 to 255.

    Channels are red, green, blue, alpha; gray stands for all three colours, and images
    without alpha are opaque. ``num_channels`` 1 takes only red.

    Args:
        pixels: a Pillow image, an array or tensor [height, width] or [height, width, 1 to 4]
            (gray, gray and alpha, RGB, RGBA), anything that NumPy reads as such, or an object
            with RGBA bytes ``data``, ``width`` and ``height``. Integers are levels. False and
            True become 0 and 255. Floats are clipped to [0, 1], multiplied by 255 and rounded;
            NaN becomes 0.
        num_channels: of the result, from 1 to 4.

    Raises:
        ShapeError: the rank or the number of channels is wrong.
        DTypeError: images cannot have the dtype (int64, complex64, ...).
        ArgumentError: ``num_channels`` is out of range, or the number of bytes does not fit
            width and height.

    Source: tf.browser.fromPixels. ``run_kernel`` does not convert images with a palette.

    Examples:
        >>> pixels = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
        >>> tp.image.from_pixels(pixels)
        Tensor([[[255,   0,   0],
                 [  0,   0, 255]]], dtype=int32, device='cpu')
        >>> tp.image.from_pixels([[0.0, 0.5, 1.0]], num_channels=1)[..., 0]
        Tensor([[  0, 128, 255]], dtype=int32, device='cpu')

    """
    return dispatch(FROM_PIXELS, _make_readable(pixels), num_channels=num_channels)


def _make_readable(pixels: Any) -> Any:
    """Return ``pixels`` as an array, or as an object that NumPy can read."""
    if isinstance(pixels, Mapping) and {"data", "width", "height"} <= pixels.keys():
        return _bytes(pixels["data"], pixels["width"], pixels["height"])
    if hasattr(pixels, "mode") and hasattr(pixels, "convert"):  # a Pillow image
        if pixels.mode in _PLAIN_MODES:
            return pixels
        return pixels.convert("L" if pixels.mode == "F" else "RGBA")  # F: floats from 0 to 255
    if hasattr(pixels, "width") and isinstance(getattr(pixels, "data", None), _BYTES):
        return _bytes(pixels.data, pixels.width, pixels.height)
    return pixels


_BYTES = (bytes, bytearray, memoryview, np.ndarray)


def _bytes(data: Any, width: int, height: int) -> Any:
    if not isinstance(data, _BYTES):
        raise ArgumentError(f"from_pixels: data must be bytes, got {type(data).__name__}")
    flat = data.reshape(-1) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if flat.dtype != np.uint8 or flat.size != width * height * 4:
        raise ArgumentError(
            f"from_pixels: {width} by {height} pixels need {width * height * 4} bytes, four per "
            f"pixel, got {flat.size} of {flat.dtype}"
        )
    return flat.reshape(height, width, 4)


def _infer_draw(image: TensorType) -> TensorType:
    if image.rank not in (2, 3) or (image.rank == 3 and image.shape[2] not in (1, 3, 4)):
        raise ShapeError("image must have shape [height, width] or [height, width, 1, 3 or 4]")
    return TensorType(dt.uint8, (*image.shape[:2], 4))


def _read_options(value: Any, _known: InputTypes) -> float:
    """Return the alpha in tfjs's DrawOptions."""
    if value is None or isinstance(value, float):  # the default; what this returns
        value = {"image_options": {"alpha": 1.0 if value is None else value}}
    options = value.get("image_options", {}) if isinstance(value, Mapping) else None
    if (
        not isinstance(options, Mapping)
        or set(value) - {"image_options"}
        or set(options) - {"alpha"}
    ):
        raise ArgumentError(
            f'must be None or {{"image_options": {{"alpha": ...}}}}, got {quoted(value)}'
        )
    alpha = dt.as_number(options.get("alpha", 1))
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
        raise ArgumentError(f"alpha must be a number from 0 to 1, got {quoted(alpha)}")
    return float(alpha)


DRAW = KernelSpec(
    "Draw",
    ("image",),
    _infer_draw,
    attributes={
        "options": Attribute(_read_options, None, "float in [0, 1], the alpha; None becomes 1.0")
    },
    accepts=dt.REAL | dt.BOOL,
)


def to_pixels(image: ArrayLike, *, alpha: float = 1.0) -> Tensor:
    """Return an image as RGBA bytes, a uint8 tensor [height, width, 4].

    Args:
        image: [height, width] or [height, width, 1] (gray), [height, width, 3] (RGB) or
            [height, width, 4] (RGBA). Integers are levels from 0 to 255. Floats from 0 to 1
            are multiplied by 255 and rounded, halves upwards; NaN becomes 0.
        alpha: for images without an alpha channel, from 0 to 1.

    Raises:
        ShapeError: the shape is not that of an image.
        ArgumentError: a level is out of range.

    Source: tf.browser.toPixels.

    Examples:
        >>> tp.image.to_pixels([[0.0, 1.0]])  # gray
        Tensor([[[  0,   0,   0, 255],
                 [255, 255, 255, 255]]], dtype=uint8, device='cpu')
        >>> tp.image.to_pixels([[[255, 0, 0]]], alpha=0.5)
        Tensor([[[255,   0,   0, 128]]], dtype=uint8, device='cpu')

    """
    return _to_bytes(image, alpha, "to_pixels")


def _to_bytes(image: Any, alpha: float, caller: str) -> Tensor:
    tensor = as_tensor(image, what=f"{caller}: image")
    plain = alpha.__class__ in (int, float) and alpha == 1
    options = None if plain else {"image_options": {"alpha": alpha}}
    drawn = dispatch(DRAW, tensor, options=options)
    _check_range(tensor, caller)
    return drawn


def _check_range(image: Tensor, caller: str) -> None:
    if image.dtype in (dt.bool_, dt.uint8):
        return
    most = 1 if image.dtype in dt.FLOATING else OPAQUE
    outside = less(image, 0)
    if image.dtype is not dt.int8:
        outside = logical_or(outside, greater(image, most))
    if bool(any_(outside)):
        values = image.numpy()
        raise ArgumentError(
            f"{caller}: levels of {image.dtype} must lie in [0, {most}], got "
            f"{np.nanmin(values)} to {np.nanmax(values)}"
        )


def draw(image: ArrayLike, *, alpha: float = 1.0) -> Image:
    """Return an image as a Pillow image, which notebooks display and ``show`` opens.

    Args:
        image: as for ``to_pixels``.
        alpha: for images without an alpha channel, from 0 to 1.

    Raises:
        PackageNotInstalledError: Pillow is not installed.
        ShapeError, ArgumentError: as ``to_pixels``.

    Source: tf.browser.draw.

    Examples:
        >>> picture = tp.image.draw(tp.zeros((4, 6, 3)))
        >>> picture.size, picture.mode
        ((6, 4), 'RGBA')

    """
    try:
        from PIL import Image  # an optional dependency
    except ImportError as error:
        raise PackageNotInstalledError(
            f"draw needs Pillow to make images. Try: {pip_install('tensorplug[image]')}"
        ) from error
    return Image.fromarray(np.array(_to_bytes(image, alpha, "draw").numpy()))
