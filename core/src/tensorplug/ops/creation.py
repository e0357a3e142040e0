"""Tensors made from attributes alone, or from the type of another tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import attributes, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import constant
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    as_tensor,
    dispatch,
    dispatch_unary,
    is_here,
    run_near,
    run_on,
)
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops.conversion import asarray
from tensorplug.ops.movement import BROADCAST_TO

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import (
        ArrayLike,
        DTypeLike,
        Operand,
        ShapeLike,
        TensorLike,
    )

__all__ = [
    "asarray",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def _infer_fill(*, shape: Shape, value: Scalar | str, dtype: DType) -> TensorType:
    if isinstance(value, str):
        if dtype is not dt.string:
            raise DTypeError(f"{value!r} cannot become {dtype}")
    else:
        dt.check_number(value, dtype)
    return TensorType(dtype, shape)


def _read_constant(value: Any, known: InputTypes) -> Any:
    return str(value) if isinstance(value, str) else attributes.number().canonical(value, known)


def _choose_dtype(known: InputTypes) -> DType:
    value = known["value"]
    return dt.string if isinstance(value, str) else dt.of_scalar(value, None)


FILL = KernelSpec(
    "Fill",
    (),
    _infer_fill,
    attributes={
        "shape": attributes.shape(),
        "value": Attribute(_read_constant, form="bool, int, float, complex or str"),
        "dtype": attributes.optional(attributes.dtype(stored=True), _choose_dtype),
    },
    expression=lambda *, value, dtype: constant(value, dtype),
    exact=True,
)

_FIXED = dt.FIXED | dt.STORAGE
ZEROS_LIKE = KernelSpec("ZerosLike", ("x",), inference.same, accepts=_FIXED, exact=True)
ONES_LIKE = KernelSpec("OnesLike", ("x",), inference.same, accepts=_FIXED, exact=True)


def full(
    shape: ShapeLike,
    fill_value: Operand | str,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a tensor of ``shape`` filled with one number or string.

    Args:
        shape: sizes of the axes, or one size for a tensor of rank 1.
        fill_value: a number or a string, or a tensor or array of rank 0, to which gradients flow.
        dtype: by default that of a tensor or array; for a Python value the default of its kind:
            float32, int32, bool, complex64 or string.
        device: of the result; the active one by default.

    Raises:
        ShapeError: ``fill_value`` is a tensor or an array of another rank, or a size is negative.
        ArgumentError, DTypeError: it is not a number, or does not fit ``dtype``.

    Source: the array API standard.

    Examples:
        >>> tp.full((2, 3), 7)
        Tensor([[7, 7, 7],
                [7, 7, 7]], dtype=int32, device='cpu')
        >>> tp.full(2, 0.5, dtype="float64")
        Tensor([0.5, 0.5], dtype=float64, device='cpu')
        >>> tp.full(2, "n/a")
        Tensor(['n/a', 'n/a'], dtype=string, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "full")
    if isinstance(fill_value, np.ndarray) or hasattr(fill_value, "_placement"):
        return run_on(device, lambda: _spread(fill_value, shape, result_dtype))
    return run_on(
        device, lambda: dispatch(FILL, shape=shape, value=fill_value, dtype=result_dtype)
    )


def _spread(value: Any, shape: Any, dtype: DType | None) -> Tensor:
    fill = as_tensor(value, dtype, what="full: fill_value")
    if fill.ndim:
        raise ShapeError(f"full: fill_value must be one number, got {fill.type}")
    return dispatch(BROADCAST_TO, fill, shape=shape)


def zeros(
    shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return a tensor of ``shape`` filled with 0, float32 by default; of strings, with ``""``.

    ``shape`` is one size or a sequence, ``device`` the active one by default.

    ``dtype``: of the elements.

    Raises:
        ShapeError: a size is negative.

    Source: the array API standard.

    Examples:
        >>> tp.zeros((2, 3))
        Tensor([[0., 0., 0.],
                [0., 0., 0.]], dtype=float32, device='cpu')
        >>> tp.zeros(2, dtype="int64")
        Tensor([0, 0], dtype=int64, device='cpu')
        >>> tp.zeros(()).shape
        ()

    """
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, "zeros")
    return full(shape, _zero(result_dtype), dtype=result_dtype, device=device)


def _zero(dtype: DType) -> int | str:
    return "" if dtype is dt.string else 0


def ones(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return a tensor of ``shape`` filled with 1, float32 by default.

    ``shape`` is one size or a sequence, ``device`` the active one by default.

    Raises:
        ShapeError: a size is negative.
        DTypeError: ``dtype`` is string.

    Source: the array API standard.

    Examples:
        >>> tp.ones((2, 3))
        Tensor([[1., 1., 1.],
                [1., 1., 1.]], dtype=float32, device='cpu')
        >>> tp.ones(2, dtype=bool)
        Tensor([ True,  True], dtype=bool, device='cpu')

    """
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, "ones")
    return full(shape, 1, dtype=result_dtype, device=device)


def empty(
    shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return a tensor of ``shape``, filled with 0 as by ``zeros``, float32 by default.

    Tensors are immutable values, so uninitialized ones would have no use.

    ``dtype``: of the result; ``device``: the device of the result; the current one by default.

    Raises:
        ShapeError: a size is negative.

    Source: the array API standard.

    Examples:
        >>> tp.empty(3)
        Tensor([0., 0., 0.], dtype=float32, device='cpu')

    """
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, "empty")
    return full(shape, _zero(result_dtype), dtype=result_dtype, device=device)


def zeros_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return zeros with the shape of ``x``, and by default with its dtype and device.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[1, 2], [3, 4]], dtype="int8")
        >>> tp.zeros_like(x)
        Tensor([[0, 0],
                [0, 0]], dtype=int8, device='cpu')
        >>> tp.zeros_like(x, dtype="float32").dtype
        tensorplug.float32

    """
    return _fill_like(x, 0, dtype, device, "zeros_like")


def ones_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return ones with the shape of ``x``, and by default with its dtype and device.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.ones_like([[1.5, 2.5], [3.5, 4.5]])
        Tensor([[1., 1.],
                [1., 1.]], dtype=float32, device='cpu')

    """
    return _fill_like(x, 1, dtype, device, "ones_like")


def empty_like(
    x: ArrayLike, /, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return zeros with the type of ``x``, as ``zeros_like`` does.

    ``dtype``: of the result; that of ``x`` by default; ``device``: the device of the result; that
    of ``x`` by default.

    Source: the array API standard.

    Examples:
        >>> tp.empty_like([1.5, 2.5])
        Tensor([0., 0.], dtype=float32, device='cpu')

    """
    return _fill_like(x, 0, dtype, device, "empty_like")


def full_like(
    x: TensorLike,
    /,
    fill_value: Operand | str,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a filled tensor with the shape of ``x``, and by default with its dtype and device.

    ``fill_value`` is as for ``full``.

    Raises:
        ShapeError: ``fill_value`` is a tensor or an array that does not have rank 0.
        ArgumentError, DTypeError: it does not fit the dtype, such as 0.5 for integers.

    Source: the array API standard.

    Examples:
        >>> tp.full_like([[1.0, 2.0], [3.0, 4.0]], 9)
        Tensor([[9., 9.],
                [9., 9.]], dtype=float32, device='cpu')
        >>> tp.full_like([1, 2], 0.5, dtype="float32")
        Tensor([0.5, 0.5], dtype=float32, device='cpu')

    """
    shape, own = _look_up_type(x, "full_like")
    result_dtype = own if dtype is None else dt.of(dtype, "full_like")
    return run_near(x, device, lambda: full(shape, fill_value, dtype=result_dtype))


def _fill_like(x: Any, value: int, dtype: Any, device: str | None, caller: str) -> Tensor:
    if dtype is None and device is None and getattr(x, "dtype", None) is not dt.string:
        spec = ONES_LIKE if value else ZEROS_LIKE
        if is_here(x):
            return dispatch_unary(spec, x)
        return run_near(x, None, lambda: dispatch_unary(spec, x))
    shape, own = _look_up_type(x, caller)
    result_dtype = own if dtype is None else dt.of(dtype, caller)
    filling = value or _zero(result_dtype)
    return run_near(x, device, lambda: full(shape, filling, dtype=result_dtype))


def _look_up_type(x: Any, caller: str) -> tuple[Shape, DType]:
    """Return shape and dtype of ``x`` without transferring a live tensor."""
    there = getattr(x, "_placement", None)
    if there is None or there.device is None:
        there = as_tensor(x, what=f"{caller}: x")
    return there.type.shape, there.type.dtype
