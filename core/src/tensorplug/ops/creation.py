"""Tensors made from attributes alone, or from the type of another tensor."""

from __future__ import annotations

from math import ceil, isfinite, trunc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
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
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.conversion import asarray
from tensorplug.ops.movement import BROADCAST_TO, broadcast_to
from tensorplug.ops.spacing import make_integers, spread

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
        SupportsArray,
        TensorLike,
    )

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
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


def range_length(start: float, stop: float, step: float) -> int:
    """Return the number of elements of the half-open range [start, stop) with this step.

    Raises:
        ArgumentError: an argument is not a finite real number, or the step is 0.

    """
    if any(isinstance(bound, complex) or not isfinite(bound) for bound in (start, stop, step)):
        raise ArgumentError(
            f"start, stop and step must be finite real numbers, got {quoted(start)}, {stop!r}, "
            f"{step!r}"
        )
    if step == 0:
        raise ArgumentError("step must not be 0")
    return max(0, ceil((stop - start) / step))


def _find_ends(start: float, stop: float, step: float) -> tuple[float, ...]:
    """Return the first and the last number of a range, or () if it is empty."""
    count = range_length(start, stop, step)
    return (start, start + step * (count - 1)) if count else ()


def _infer_range(*, start: float, stop: float, step: float, dtype: DType) -> TensorType:
    for end in _find_ends(start, stop, step):
        if dtype in dt.INTEGER:  # all numbers between them fit too
            dt.check_number(trunc(end), dtype)
    return TensorType(dtype, (range_length(start, stop, step),))


def _read_step(value: Any, known: InputTypes) -> Any:
    """Return the step. The default, 1, becomes -1 if the range descends."""
    step = attributes.number().canonical(value, known)
    start, stop = known["start"], known["stop"]
    real = not any(isinstance(bound, complex) for bound in (start, stop))
    return -step if step == 1 and real and stop < start else step


RANGE = KernelSpec(
    "Range",
    (),
    _infer_range,
    attributes={
        "start": attributes.number(),
        "stop": attributes.number(),
        "step": Attribute(_read_step, 1, "int, float or complex; 1 becomes -1 where stop < start"),
        "dtype": attributes.dtype("float32"),
    },
)


def _infer_lin_space(*, start: Scalar, stop: Scalar, num: int, dtype: DType) -> TensorType:
    if dtype not in dt.INEXACT:
        raise DTypeError(f"dtype must be floating or complex, got {dtype}")
    for bound in (start, stop):
        dt.check_number(bound, dtype)
    return TensorType(dtype, (num,))


LIN_SPACE = KernelSpec(
    "LinSpace",
    (),
    _infer_lin_space,
    attributes={
        "start": attributes.number(),
        "stop": attributes.number(),
        "num": attributes.integer(at_least=0),
        "endpoint": attributes.flag(default=True),
        "dtype": attributes.dtype("float32"),
    },
)


def _infer_eye(*, n_rows: int, n_cols: int, dtype: DType) -> TensorType:
    if dtype is dt.string:
        raise DTypeError("dtype must not be string: an identity matrix contains numbers")
    return TensorType(dtype, (n_rows, n_cols))


EYE = KernelSpec(
    "Eye",
    (),
    _infer_eye,
    attributes={
        "n_rows": attributes.integer(at_least=0),
        "n_cols": attributes.optional(
            attributes.integer(at_least=0), lambda known: known["n_rows"]
        ),
        "k": attributes.integer(0),
        "dtype": attributes.dtype("float32"),
    },
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
    wanted = None if dtype is None else dt.of(dtype, "full")
    if isinstance(fill_value, np.ndarray) or hasattr(fill_value, "_placement"):
        return run_on(device, lambda: _spread(fill_value, shape, wanted))
    return run_on(device, lambda: dispatch(FILL, shape=shape, value=fill_value, dtype=wanted))


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
    wanted = dt.default_float if dtype is None else dt.of(dtype, "zeros")
    return full(shape, _zero(wanted), dtype=wanted, device=device)


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
    wanted = dt.default_float if dtype is None else dt.of(dtype, "ones")
    return full(shape, 1, dtype=wanted, device=device)


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
    wanted = dt.default_float if dtype is None else dt.of(dtype, "empty")
    return full(shape, _zero(wanted), dtype=wanted, device=device)


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
    wanted = own if dtype is None else dt.of(dtype, "full_like")
    return run_near(x, device, lambda: full(shape, fill_value, dtype=wanted))


def _fill_like(x: Any, value: int, dtype: Any, device: str | None, caller: str) -> Tensor:
    if dtype is None and device is None and getattr(x, "dtype", None) is not dt.string:
        spec = ONES_LIKE if value else ZEROS_LIKE
        if is_here(x):
            return dispatch_unary(spec, x)
        return run_near(x, None, lambda: dispatch_unary(spec, x))
    shape, own = _look_up_type(x, caller)
    wanted = own if dtype is None else dt.of(dtype, caller)
    filling = value or _zero(wanted)
    return run_near(x, device, lambda: full(shape, filling, dtype=wanted))


def _look_up_type(x: Any, caller: str) -> tuple[Shape, DType]:
    """Return shape and dtype of ``x`` without transferring a live tensor."""
    there = getattr(x, "_placement", None)
    if there is None or there.device is None:
        there = as_tensor(x, what=f"{caller}: x")
    return there.type.shape, there.type.dtype


def arange(
    start: float | SupportsArray,
    /,
    stop: float | SupportsArray | None = None,
    step: float | SupportsArray = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``stop`` in steps of ``step``.

    A single argument is the stop; the start is then 0. The default dtype is int32 if all are
    integers (int64 if the numbers do not fit), else float32. The arguments may be tensors or
    arrays of rank 0, which are read.

    ``device``: the device of the result; the current one by default.

    Raises:
        ArgumentError: the step is 0, or a number is not finite or does not fit into ``dtype``.

    Source: the array API standard.

    Examples:
        >>> tp.arange(4)
        Tensor([0, 1, 2, 3], dtype=int32, device='cpu')
        >>> tp.arange(1, 10, 3)
        Tensor([1, 4, 7], dtype=int32, device='cpu')
        >>> tp.arange(1.0, 0.0, -0.25)
        Tensor([1.  , 0.75, 0.5 , 0.25], dtype=float32, device='cpu')
        >>> tp.arange(5, 0).shape
        (0,)

    """
    first, last, by = _read_number(start), _read_number(stop), _read_number(step)
    if last is None:
        first, last = 0, first
    wanted = _choose_range_dtype(first, last, by) if dtype is None else dt.of(dtype, "arange")
    if _is_real(first) and _is_real(last) and _is_real(by) and by > 0 and last < first:
        return zeros((0,), dtype=wanted, device=device)  # the kernel would count down
    return run_on(device, lambda: dispatch(RANGE, start=first, stop=last, step=by, dtype=wanted))


def _read_number(value: Any) -> Any:
    held = hasattr(value, "_placement") or isinstance(value, np.ndarray)
    return value.item() if held and not value.ndim else value


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _choose_range_dtype(*numbers: Any) -> DType:
    if not all(isinstance(number, int | np.integer) for number in numbers):
        return dt.default_float
    start, stop, step = map(int, numbers)
    least, most = dt.default_int.min, dt.default_int.max
    ends = _find_ends(start, stop, step) if step else ()  # the op rejects a step of 0
    fits = all(least <= end <= most for end in ends)
    return dt.default_int if fits else dt.int64


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        start: the first number. Both ends may be tensors or arrays, which broadcast to a shape
            S; the result has the shape ``(num, *S)``, and gradients flow to them.
        stop: the last number; without ``endpoint`` the numbers end one step before it.
        num: how many numbers.
        dtype: float32 by default, complex64 if an end is complex; for tensors, their promoted
            dtype. Integers are rounded down, as in NumPy.
        device: of the result; the active one by default.
        endpoint: whether ``stop`` is included.

    Raises:
        DTypeError: the dtype is bool or string, or real though an end is complex.
        ArgumentError: ``num`` is negative, or an end does not fit an integer dtype.
        ShapeError: the ends do not broadcast.

    Source: the array API standard; TensorFlow's LinSpace.

    Examples:
        >>> tp.linspace(0, 1, 5)
        Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
        >>> tp.linspace(0, 1, 4, endpoint=False)
        Tensor([0.  , 0.25, 0.5 , 0.75], dtype=float32, device='cpu')
        >>> tp.linspace(0, 10, 4, dtype="int32")
        Tensor([ 0,  3,  6, 10], dtype=int32, device='cpu')

    """
    wanted = None if dtype is None else dt.of(dtype, "linspace")
    ends: tuple[Any, Any] = (start, stop)
    if any(hasattr(end, "_placement") or isinstance(end, np.ndarray) for end in ends):
        return run_on(
            device, lambda: spread(LIN_SPACE, start, stop, num, wanted, endpoint=endpoint)
        )
    if wanted in dt.INTEGER:
        numbers = make_integers(*ends, num, wanted, endpoint=endpoint)
        return asarray(numbers, device=device)
    if wanted is None:
        ends_complex = any(np.iscomplexobj(end) for end in ends)
        wanted = dt.default_complex if ends_complex else dt.default_float
    return run_on(
        device,
        lambda: dispatch(
            LIN_SPACE, start=start, stop=stop, num=num, endpoint=endpoint, dtype=wanted
        ),
    )


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    batch_shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros otherwise, float32 by default.

    Args:
        n_rows: number of rows.
        n_cols: number of columns; ``n_rows`` by default.
        k: the diagonal: 0 is the main one, 1 the one above it, -1 the one below.
        batch_shape: sizes of leading axes along which the matrix is repeated.
        dtype: any but strings.
        device: of the result; the active one by default.

    Raises:
        ArgumentError: a number of rows or columns is negative.
        DTypeError: ``dtype`` is string.

    Source: the array API standard; ``batch_shape`` is TensorFlow's.

    Examples:
        >>> tp.eye(2)
        Tensor([[1., 0.],
                [0., 1.]], dtype=float32, device='cpu')
        >>> tp.eye(2, 3, k=1)
        Tensor([[0., 1., 0.],
                [0., 0., 1.]], dtype=float32, device='cpu')
        >>> tp.eye(2, batch_shape=(5,)).shape
        (5, 2, 2)

    """
    wanted = dt.default_float if dtype is None else dt.of(dtype, "eye")
    made = run_on(device, lambda: dispatch(EYE, n_rows=n_rows, n_cols=n_cols, k=k, dtype=wanted))
    if isinstance(batch_shape, tuple | list) and not batch_shape:
        return made
    batch = shapes.as_shape(batch_shape, "eye: batch_shape")
    return run_on(device, lambda: broadcast_to(made, (*batch, *made.shape)))
