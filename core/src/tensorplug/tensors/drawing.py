"""What functions share that draw random numbers: reading their arguments, and rejection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import arguments, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import reduction
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and, logical_not
from tensorplug.ops.movement import broadcast_to
from tensorplug.ops.random.random import fold_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor


def parameters(
    caller: str, shape: Any, dtype: Any, *, widen: bool = False, **named: Any
) -> tuple[Shape, DType, tuple[Any, ...]]:
    """Return the shape and dtype of a draw, and its parameters: numbers, or tensors.

    Args:
        caller: the function's name, for messages.
        shape: of the result; None for the broadcast shape of the parameters.
        dtype: a floating one; None for that of the floating tensors among the parameters, or
            the default.
        widen: whether the tensors get the dtype for longer formulas, instead of ``dtype``.
        named: the parameters by name.

    Raises:
        ArgumentError, ShapeError, DTypeError: an argument is wrong.

    """
    values = [read_parameter(parameter, f"{caller}: {name}") for name, parameter in named.items()]
    tensors = [value for value in values if not host_values.is_scalar(value)]
    chosen = choose_real_dtype(caller, dtype, tensors)
    sizes = fit_shape(caller, shape, [tensor.shape for tensor in tensors])
    work = chosen.compute if widen else chosen
    converted = (
        value if host_values.is_scalar(value) else astype(value, work) for value in values
    )
    return sizes, chosen, tuple(converted)


def read_parameter(value: Any, what: str) -> Any:
    """Return a scalar as a Python number, anything else as a tensor of real numbers."""
    value = dt.as_number(value)
    if host_values.is_scalar(value):
        if isinstance(value, complex):
            raise ArgumentError(f"{what} must be a real number, got {arguments.quoted(value)}")
        return value
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"{what} must hold real numbers, got {tensor.type}")
    return tensor


def choose_real_dtype(caller: str, dtype: Any, tensors: list[Tensor]) -> DType:
    """Return the dtype asked for, or that of the floating tensors, or the default."""
    if dtype is None:
        floating = [tensor.dtype for tensor in tensors if tensor.dtype in dt.FLOATING]
        return dt.promote(floating) if floating else dt.default_float
    chosen = dt.of(dtype, caller)
    if chosen not in dt.FLOATING:
        raise DTypeError(f"{caller}: dtype must be a floating one, got {chosen}")
    return chosen


def fit_shape(caller: str, shape: Any, parameters: Sequence[Shape]) -> Shape:
    """Return the shape of a draw whose parameters have the shapes ``parameters``.

    Raises:
        ShapeError: they do not broadcast to ``shape``, or to each other if it is None.
        ArgumentError: ``shape`` is not a shape.

    """
    try:
        sizes = None if shape is None else shapes.as_shape(shape, f"{caller}: shape")
    except ShapeError:
        raise
    except ArgumentError as error:  # probably a parameter in the place of the shape
        raise ArgumentError(
            f"{error}; parameters follow the shape by name: see help(tensorplug.random.{caller})"
        ) from None
    try:
        common = shapes.broadcast(*parameters)
        if sizes is None or shapes.broadcast(sizes, common) == sizes:
            return common if sizes is None else sizes
    except ShapeError as error:
        raise ShapeError(f"{caller}: {error}") from None
    raise ShapeError(
        f"{caller}: the parameters have shape {list(common)}, which does not broadcast to "
        f"{list(sizes)}"
    )


def shift_and_scale(x: Tensor, loc: Any, scale: Any) -> Tensor:
    """Return ``loc + x * scale`` without needless operations."""
    scaled = x if is_number(scale, 1) else x * scale
    return scaled if is_number(loc, 0) else loc + scaled


def is_number(value: Any, number: float) -> bool:
    """Return whether a parameter is that Python number."""
    return host_values.is_scalar(value) and value == number


def first_accepted(
    rounds: Tensor,
    possible: Tensor,
    shape: Shape,
    otherwise: float,
    draw: Callable[[Tensor], tuple[Tensor, Tensor]],
    dtype: Any,
) -> Tensor:
    """Return the first accepted candidate of every element.

    Candidates are drawn for all elements, round by round, until each has an accepted one; the
    host waits for the device after every round. The numbers of an element do not depend on the
    other elements.

    Args:
        rounds: a key, from which every round makes its own.
        possible: booleans: where there is a distribution to draw from. It broadcasts to ``shape``.
        shape: of the result.
        otherwise: the result elsewhere.
        draw: takes a key and returns the candidates, and whether each is accepted.
        dtype: of the candidates.

    """
    result = where(possible, full(shape, 0.0, dtype=dtype), otherwise)
    open_ = broadcast_to(possible, shape)
    number = 0
    while bool(reduction.any(open_)):
        candidates, accepted = draw(fold_in(rounds, number))
        taken = logical_and(open_, accepted)
        result = where(taken, candidates, result)
        open_ = logical_and(open_, logical_not(accepted))
        number += 1
    return result
