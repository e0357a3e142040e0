"""Shapes and axes of tensors, changed without arithmetic: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract.arguments import flag, quoted
from tensorplug.contract.extents import has_extents
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_unary
from tensorplug.errors import CopyNeededError, ShapeError
from tensorplug.ops.extents import SLICE
from tensorplug.ops.joining import CONCAT

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import Axis, ShapeLike, TensorLike

__all__ = [
    "broadcast_to",
    "expand_dims",
    "identity",
    "matrix_transpose",
    "permute_dims",
    "reshape",
    "squeeze",
]

IDENTITY = KernelSpec("Identity", ("x",), inference.same, expression=lambda x: x, linear=("x",))


def _infer_reshape(x: TensorType, *, shape: Shape) -> TensorType:
    return TensorType(x.dtype, shape)


def _read_target_shape(value: Any, types: InputTypes) -> Shape:
    target, x = shapes.as_ints(value, "shape"), types["x"]
    # In a trace, a shape with extents is read again at other sizes.
    follows = -1 in target or has_extents(target)
    return shapes.reshape(x.sizes if follows else x.shape, target)


RESHAPE = KernelSpec(
    "Reshape",
    ("x",),
    _infer_reshape,
    attributes={"shape": Attribute(_read_target_shape, form="tuple of ints >= 0")},
    linear=("x",),
)


def _infer_expand_dims(input: TensorType, *, dim: int) -> TensorType:
    return TensorType(input.dtype, (*input.shape[:dim], 1, *input.shape[dim:]))


EXPAND_DIMS = KernelSpec(
    "ExpandDims",
    ("input",),
    _infer_expand_dims,
    attributes={"dim": attributes.axis("input", 0, extra=1)},
    linear=("input",),
    leading=("dim",),
)


def _infer_transpose(x: TensorType, *, perm: tuple[int, ...]) -> TensorType:
    return TensorType(x.dtype, tuple(x.shape[axis] for axis in perm))


def _read_permutation(value: Any, types: InputTypes) -> tuple[int, ...]:
    rank: int = types["x"].rank
    if value is None:
        return tuple(reversed(range(rank)))
    axes = shapes.as_ints(value, "perm")
    perm = tuple(shapes.normalize_axis(axis, rank) for axis in axes)
    if sorted(perm) != list(range(rank)):
        raise ShapeError(f"{list(axes)} is not a permutation of {rank} axes")
    return perm


TRANSPOSE = KernelSpec(
    "Transpose",
    ("x",),
    _infer_transpose,
    attributes={
        "perm": Attribute(
            _read_permutation, None, "tuple of all ints in [0, rank of x); None reverses the axes"
        )
    },
    linear=("x",),
)


def _infer_broadcast_to(x: TensorType, *, shape: Shape) -> TensorType:
    if shapes.broadcast(x.shape, shape) != shape:
        raise ShapeError(f"shape {list(x.shape)} does not broadcast to {list(shape)}")
    return TensorType(x.dtype, shape)


def _read_input_shape(value: Any, known: InputTypes) -> Shape:
    shape: Shape = known["x"].sizes
    if value is not None and shapes.as_shape(value) != shape:
        raise ShapeError(f"must be the shape of x, {list(shape)}, got {quoted(value)}")
    return shape


BROADCAST_TO = KernelSpec(
    "BroadcastTo",
    ("x",),
    _infer_broadcast_to,
    attributes={
        "shape": attributes.shape(),
        "input_shape": Attribute(_read_input_shape, None, "the shape of x"),
    },
    expression=lambda x: x,
    linear=("x",),
    elementwise=False,
)


def identity(x: TensorLike, /) -> Tensor:
    """Return ``x`` as a new tensor that shares its data.

    (TensorFlow's Identity. NumPy's ``identity``, a matrix, is ``eye``.)

    Examples:
        >>> tp.identity([1, 2])
        Tensor([1, 2], dtype=int32, device='cpu')

    """
    return dispatch_unary(IDENTITY, x)


@chained
def reshape(x: TensorLike, /, shape: ShapeLike, *, copy: bool | None = None) -> Tensor:
    """Return ``x`` with another shape; the elements keep their row-major order.

    Args:
        x: a tensor of any dtype.
        shape: the sizes. One of them may be -1, which stands for the size that keeps the number
            of elements.
        copy: True always copies. False raises an error if a copy is necessary. By default
            the data is shared if possible.

    Raises:
        ShapeError: the number of elements differs.
        CopyNeededError: ``copy=False``, but the device would have to copy.

    Source: the array API standard.

    Examples:
        >>> x = tp.arange(6)
        >>> tp.reshape(x, (2, 3))
        Tensor([[0, 1, 2],
                [3, 4, 5]], dtype=int32, device='cpu')
        >>> x.reshape((3, -1)).shape
        (3, 2)
        >>> tp.reshape(x, (4, 2))
        Traceback (most recent call last):
            ...
        tensorplug.errors.ShapeError: ...cannot reshape [6] of 6 elements to [4, 2] of 8

    """
    if copy is None:
        return dispatch(RESHAPE, x, shape=shape)
    flag(copy, "reshape: copy")
    tensor = as_tensor(x, what="reshape: x")
    result = dispatch(RESHAPE, tensor, shape=shape)
    shared = _identify_memory(result) == _identify_memory(tensor)
    if not copy and not shared and result.size:
        raise CopyNeededError(f"reshape: {tensor.type} must be copied; leave copy=False out")
    if copy:
        return _copy(result) if shared else result
    return result


def _identify_memory(tensor: Tensor) -> Any:
    """Return an identifier of the memory of the elements."""
    return tensor._live().backend.allocation(tensor._buffer)[0]


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy in other memory, by a concatenation of one tensor."""
    flat = dispatch(RESHAPE, tensor, shape=(tensor.size,))
    nothing = dispatch(SLICE, flat, begin=(0,), size=(0,))
    return dispatch(RESHAPE, dispatch(CONCAT, [flat, nothing]), shape=tensor.shape)


@chained
def permute_dims(x: TensorLike, /, axes: Axis | None = None) -> Tensor:
    """Return ``x`` with its axes in the order ``axes`` (reversed by default).

    Axis i of the result is axis ``axes[i]`` of ``x``. (The array API standard's ``permute_dims``,
    which requires ``axes``; NumPy's transpose.)

    Raises:
        ShapeError: ``axes`` does not name every axis once.

    Examples:
        >>> tp.permute_dims([[1, 2, 3], [4, 5, 6]])
        Tensor([[1, 4],
                [2, 5],
                [3, 6]], dtype=int32, device='cpu')
        >>> images = tp.zeros((8, 3, 32, 64))
        >>> images.permute_dims((0, 2, 3, 1)).shape
        (8, 32, 64, 3)

    """
    return dispatch(TRANSPOSE, x, perm=axes)


def matrix_transpose(x: TensorLike, /, *, rank: int | None = None) -> Tensor:
    """Return ``x`` with its last two axes swapped.

    ``rank`` checks the number of axes. (The array API standard's ``matrix_transpose``.)

    Raises:
        ShapeError: there are fewer than two axes, or not ``rank`` axes if it is not None.

    Examples:
        >>> tp.matrix_transpose([[1, 2, 3], [4, 5, 6]])
        Tensor([[1, 4],
                [2, 5],
                [3, 6]], dtype=int32, device='cpu')
        >>> tp.matrix_transpose(tp.zeros((5, 2, 3))).shape
        (5, 3, 2)

    """
    tensor = as_tensor(x, what="matrix_transpose: x")
    if rank is not None and type(rank) is not int:
        rank = shapes.index(rank, "matrix_transpose: rank")
    if tensor.ndim < 2 or (rank is not None and tensor.ndim != rank):
        expected = f"rank {quoted(rank)}" if rank else "at least rank 2"
        raise ShapeError(f"matrix_transpose: x must have {expected}, got {tensor.type}")
    leading = range(tensor.ndim - 2)
    return permute_dims(tensor, (*leading, tensor.ndim - 1, tensor.ndim - 2))


@chained
def expand_dims(x: TensorLike, /, axis: Axis = 0) -> Tensor:
    """Return ``x`` with new axes of length 1.

    Args:
        x: a tensor of any dtype.
        axis: their position in the result, or a tuple of positions. (TensorFlow's ExpandDims.)

    Raises:
        ShapeError: a position is out of range or named twice.

    Examples:
        >>> tp.expand_dims([1, 2, 3])
        Tensor([[1, 2, 3]], dtype=int32, device='cpu')
        >>> tp.expand_dims([1, 2, 3], -1).shape
        (3, 1)
        >>> tp.expand_dims(tp.zeros((4, 5)), (0, 2)).shape
        (1, 4, 1, 5)

    """
    if not isinstance(axis, list | tuple):
        return dispatch(EXPAND_DIMS, x, dim=axis)
    tensor = as_tensor(x, what="expand_dims: x")
    rank = tensor.ndim + len(axis)
    new = shapes.distinct_axes(axis, rank, f"expand_dims of {tensor.type}: axis")
    sizes = iter(tensor.shape)
    return reshape(tensor, tuple(1 if at in new else next(sizes) for at in range(rank)))


@chained
def squeeze(x: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Return ``x`` without the axes ``axis`` of length 1; by default without all such axes.

    Raises:
        ShapeError: one of them has another length.

    Source: the array API standard.

    Examples:
        >>> x = tp.zeros((1, 3, 1))
        >>> tp.squeeze(x).shape
        (3,)
        >>> tp.squeeze(x, axis=0).shape
        (3, 1)
        >>> tp.squeeze(x, axis=1)
        Traceback (most recent call last):
            ...
        tensorplug.errors.ShapeError: squeeze: axis 1 of float32[1,3,1] must have length 1

    """
    tensor = as_tensor(x, what="squeeze: x")
    if axis is None:
        return reshape(tensor, tuple(size for size in tensor.shape if size != 1))
    axes = shapes.normalize_axes(axis, tensor.ndim, f"squeeze of {tensor.type}: axis")
    for dropped in axes:
        if tensor.shape[dropped] != 1:
            raise ShapeError(f"squeeze: axis {dropped} of {tensor.type} must have length 1")
    return reshape(tensor, shapes.reduce(tensor.shape, axes, keep_dims=False))


@chained
def broadcast_to(x: TensorLike, /, shape: ShapeLike) -> Tensor:
    """Return ``x`` repeated along axes of length 1, and along new axes in front, to ``shape``.

    Source: the array API standard.

    Raises:
        ShapeError: ``x`` does not broadcast to ``shape``.

    Examples:
        >>> tp.broadcast_to([1, 2, 3], (2, 3))
        Tensor([[1, 2, 3],
                [1, 2, 3]], dtype=int32, device='cpu')
        >>> tp.broadcast_to([[1], [2]], (2, 3))
        Tensor([[1, 1, 1],
                [2, 2, 2]], dtype=int32, device='cpu')

    """
    return dispatch(BROADCAST_TO, x, shape=shape)
