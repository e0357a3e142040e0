"""Boxes cropped from images and resized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.image.resizing import size_attribute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["crop_and_resize"]

Pair = tuple[int, int]


def _read_real(value: Any, _known: InputTypes) -> float:
    value = dt.as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"must be a real number, got {quoted(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(f"must fit into float64, got {quoted(value)}") from None


def _infer_crop_and_resize(
    image: TensorType, boxes: TensorType, box_ind: TensorType, *, crop_size: Pair
) -> TensorType:
    if image.rank != 4:
        raise ShapeError("image must have rank 4: [batch, height, width, channels]")
    if boxes.rank != 2 or boxes.shape[1] != 4:
        raise ShapeError("boxes must have shape [boxes, 4], with y1, x1, y2, x2 of each box")
    if box_ind.shape != boxes.shape[:1]:
        raise ShapeError(f"box_ind must have shape {list(boxes.shape[:1])}")
    out = TensorType(image.dtype, (boxes.shape[0], *crop_size, image.shape[3]))
    if out.size and not image.size:
        raise ShapeError(f"image must not be empty, got {image}")
    return out


CROP_AND_RESIZE = KernelSpec(
    "CropAndResize",
    ("image", "boxes", "box_ind"),
    _infer_crop_and_resize,
    attributes={
        "crop_size": size_attribute(),
        "method": attributes.choice("bilinear", "nearest", default="bilinear"),
        "extrapolation_value": Attribute(_read_real, 0.0, "float"),
    },
    accepts={
        "image": dt.REAL | dt.BOOL,
        "boxes": dt.FLOATING,
        "box_ind": dt.INTEGER,
    },
    promote=("image",),
    inexact=True,
    linear=("image",),
    linear_with={"extrapolation_value": 0.0},
)


def crop_and_resize(
    image: ArrayLike,
    boxes: ArrayLike,
    box_ind: ArrayLike,
    crop_size: Sequence[SupportsIndex],
    method: Literal["bilinear", "nearest"] = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Return boxes cropped from images, each resized to ``crop_size`` (height, width).

    Row ``i`` of ``n`` of a crop lies at ``(y1 + (y2 - y1) * i / (n - 1)) * (height - 1)`` in
    its image; a single row lies in the middle. The same holds for columns. A box with
    ``y1 > y2`` is flipped.

    Args:
        image: [batch, height, width, channels].
        boxes: [boxes, 4], y1, x1, y2, x2 of each box, where 0 and 1 are the centres of the
            first and the last row or column.
        box_ind: [boxes], integers: the image of each box. If the image does not exist, the
            crop is all zeros.
        crop_size: (height, width) of every crop.
        method: "bilinear" or "nearest" (halves upwards).
        extrapolation_value: the value outside the image.

    Returns:
        ``[boxes, *crop_size, channels]`` in the image's dtype, float32 for integers. It is
        differentiable in the image and, if ``method`` is "bilinear", in the boxes.

    Raises:
        ShapeError: a wrong rank or shape.
        DTypeError: ``box_ind`` does not hold integers.

    Source: TensorFlow's CropAndResize.

    Examples:
        >>> x = tp.reshape(tp.arange(9.0), (1, 3, 3, 1))
        >>> tp.image.crop_and_resize(x, [[0.0, 0.0, 1.0, 1.0]], [0], (2, 2))[0, ..., 0]  # corners
        Tensor([[0., 2.],
                [6., 8.]], dtype=float32, device='cpu')
        >>> flipped = [[0.5, 1.0, 0.5, 0.0]]  # the middle row, from right to left
        >>> tp.image.crop_and_resize(x, flipped, [0], (1, 5))[0, ..., 0]
        Tensor([[5. , 4.5, 4. , 3.5, 3. ]], dtype=float32, device='cpu')

    """
    corners = as_tensor(boxes, what="crop_and_resize: boxes")
    if corners.dtype in dt.INTEGER:
        corners = astype(corners, dt.default_float)
    return dispatch(
        CROP_AND_RESIZE,
        image,
        corners,
        box_ind,
        crop_size=crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
    )
