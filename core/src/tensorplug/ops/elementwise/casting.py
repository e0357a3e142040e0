"""Conversion of tensors to another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.contract.expressions import cast
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    as_tensor,
    chained,
    dispatch,
    dispatch_unary,
    run_on,
)
from tensorplug.errors import DTypeError
from tensorplug.ops.elementwise.arithmetic import maximum, minimum
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.movement import IDENTITY

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DTypeLike, TensorLike


__all__ = ["astype"]


def _infer_cast(x: TensorType, *, dtype: DType) -> TensorType:
    return TensorType(dtype, x.shape)


CAST = KernelSpec(
    "Cast",
    ("x",),
    _infer_cast,
    attributes={"dtype": attributes.dtype(stored=True)},
    accepts=dt.FIXED | dt.STORAGE,
    expression=lambda x, *, dtype: cast(x, dtype),
    exact=True,
    linear=("x",),
)


@chained
def astype(
    x: TensorLike,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: str | None = None,
    saturate: bool = False,
) -> Tensor:
    """Return ``x`` with its elements converted to ``dtype``.

    Floats are truncated towards zero to become integers. Values that do not fit wrap; NaN and
    infinities give 0. Nonzero values become True. Complex numbers lose their imaginary part to
    become real. Floats are rounded to the nearest one of fewer digits, ties to the even one; too
    large a number becomes infinite, or NaN in float8 dtypes without infinities.

    Args:
        x: a tensor of numbers or booleans; strings can only stay strings.
        dtype: of the result.
        copy: False returns ``x`` itself if it already has the dtype and the device.
        device: of the result; by default that of ``x``.
        saturate: True gives the least or the greatest finite number of ``dtype`` for numbers
            beyond it, infinities too.

    Raises:
        DTypeError: strings; complex numbers with ``saturate``.

    Source: the array API standard.

    Examples:
        >>> tp.astype([1.7, -1.7, np.nan], "int32")
        Tensor([ 1, -1,  0], dtype=int32, device='cpu')
        >>> tp.astype([300.0, -5.0], "uint8")
        Tensor([ 44, 251], dtype=uint8, device='cpu')
        >>> tp.astype([300.0, -5.0], "uint8", saturate=True)
        Tensor([255,   0], dtype=uint8, device='cpu')
        >>> tp.astype([0.1], "bfloat16")
        Tensor([0.1001], dtype=bfloat16, device='cpu')

    """
    result_dtype = dt.of(dtype, "astype")
    flag(copy, "astype: copy")
    if saturate is not False and flag(saturate, "astype: saturate"):
        return _saturated(x, result_dtype, device)

    def converted() -> Tensor:
        tensor: Any = x if copy else as_tensor(x, what="astype: x")
        if not copy and tensor.dtype is result_dtype:
            same: Tensor = tensor
            return same
        if result_dtype is dt.string:  # Cast is of numbers
            if not hasattr(tensor, "_placement"):
                tensor = as_tensor(tensor, what="astype: x")
            if tensor.dtype is result_dtype:
                return dispatch_unary(IDENTITY, tensor)
        return dispatch(CAST, tensor, dtype=result_dtype)

    return converted() if device is None else run_on(device, converted)


def _saturated(x: Any, dtype: DType, device: str | None) -> Tensor:
    tensor = as_tensor(x, what="astype: x")
    if tensor.dtype in dt.COMPLEX or "string" in (tensor.dtype.kind, dtype.kind):
        raise DTypeError(f"astype: saturate is for real numbers, got {tensor.type} for {dtype}")
    if tensor.dtype in dt.STORAGE:
        tensor = astype(tensor, dt.unpacked(tensor.dtype))
    if tensor.dtype in dt.BOOL or dtype in dt.BOOL | dt.COMPLEX:
        return astype(tensor, dtype, device=device)
    if dtype in dt.WHOLE and tensor.dtype in dt.FLOATING:
        clipped = where(tensor <= float(dtype.min), dtype.min, astype(tensor, dtype))
        # Powers of 2 are exact in any float, or infinite.
        clipped = where(tensor >= float(dtype.max + 1), dtype.max, clipped)
        return astype(clipped, dtype, device=device)
    if tensor.dtype in dt.INTEGER and dtype in dt.STORAGE - dt.WHOLE:
        tensor = astype(tensor, dt.unpacked(dtype))
    elif dtype in dt.FLOATING and dtype.max > tensor.dtype.max:
        tensor = astype(tensor, dtype)
    low, high = max(dtype.min, tensor.dtype.min), min(dtype.max, tensor.dtype.max)
    return astype(minimum(maximum(tensor, low), high), dtype, device=device)
