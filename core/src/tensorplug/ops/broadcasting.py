"""Broadcasting, grids, checks of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import choice, quoted
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.movement import broadcast_to, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, ShapeLike, TensorLike

__all__ = [
    "broadcast_args",
    "broadcast_arrays",
    "broadcast_shapes",
    "ensure_shape",
    "meshgrid",
]


def _infer_broadcast_args(s0: TensorType, s1: TensorType) -> TensorType:
    for name, sizes in (("s0", s0), ("s1", s1)):
        if sizes.rank != 1:
            raise ShapeError(f"{name} must be a vector of sizes, got {sizes}")
    return TensorType(s0.dtype, (max(s0.size, s1.size),))


BROADCAST_ARGS = KernelSpec(
    "BroadcastArgs", ("s0", "s1"), _infer_broadcast_args, accepts=dt.INTEGER, promote=("s0", "s1")
)


def broadcast_args(s0: ArrayLike, s1: ArrayLike) -> Tensor:
    """Return the shape to which two shapes broadcast; all three are vectors of integers.

    ``broadcast_shapes`` does the same for tuples.

    ``s0``: the first shape; ``s1``: the second one.

    Raises:
        ShapeError: the shapes do not broadcast, or are not vectors.
        DTypeError: they are not integers.

    Source: TensorFlow's BroadcastArgs.

    Examples:
        >>> tp.broadcast_args([2, 1, 3], [4, 1])
        Tensor([2, 4, 3], dtype=int32, device='cpu')

    """
    return dispatch(BROADCAST_ARGS, s0, s1)


def broadcast_shapes(*all_shapes: ShapeLike) -> Shape:
    """Return the shape to which shapes (tuples or lists of sizes) broadcast; ``()`` by default.

    ``all_shapes``: any number of shapes.

    Raises:
        ShapeError: they do not broadcast, or a size is negative.

    Source: the array API standard; NumPy's broadcast_shapes.

    Examples:
        >>> tp.broadcast_shapes((2, 1, 3), (4, 1))
        (2, 4, 3)
        >>> tp.broadcast_shapes((5, 1), ())
        (5, 1)

    """
    return shapes.broadcast(
        *(shapes.as_shape(shape, "broadcast_shapes: shape") for shape in all_shapes)
    )


def broadcast_arrays(*arrays: TensorLike) -> tuple[Tensor, ...]:
    """Return the tensors, of any dtypes, broadcast to their common shape.

    ``arrays``: tensors, or what becomes a tensor.

    Raises:
        ShapeError: their shapes do not broadcast.

    Source: the array API standard.

    Examples:
        >>> columns, rows = tp.broadcast_arrays([1, 2, 3], [[10], [20]])
        >>> columns
        Tensor([[1, 2, 3],
                [1, 2, 3]], dtype=int32, device='cpu')
        >>> rows
        Tensor([[10, 10, 10],
                [20, 20, 20]], dtype=int32, device='cpu')

    """
    tensors = [as_tensor(array, what="broadcast_arrays: an argument") for array in arrays]
    try:
        shape = shapes.broadcast(*(tensor.shape for tensor in tensors))
    except ShapeError as error:
        raise ShapeError(f"broadcast_arrays: {error}") from None
    return tuple(broadcast_to(tensor, shape) for tensor in tensors)


def meshgrid(*arrays: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, one tensor for each vector of coordinates.

    Args:
        *arrays: vectors or numbers; their dtypes may differ.
        indexing: "ij": the i-th vector runs along axis i. "xy": the first runs along axis 1
            and the second along axis 0, as columns and rows do.

    Returns:
        One tensor per vector, of shape ``[n0, n1, ...]``, or ``[n1, n0, ...]`` for "xy".

    Raises:
        ShapeError: an array has a rank above 1.
        ArgumentError: an unknown ``indexing``.

    Source: the array API standard.

    Examples:
        >>> x, y = tp.meshgrid([1, 2, 3], [10, 20])
        >>> x
        Tensor([[1, 2, 3],
                [1, 2, 3]], dtype=int32, device='cpu')
        >>> y
        Tensor([[10, 10, 10],
                [20, 20, 20]], dtype=int32, device='cpu')
        >>> [part.shape for part in tp.meshgrid([1, 2, 3], [10, 20], indexing="ij")]
        [(3, 2), (3, 2)]

    """
    choice(indexing, ("xy", "ij"), "meshgrid: indexing")
    tensors = [as_tensor(array, what="meshgrid: an argument") for array in arrays]
    for tensor in tensors:
        if tensor.ndim > 1:
            raise ShapeError(
                f"meshgrid: each argument must be a vector or a number, got {tensor.type}"
            )
    places = list(range(len(tensors)))
    if indexing == "xy":
        places[:2] = places[:2][::-1]
    shape = [1] * len(tensors)
    for tensor, place in zip(tensors, places, strict=True):
        shape[place] = tensor.size
    return tuple(
        broadcast_to(
            reshape(tensor, tuple(tensor.size if at == place else 1 for at in range(len(places)))),
            tuple(shape),
        )
        for tensor, place in zip(tensors, places, strict=True)
    )


def ensure_shape(x: TensorLike, shape: Sequence[int | None] | None) -> Tensor:
    """Return ``x`` after checking its shape; None in ``shape`` stands for any size.

    Raises:
        ShapeError: ``x`` has another shape.
        ArgumentError: ``shape`` is not a list of sizes.

    Source: TensorFlow's EnsureShape.

    Examples:
        >>> batch = tp.zeros((8, 28, 28))
        >>> tp.ensure_shape(batch, (None, 28, 28)).shape
        (8, 28, 28)

    """
    tensor = as_tensor(x, what="ensure_shape: x")
    if shape is not None and not isinstance(shape, list | tuple):
        raise ArgumentError(f"ensure_shape: shape must be a list of sizes, got {quoted(shape)}")
    expected = tensor.shape if shape is None else tuple(shape)
    fits = len(expected) == tensor.ndim and all(
        size is None or size == own for size, own in zip(expected, tensor.shape, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"ensure_shape: x is {tensor.type}, but must have shape {quoted(list(expected))}"
        )
    return tensor
