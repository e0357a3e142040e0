"""Operators whose outputs depend on attributes, shapes and numbers on the host alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.operators.casting import dtype_name
from tensorplug_onnx.rules import rule
from tensorplug_onnx.values import dtype_of, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_onnx.values import Host


@rule("Constant")
def constant(
    *,
    value: Host | None = None,
    sparse_value: Host | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Host:
    given: tuple[tuple[Any, Any], ...] = (
        (value, None),
        (sparse_value, None),
        (value_int, np.int64),
        (value_ints, np.int64),
        (value_float, np.float32),
        (value_floats, np.float32),
        (value_string, np.dtypes.StringDType()),
        (value_strings, np.dtypes.StringDType()),
    )
    found = [np.asarray(one, dtype) for one, dtype in given if one is not None]
    if len(found) != 1:
        raise ValueError(f"{len(found)} values are given, must be one")
    return found[0]


@rule("ConstantOfShape", host=[0])
def constant_of_shape(shape: Host, *, value: Host | None = None) -> Host:
    filling = np.zeros(1, np.float32) if value is None else value
    return np.full(tuple(shape.tolist()), filling.reshape(()), filling.dtype)


@rule("Shape", raw=True)
def shape_of(x: Any, *, start: int = 0, end: int | None = None) -> Host:
    return np.array(x.shape[start:end], np.int64)


@rule("Size", raw=True)
def size_of(x: Any) -> Host:
    return np.array(math.prod(x.shape), np.int64)


@rule("EyeLike", raw=True)
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Host:
    rows, columns = x.shape
    name = dtype_of(x) if dtype is None else dtype_name(dtype)
    return np.eye(rows, columns, k).astype(to_numpy_dtype(name))


@rule("Range", host=None)
def range_of(start: Host, limit: Host, delta: Host, *, stash_type: int = 1) -> Host:
    """Floats of 16 bits are computed with 32, which ``stash_type`` allows to say."""
    if stash_type != 1:
        raise ValueError(f"stash_type is {stash_type}, must be 1 (float)")
    dtype = start.dtype
    first, last, step = (one.reshape(()).tolist() for one in (start, limit, delta))
    if not step:
        raise ValueError("delta is 0")
    if isinstance(step, int):
        return np.arange(first, last, step).astype(dtype)
    count = max(math.ceil((last - first) / step), 0)
    computed = dtype if dtype.itemsize > 2 else np.dtype(np.float32)  # bytes
    found: Host = computed.type(first) + np.arange(count).astype(computed) * computed.type(step)
    return found.astype(dtype)
