"""What recurrent layers over sequences have in common: directions, weights, masks, states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import extents, joining, movement
from tensorplug.ops.arrangement import flip
from tensorplug.ops.creation import zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import less
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

    # takes the gates [batch, time, gates * units], one direction's weights behind the kernel,
    # its states and the mask; returns the state tensors after each step, [batch, time, units]
    Recur = Callable[[Tensor, Sequence[Tensor], Sequence[Tensor], Tensor | None], Sequence[Tensor]]

DIRECTIONS: Final = ("forward", "reverse", "bidirectional")


def check_operands(
    operands: Sequence[TensorType], names: Sequence[str], gates: int, mask: TensorType | None
) -> tuple[int, int, int]:
    """Check the inputs of a recurrent kernel by their names; return its sizes.

    They are batch, time and units. ``names`` tell the shapes: "recurrent" [units, gates * units],
    "bias" [gates * units], a name of one letter [batch, units], others [batch, time, units], or
    [batch, time, gates * units] if they end in "gates".
    """
    known = dict(zip(names, operands, strict=True))
    if known["gates"].rank != 3:
        raise ShapeError("gates must have rank 3, [batch, time, gates * units]")
    batch, time, width = known["gates"].shape
    units = width // gates
    for name, operand in known.items():
        expected: Shape = (batch, time, gates * units if name == "gates" else units)
        if name == "recurrent":
            expected = units, gates * units
        elif name == "bias":
            expected = (gates * units,)
        elif len(name) == 1:
            expected = batch, units
        if operand.shape != expected:
            raise ShapeError(f"{name} must have shape {list(expected)}, got {list(operand.shape)}")
    if mask is not None and mask.shape != (batch, time):
        raise ShapeError(f"mask must have shape {[batch, time]}, got {list(mask.shape)}")
    return batch, time, units


class Call(NamedTuple):
    """A call of a recurrent layer, after the checks.

    ``weights`` and ``states`` hold one list for each direction; ``mask`` is bool [batch, time].
    """

    caller: str
    x: Tensor
    weights: list[list[Tensor]]
    states: list[list[Tensor]]
    mask: Tensor | None
    direction: str


def read(
    caller: str,
    x: Any,
    weights: dict[str, Any],
    gates: int,
    states: dict[str, Any],
    *,
    lengths: Any,
    mask: Any,
    direction: str,
) -> Call:
    """Check the arguments of a layer with ``gates`` gates.

    ``weights``: kernel, recurrent_kernel, then biases, which may be None for 0. ``states``: the
    initial ones by name, or None for 0.

    Raises:
        ArgumentError: the direction is unknown, or both lengths and mask are given.
        ShapeError: shapes do not fit.
        DTypeError: numbers are not floating, lengths not integers, or the mask not boolean.

    """
    choice(direction, DIRECTIONS, f"{caller}: direction")
    sequences = _read_numbers(x, f"{caller}: x")
    if sequences.ndim != 3:
        raise ShapeError(f"{caller}: x must be [batch, time, features], got {sequences.type}")
    batch, time, features = sequences.shape
    lead = (2,) if direction == "bidirectional" else ()
    recurrent = _read_numbers(weights["recurrent_kernel"], f"{caller}: recurrent_kernel")
    if recurrent.ndim != len(lead) + 2:
        raise ShapeError(
            f"{caller}: recurrent_kernel must have rank {len(lead) + 2}, got {recurrent.type}"
        )
    units, width = recurrent.shape[-2:]
    if width != gates * units:
        known = ", which is its transpose" if units == gates * width else ""
        raise ShapeError(
            f"{caller}: recurrent_kernel must be [{', '.join(map(str, [*lead, 'units']))}, "
            f"{gates} * units], got {recurrent.type}{known}"
        )
    shapes: dict[str, Shape] = dict.fromkeys(weights, (*lead, gates * units))
    shapes["kernel"] = (*lead, features, gates * units)
    shapes["recurrent_kernel"] = (*lead, units, gates * units)
    present = {name: value for name, value in weights.items() if value is not None}
    parameters = {
        name: _read_shaped(value, shapes[name], f"{caller}: {name}")
        for name, value in present.items()
    }
    dtype = dt.promote([sequences.dtype, *[item.dtype for item in parameters.values()]])
    full = [
        parameters[name] if name in parameters else zeros(shapes[name], dtype=dtype)
        for name in weights
    ]
    initial = [
        zeros((*lead, batch, units), dtype=dtype)
        if value is None
        else _read_shaped(value, (*lead, batch, units), f"{caller}: {name}")
        for name, value in states.items()
    ]
    seen = _read_mask(caller, batch, time, lengths, mask)
    halves = [_halves(item) if lead else [item] for item in full]
    begin = [_halves(item) if lead else [item] for item in initial]
    return Call(
        caller,
        sequences,
        [list(items) for items in zip(*halves, strict=True)],
        [list(items) for items in zip(*begin, strict=True)],
        seen,
        direction,
    )


def split_state(caller: str, state: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return an initial state of several tensors by their names."""
    if state is None:
        return dict.fromkeys(names)
    if not isinstance(state, list | tuple) or len(state) != len(names):
        listed = ", ".join(names)
        raise ArgumentError(
            f"{caller}: initial_state must be ({listed}), got {type(state).__name__}"
        )
    return {f"initial_state {name}": item for name, item in zip(names, state, strict=True)}


def _read_numbers(value: Any, what: str) -> Tensor:
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.FLOATING:
        raise DTypeError(f"{what} must be floating, got {tensor.type}")
    return tensor


def _read_shaped(value: Any, shape: Shape, what: str) -> Tensor:
    tensor = _read_numbers(value, what)
    if tensor.shape != shape:
        raise ShapeError(f"{what} must have shape {list(shape)}, got {tensor.type}")
    return tensor


def _read_mask(caller: str, batch: int, time: int, lengths: Any, mask: Any) -> Tensor | None:
    if mask is not None:
        if lengths is not None:
            raise ArgumentError(f"{caller}: pass lengths or mask, not both")
        seen = as_tensor(mask, what=f"{caller}: mask")
        if seen.dtype is not dt.bool_ or seen.shape != (batch, time):
            error = ShapeError if seen.dtype is dt.bool_ else DTypeError
            raise error(f"{caller}: mask must be bool[{batch},{time}], got {seen.type}")
        return seen
    if lengths is None:
        return None
    counts = as_tensor(lengths, what=f"{caller}: lengths")
    if counts.dtype not in dt.INTEGER:
        raise DTypeError(f"{caller}: lengths must be integers, got {counts.type}")
    if counts.shape != (batch,):
        raise ShapeError(f"{caller}: lengths must have shape [{batch}], got {counts.type}")
    if counts.dtype.itemsize < dt.default_int.itemsize:  # it may not hold the number of steps
        counts = astype(counts, dt.default_int)
    return less(arange(time, dtype=counts.dtype), movement.expand_dims(counts, axis=-1))


def _halves(x: Tensor) -> list[Tensor]:
    """Return the two slices along the first axis."""
    rest = x.shape[1:]
    begin = (0,) * len(rest)
    return [movement.reshape(extents.slice(x, (at, *begin), (1, *rest)), rest) for at in range(2)]


def run(call: Call, recur: Recur) -> tuple[Tensor, list[Tensor]]:
    """Return the outputs [batch, time, units], of both directions side by side, and the states."""
    forward = [call.direction == "forward"] if len(call.weights) == 1 else [True, False]
    outputs, states = [], []
    for weights, begin, ahead in zip(call.weights, call.states, forward, strict=True):
        output, last = _run_one(call, weights, begin, recur, ahead=ahead)
        outputs.append(output)
        states.append(last)
    if len(outputs) == 1:
        return outputs[0], states[0]
    ends = [joining.stack(pair) for pair in zip(*states, strict=True)]
    return joining.concat(outputs, axis=-1), ends


def _run_one(
    call: Call, weights: list[Tensor], begin: list[Tensor], recur: Recur, *, ahead: bool
) -> tuple[Tensor, list[Tensor]]:
    """Run one direction. Steps that the mask leaves out keep the state; their output is 0."""
    batch, time, features = call.x.shape
    kernel, *rest = weights
    rows = matmul(movement.reshape(call.x, (batch * time, features)), kernel)
    gates, mask = movement.reshape(rows, (batch, time, kernel.shape[-1])), call.mask
    if not ahead:
        gates, mask = flip(gates, axis=1), mask if mask is None else flip(mask, axis=1)
    states = recur(gates, rest, begin, mask)
    last = begin
    if time:
        shape = (batch, 1, states[0].shape[-1])
        ends = [extents.slice(state, (0, time - 1, 0), shape) for state in states]
        last = [movement.squeeze(end, axis=1) for end in ends]
    output = states[0]
    if mask is not None:
        output = where(movement.expand_dims(mask, axis=-1), output, 0)
    return output if ahead else flip(output, axis=1), last
