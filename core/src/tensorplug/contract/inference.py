"""Inference rules for output types that many specs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import TensorType
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType

__all__ = ["broadcast", "broadcast_bool", "of_one_shape", "reduced", "same", "same_shape"]


def same(x: TensorType) -> TensorType:
    """Infer the type of the one input."""
    return x


def same_shape(dtype: DType) -> Callable[[TensorType], TensorType]:
    """Return a rule for one input: the output has its shape, and ``dtype``."""

    def infer(x: TensorType) -> TensorType:
        return TensorType(dtype, x.shape)

    return infer


def of_one_shape(first: str, second: str) -> Callable[[TensorType, TensorType], TensorType]:
    """Return a rule for two inputs of the same type, which is also the output's.

    ``first`` and ``second`` are the inputs' names in error messages.
    """

    def infer(a: TensorType, b: TensorType) -> TensorType:
        if a.shape != b.shape:
            raise ShapeError(f"{first} and {second} must have the same shape")
        return a

    return infer


def broadcast(a: TensorType, b: TensorType) -> TensorType:
    """Infer the broadcast shape of two inputs of the same dtype."""
    return TensorType(a.dtype, shapes.broadcast(a.shape, b.shape))


def broadcast_bool(a: TensorType, b: TensorType) -> TensorType:
    """Infer a boolean output of the inputs' broadcast shape."""
    return TensorType(dt.bool_, shapes.broadcast(a.shape, b.shape))


def reduced(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    """Infer the input's type reduced along ``axis``."""
    return TensorType(x.dtype, shapes.reduce(x.shape, axis, keep_dims=keep_dims))
