"""Joining tensors along an axis, or along a new one: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import TensorLike


__all__ = ["concat", "stack"]


def _infer_concat(xs: list[TensorType], *, axis: int) -> TensorType:
    if not xs:
        raise ArgumentError("xs is empty")
    first = xs[0]
    for x in xs[1:]:
        if x.dtype is not first.dtype:
            raise DTypeError(f"xs must have the same dtype, got {first.dtype} and {x.dtype}")
        same = x.rank == first.rank and all(
            a == b
            for at, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))
            if at != axis
        )
        if not same:
            raise ShapeError(
                f"xs must have the same sizes outside axis {axis}, got {first} and {x}"
            )
    total = sum(x.shape[axis] for x in xs)
    return TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


CONCAT = KernelSpec(
    "Concat",
    ("xs[]",),
    _infer_concat,
    attributes={"axis": attributes.axis("xs", 0)},
    promote=("xs",),
    linear=("xs",),
    leading=("axis",),
)


def _infer_pack(xs: list[TensorType], *, axis: int) -> TensorType:
    first = xs[0]
    for x in xs[1:]:
        if x.dtype is not first.dtype:
            raise DTypeError(f"xs must have the same dtype, got {first.dtype} and {x.dtype}")
        if x.shape != first.shape:
            raise ShapeError(f"xs must have the same shape, got {first} and {x}")
    shape = first.shape
    return TensorType(first.dtype, (*shape[:axis], len(xs), *shape[axis:]))


PACK = KernelSpec(
    "Pack",
    ("xs[]",),
    _infer_pack,
    attributes={"axis": attributes.axis("xs", 0, extra=1)},
    promote=("xs",),
    linear=("xs",),
    leading=("axis",),
)


def concat(xs: Sequence[TensorLike], /, axis: int | None = 0) -> Tensor:
    """Return the tensors ``xs`` joined along ``axis`` (flattened first if it is None).

    Their other sizes must be equal; their dtypes are promoted. (The array API standard's
    ``concat``.)

    Raises:
        ShapeError: the ranks or other sizes differ.
        DTypeError: the dtypes have no common dtype.
        ArgumentError: ``xs`` is not a list or tuple, or is empty.

    Examples:
        >>> tp.concat([[1, 2], [3.5]])
        Tensor([1. , 2. , 3.5], dtype=float32, device='cpu')
        >>> tp.concat([tp.zeros((2, 3)), tp.ones((2, 1))], axis=1)
        Tensor([[0., 0., 0., 1.],
                [0., 0., 0., 1.]], dtype=float32, device='cpu')
        >>> tp.concat([[[1, 2]], [[3]]], axis=None)
        Tensor([1, 2, 3], dtype=int32, device='cpu')

    """
    listed = _check_list(xs, "concat")
    if axis is None:
        flat = [as_tensor(x, what="concat: xs").reshape(-1) for x in listed]
        return dispatch(CONCAT, flat, axis=0)
    return dispatch(CONCAT, listed, axis=axis)


def stack(xs: Sequence[TensorLike], /, axis: int = 0) -> Tensor:
    """Return the tensors ``xs``, which have the same shape, joined along a new axis.

    Their dtypes are promoted. ``axis`` is the position of the new axis in the result. (The array
    API standard's ``stack``, TensorFlow's Pack.)

    Raises:
        ShapeError: the shapes differ.
        DTypeError: the dtypes have no common dtype.
        ArgumentError: ``xs`` is not a list or tuple, or is empty.

    Examples:
        >>> tp.stack([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], dtype=int32, device='cpu')
        >>> tp.stack([[1, 2], [3, 4]], axis=-1)
        Tensor([[1, 3],
                [2, 4]], dtype=int32, device='cpu')

    """
    return dispatch(PACK, _check_list(xs, "stack"), axis=axis)


def _check_list(xs: object, caller: str) -> list[Any]:
    if not isinstance(xs, list | tuple):
        raise ArgumentError(f"{caller}: xs must be a list of tensors, got {type(xs).__name__}")
    if not xs:
        raise ArgumentError(f"{caller}: xs must contain at least one tensor, got an empty list")
    return list(xs)
