"""Rules that many specs share for the shape and dtype of their output."""

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
    """One input; the output is of its type."""
    return x


def same_shape(dtype: DType) -> Callable[[TensorType], TensorType]:
    """One input; the output has its shape and ``dtype``."""

    def infer(x: TensorType) -> TensorType:
        return TensorType(dtype, x.shape)

    return infer


def of_one_shape(first: str, second: str) -> Callable[[TensorType, TensorType], TensorType]:
    """Two inputs, called so in messages, of one dtype and shape; the output is of their type."""

    def infer(a: TensorType, b: TensorType) -> TensorType:
        if a.shape != b.shape:
            raise ShapeError(f"{first} and {second} must have one shape")
        return a

    return infer


def broadcast(a: TensorType, b: TensorType) -> TensorType:
    """Two inputs of one dtype (promoted before); the output has their broadcast shape."""
    return TensorType(a.dtype, shapes.broadcast(a.shape, b.shape))


def broadcast_bool(a: TensorType, b: TensorType) -> TensorType:
    """Two inputs; the output is boolean of their broadcast shape."""
    return TensorType(dt.bool_, shapes.broadcast(a.shape, b.shape))


def reduced(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    """One input, reduced along ``axis``; the dtype stays."""
    return TensorType(x.dtype, shapes.reduce(x.shape, axis, keep_dims=keep_dims))
