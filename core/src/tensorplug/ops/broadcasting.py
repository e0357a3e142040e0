"""Broadcasting, grids, checks of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import choice, quoted
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.movement import broadcast_to, reshape

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

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


def broadcast_args(s0: Any, s1: Any) -> Tensor:
    """Return the shape to which two shapes broadcast; all three are vectors of integers.

    ``broadcast_shapes`` does the same for tuples.

    Raises:
        ShapeError: the shapes do not broadcast, or are not vectors.

    (TensorFlow's BroadcastArgs.)

    """
    return dispatch(BROADCAST_ARGS, s0, s1)


def broadcast_shapes(*all_shapes: Any) -> Shape:
    """Return the shape to which shapes (tuples or lists of sizes) broadcast; ``()`` by default.

    Raises:
        ShapeError: they do not broadcast, or a size is negative.

    """
    return shapes.broadcast(
        *(shapes.as_shape(shape, "broadcast_shapes: shape") for shape in all_shapes)
    )


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Return the tensors broadcast to their common shape.

    Raises:
        ShapeError: their shapes do not broadcast.

    """
    tensors = [as_tensor(array, what="broadcast_arrays: an argument") for array in arrays]
    try:
        shape = shapes.broadcast(*(tensor.shape for tensor in tensors))
    except ShapeError as error:
        raise ShapeError(f"broadcast_arrays: {error}") from None
    return tuple(broadcast_to(tensor, shape) for tensor in tensors)


def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, one tensor for each vector of coordinates.

    Args:
        *arrays: vectors or numbers; their dtypes may differ.
        indexing: "ij": the i-th vector runs along axis i. "xy": the first runs along axis 1
            and the second along axis 0, as columns and rows do.

    Returns:
        As many tensors as vectors, of shape ``[n0, n1, ...]``, for "xy" ``[n1, n0, ...]``.

    Raises:
        ShapeError: an array has a rank above 1.
        ArgumentError: an unknown ``indexing``.

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


def ensure_shape(x: Any, shape: Any) -> Tensor:
    """Return ``x`` after checking its shape; None in ``shape`` stands for any size.

    Raises:
        ShapeError: ``x`` has another shape.

    (TensorFlow's EnsureShape.)

    """
    tensor = as_tensor(x, what="ensure_shape: x")
    if shape is not None and not isinstance(shape, list | tuple):
        raise ArgumentError(f"ensure_shape: shape must be a list of sizes, got {quoted(shape)}")
    wanted = tensor.shape if shape is None else tuple(shape)
    fits = len(wanted) == tensor.ndim and all(
        size is None or size == own for size, own in zip(wanted, tensor.shape, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"ensure_shape: x is {tensor.type}, but must have shape {quoted(list(wanted))}"
        )
    return tensor
