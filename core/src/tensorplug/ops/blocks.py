"""Moving blocks of cells between spatial axes and the batch or the channels."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DataFormat, ShapeLike, TensorLike

__all__ = ["batch_to_space_nd", "depth_to_space", "space_to_batch_nd", "space_to_depth"]

Pairs = tuple[tuple[int, int], ...]


def _read_block_shape(value: Any, known: InputTypes) -> tuple[int, ...]:
    block = shapes.as_ints(value)
    rank: int = known["x"].rank
    if any(size < 1 for size in block):
        raise ShapeError(f"must contain positive sizes, got {list(block)}")
    if len(block) >= max(rank, 1):
        raise ShapeError(
            f"{list(block)} has {len(block)} sizes, but x of rank {rank} has only "
            f"{max(rank - 1, 0)} axes after the batch"
        )
    return block


def _read_pairs(value: Any, known: InputTypes) -> Pairs:
    return shapes.pairs(value, len(known["block_shape"]))


def _check_rank(x: TensorType, block_shape: tuple[int, ...]) -> None:
    """Refuse a rank for which splitting each axis into blocks needs more axes than arrays have."""
    if x.rank + len(block_shape) > shapes.MOST_AXES:
        raise ShapeError(
            f"x has {x.rank} axes, and block_shape {len(block_shape)} entries; together there may "
            f"be at most {shapes.MOST_AXES}"
        )


def _infer_batch_to_space_nd(
    x: TensorType, *, block_shape: tuple[int, ...], crops: Pairs
) -> TensorType:
    _check_rank(x, block_shape)
    blocks = prod(block_shape)
    if x.shape[0] % blocks:
        raise ShapeError(f"the batch size {x.shape[0]} is not a multiple of {blocks}")
    sizes = []
    for axis, (size, block, crop) in enumerate(
        zip(x.shape[1:], block_shape, crops, strict=False), start=1
    ):
        if sum(crop) > size * block:
            raise ShapeError(f"crops {list(crop)} exceed axis {axis} of length {size * block}")
        sizes.append(size * block - sum(crop))
    return TensorType(x.dtype, (x.shape[0] // blocks, *sizes, *x.shape[1 + len(sizes) :]))


_BLOCK_FORM = "tuple of at most rank of x - 1 ints >= 1"
_PAIRS_FORM = "tuple of one pair of ints >= 0 per entry of block_shape"

BATCH_TO_SPACE_ND = KernelSpec(
    "BatchToSpaceND",
    ("x",),
    _infer_batch_to_space_nd,
    attributes={
        "block_shape": Attribute(_read_block_shape, form=_BLOCK_FORM),
        "crops": Attribute(_read_pairs, form=_PAIRS_FORM),
    },
    linear=("x",),
)


def _infer_space_to_batch_nd(
    x: TensorType, *, block_shape: tuple[int, ...], paddings: Pairs
) -> TensorType:
    _check_rank(x, block_shape)
    sizes = []
    for axis, (size, block, pair) in enumerate(
        zip(x.shape[1:], block_shape, paddings, strict=False), start=1
    ):
        padded = size + sum(pair)
        if padded % block:
            raise ShapeError(
                f"axis {axis} of length {size}, padded by {list(pair)}, is not a multiple of "
                f"{block}"
            )
        sizes.append(padded // block)
    batch = x.shape[0] * prod(block_shape)
    return TensorType(x.dtype, (batch, *sizes, *x.shape[1 + len(sizes) :]))


SPACE_TO_BATCH_ND = KernelSpec(
    "SpaceToBatchND",
    ("x",),
    _infer_space_to_batch_nd,
    attributes={
        "block_shape": Attribute(_read_block_shape, form=_BLOCK_FORM),
        "paddings": Attribute(_read_pairs, form=_PAIRS_FORM),
    },
    linear=("x",),
)


def split_spatial_axes(shape: Shape, block_shape: tuple[int, ...]) -> Shape:
    """Return the shape with each spatial axis split into blocks and cells.

    ``block_shape``: the size of a block along each spatial axis.
    """
    spatial = zip(shape[1:], block_shape, strict=False)
    pairs = [part for size, block in spatial for part in (size // block, block)]
    return (shape[0], *pairs, *shape[1 + len(block_shape) :])


def cells_first_permutation(rank: int, block_rank: int) -> tuple[int, ...]:
    """Return the permutation that puts the cells of a block first.

    It applies to the axes of ``split_spatial_axes``.

    ``rank``: of the tensor before the split; ``block_rank``: the number of axes that are split.
    """
    cells = range(2, 2 * block_rank + 1, 2)
    blocks = range(1, 2 * block_rank, 2)
    return (*cells, 0, *blocks, *range(2 * block_rank + 1, rank + block_rank))


def _unpack_shape(x: TensorType, data_format: str) -> tuple[int, int, int, int]:
    """Return batch, height, width and channels."""
    if x.rank != 4:
        raise ShapeError(f"x must have rank 4, got {x.rank}")
    if data_format == "NHWC":
        n, height, width, channels = x.shape
    else:
        n, channels, height, width = x.shape
    return n, height, width, channels


def _arrange(
    x: TensorType, n: int, spatial: tuple[int, int], channels: int, how: str
) -> TensorType:
    shape = (n, *spatial, channels) if how == "NHWC" else (n, channels, *spatial)
    return TensorType(x.dtype, shape)


def _infer_depth_to_space(x: TensorType, *, block_size: int, data_format: str) -> TensorType:
    n, height, width, channels = _unpack_shape(x, data_format)
    if channels % block_size**2:
        raise ShapeError(f"{channels} channels are not a multiple of {block_size**2}")
    spatial = (height * block_size, width * block_size)
    return _arrange(x, n, spatial, channels // block_size**2, data_format)


def _infer_space_to_depth(x: TensorType, *, block_size: int, data_format: str) -> TensorType:
    n, height, width, channels = _unpack_shape(x, data_format)
    if height % block_size or width % block_size:
        raise ShapeError(f"height {height} and width {width} must be multiples of {block_size}")
    spatial = (height // block_size, width // block_size)
    return _arrange(x, n, spatial, channels * block_size**2, data_format)


_IN_BLOCKS = {
    "block_size": attributes.integer(at_least=1),
    "data_format": attributes.choice("NHWC", "NCHW", default="NHWC"),
}
DEPTH_TO_SPACE = KernelSpec(
    "DepthToSpace",
    ("x",),
    _infer_depth_to_space,
    attributes=_IN_BLOCKS,
    linear=("x",),
    fold=("x",),
)
SPACE_TO_DEPTH = KernelSpec(
    "SpaceToDepth",
    ("x",),
    _infer_space_to_depth,
    attributes=_IN_BLOCKS,
    linear=("x",),
    fold=("x",),
)


def plan_depth_rearrangement(
    x: TensorType, block_size: int, data_format: str, *, into_depth: bool
) -> tuple[Shape, tuple[int, ...]]:
    """Return the shape with each block on its own axes, and the permutation to apply.

    The channels of a pixel hold the cells of its block one after another, in row-major order.

    ``x``: the shape of the images; ``block_size``: the height and width of a block;
    ``data_format``: ``"NHWC"`` or ``"NCHW"``; ``into_depth``: whether blocks move into channels,
    or out of them.
    """
    n, height, width, channels = _unpack_shape(x, data_format)
    b = block_size
    if into_depth:
        rows, columns = (height // b, b), (width // b, b)
        if data_format == "NHWC":
            return (n, *rows, *columns, channels), (0, 1, 3, 2, 4, 5)
        return (n, channels, *rows, *columns), (0, 3, 5, 1, 2, 4)
    fewer = channels // (b * b)
    if data_format == "NHWC":
        return (n, height, width, b, b, fewer), (0, 1, 3, 2, 4, 5)
    return (n, b, b, fewer, height, width), (0, 3, 4, 1, 5, 2)


@chained
def batch_to_space_nd(
    x: TensorLike, block_shape: ShapeLike, crops: Sequence[Sequence[int]]
) -> Tensor:
    """Return ``x`` with parts of its batch moved into blocks of spatial cells, then cropped.

    Args:
        x: of shape ``[batch * prod(block_shape), *spatial, *rest]``, of any dtype.
        block_shape: the block's size along each of the M spatial axes.
        crops: (before, after), the cells to cut off the result along each spatial axis.

    Returns:
        A tensor of shape ``[batch, *(spatial * block_shape - crops), *rest]``.

    Raises:
        ShapeError: the batch is not a multiple of the block, or the crops are larger than an axis.

    Source: TensorFlow's BatchToSpaceND.

    Examples:
        >>> x = tp.reshape(tp.arange(4), (4, 1, 1))
        >>> tp.batch_to_space_nd(x, (2, 2), [(0, 0), (0, 0)])
        Tensor([[[0, 1],
                 [2, 3]]], dtype=int32, device='cpu')
        >>> tp.batch_to_space_nd(x, (2, 2), [(0, 1), (0, 0)])
        Tensor([[[0, 1]]], dtype=int32, device='cpu')

    """
    return dispatch(BATCH_TO_SPACE_ND, x, block_shape=block_shape, crops=crops)


@chained
def space_to_batch_nd(
    x: TensorLike, block_shape: ShapeLike, paddings: Sequence[Sequence[int]]
) -> Tensor:
    """Return ``x`` padded with zeros, with the cells of each block moved into the batch.

    It is the inverse of ``batch_to_space_nd``. A convolution between the two is a dilated one.

    Args:
        x: of shape ``[batch, *spatial, *rest]``, of any dtype. Strings are padded with "".
        block_shape: the block's size along each of the M spatial axes.
        paddings: (before, after), the cells to add first along each spatial axis.

    Returns:
        A tensor of shape ``[batch * prod(block_shape), *(padded / block_shape), *rest]``.

    Raises:
        ShapeError: a padded axis is not a multiple of the block.

    Source: TensorFlow's SpaceToBatchND.

    Examples:
        >>> image = tp.asarray([[[0, 1], [2, 3]]])
        >>> tp.space_to_batch_nd(image, (2, 2), [(0, 0), (0, 0)]).shape
        (4, 1, 1)
        >>> signal = tp.asarray([[1, 2, 3]])
        >>> tp.space_to_batch_nd(signal, [2], [(0, 1)])  # even places, odd places
        Tensor([[1, 3],
                [2, 0]], dtype=int32, device='cpu')

    """
    return dispatch(SPACE_TO_BATCH_ND, x, block_shape=block_shape, paddings=paddings)


@chained
def depth_to_space(x: TensorLike, block_size: int, data_format: DataFormat = "NHWC") -> Tensor:
    """Return images with parts of their channels moved into blocks of pixels.

    Args:
        x: images of shape ``[n, height, width, channels]``; the channels come second for "NCHW".
        block_size: height and width of a block, b. Channel ``(i * b + j) * c + k`` of a pixel
            becomes channel k, of c, at row i and column j of its block.
        data_format: "NHWC" or "NCHW".

    Returns:
        Images of shape ``[n, height * b, width * b, channels / b**2]``.

    Raises:
        ShapeError: the rank is not 4, or the channels are not a multiple of ``b**2``.
        ArgumentError: an unknown ``data_format``, or a block size below 1.

    Source: TensorFlow's DepthToSpace.

    Examples:
        >>> x = tp.asarray([[[[1, 2, 3, 4]]]])
        >>> x.shape
        (1, 1, 1, 4)
        >>> tp.depth_to_space(x, 2)[0, :, :, 0]
        Tensor([[1, 2],
                [3, 4]], dtype=int32, device='cpu')

    """
    return dispatch(DEPTH_TO_SPACE, x, block_size=block_size, data_format=data_format)


@chained
def space_to_depth(x: TensorLike, block_size: int, data_format: DataFormat = "NHWC") -> Tensor:
    """Return images with blocks of pixels moved into channels: the inverse of ``depth_to_space``.

    ``x``: images; ``block_size``: the height and width of a block.

    Raises:
        ShapeError: the rank is not 4, or height and width are not a multiple of the block.
        ArgumentError: an unknown ``data_format``, or a block size below 1.

    Source: TensorFlow's SpaceToDepth.

    Examples:
        >>> x = tp.reshape(tp.asarray([[1, 2], [3, 4]]), (1, 2, 2, 1))
        >>> tp.space_to_depth(x, 2)
        Tensor([[[[1, 2, 3, 4]]]], dtype=int32, device='cpu')
        >>> tp.space_to_depth(tp.zeros((8, 3, 32, 32)), 4, "NCHW").shape
        (8, 48, 8, 8)

    """
    return dispatch(SPACE_TO_DEPTH, x, block_size=block_size, data_format=data_format)
