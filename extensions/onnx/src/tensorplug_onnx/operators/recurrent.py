"""Recurrent layers.

Up to version 6 of the opset, an attribute ``output_sequence`` says whether the outputs of all
steps are wanted; they are always there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug_onnx.operators import elementwise
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_onnx.executing import Scope
    from tensorplug_onnx.graph import Node

    # From a state, the output first, and what the input adds to the gates, to the next state.
    Step = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]
    # From a direction and rows to their products with the weights of all its gates.
    Products = Callable[[int, Any], Any]

# Whether each direction goes backwards.
DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


USUAL_OF_LSTM: Final = ("Sigmoid", "Tanh", "Tanh")


def _affine(x: Any, *, alpha: float = 1.0, beta: float = 0.0) -> Any:
    return alpha * x + beta


def _scaled_tanh(x: Any, *, alpha: float, beta: float) -> Any:
    return alpha * tp.tanh(beta * x)


# Each function, and which of alpha and beta it takes.
_ACTIVATIONS: Final[dict[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "relu": (tp.nn.relu, ()),
    "tanh": (tp.tanh, ()),
    "sigmoid": (tp.nn.sigmoid, ()),
    "softsign": (elementwise.softsign, ()),
    "softplus": (tp.nn.softplus, ()),
    "affine": (_affine, ("alpha", "beta")),
    "leakyrelu": (elementwise.leaky_relu, ("alpha",)),
    "thresholdedrelu": (elementwise.thresholded_relu, ("alpha",)),
    "scaledtanh": (_scaled_tanh, ("alpha", "beta")),
    "hardsigmoid": (elementwise.hard_sigmoid, ("alpha", "beta")),
    "elu": (elementwise.elu, ("alpha",)),
}


def activations_of(
    names: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    clip: float | None,
) -> list[Callable[[Any], Any]]:
    """Return the functions, each of its input between -clip and clip.

    Each takes the next alpha and the next beta, if it has them; its operator's if none are left.
    """
    values = {"alpha": iter(alphas), "beta": iter(betas)}
    functions: list[Callable[[Any], Any]] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise ValueError(f"there is no activation {name!r}")
        function, takes = _ACTIVATIONS[name.lower()]
        found = {key: next(values[key], None) for key in takes}
        given = {key: value for key, value in found.items() if value is not None}
        bound = partial(function, **given)
        functions.append(bound if clip is None else partial(_clipped, bound, clip))
    return functions


def _clipped(function: Callable[[Any], Any], clip: float, x: Any) -> Any:
    return function(tp.clip(x, -clip, clip))


def _directions(direction: str, w: Any, r: Any, hidden_size: int | None) -> tuple[bool, ...]:
    if direction not in DIRECTIONS:
        raise ValueError(f"attribute 'direction' is {direction!r}")
    directions = DIRECTIONS[direction]
    if w.shape[0] != len(directions) or r.shape[0] != len(directions):
        raise ValueError(f"direction {direction!r}: weights for {w.shape[0]} and {r.shape[0]}")
    if hidden_size is not None and hidden_size != r.shape[-1]:
        raise ValueError(f"attribute 'hidden_size' is {hidden_size}, R has {r.shape[-1]}")
    return directions


def _halves(b: Any, at: int) -> tuple[Any, Any]:
    """Return the biases of a direction: beside W and beside R."""
    if b is None:
        return 0.0, 0.0
    input_bias, recurrent_bias = tp.split(b[at], 2)
    return input_bias, recurrent_bias


def _times(weights: Any) -> Products:
    """Return the products with weights [directions, gates, inputs]."""
    return lambda at, rows: tp.matmul(rows, weights[at], transpose_b=True)


def _layer(
    x: Any,
    of_inputs: Products,
    b: Any,
    lengths: Any,
    initial: Sequence[Any],
    steps: Sequence[Step],
    directions: Sequence[bool],
    *,
    units: int,
    layout: int,
) -> tuple[Any, ...]:
    """Return the outputs of all steps, and the last state: each with an axis of directions."""
    x, *initial = _layout((x, *initial), layout)
    time, batch = x.shape[:2]
    counted = None
    if lengths is not None:
        counted = (tp.arange(time)[:, None] < tp.astype(lengths, tp.int32))[:, :, None]
    outputs, states = [], []
    for at, (backwards, step) in enumerate(zip(directions, steps, strict=True)):
        zeros = tp.zeros((batch, units), dtype=x.dtype)
        first = tuple(zeros if one is None else one[at] for one in initial)
        gates = of_inputs(at, x) + _halves(b, at)[0]
        one_step = partial(_one_step, step)
        last, ys = tp.scan(one_step, first, (gates, counted), reverse=backwards)
        outputs.append(ys)
        states.append(last)
    found = [tp.stack(outputs, axis=1), *(tp.stack(one) for one in zip(*states, strict=True))]
    if layout:
        found[0] = tp.permute_dims(found[0], (2, 0, 1, 3))
    return found[0], *_layout(found[1:], layout)


def _layout(values: Sequence[Any], layout: int) -> list[Any]:
    """Exchange the first two axes of what is there, if the layout is 1."""
    if not layout:
        return list(values)
    return [None if one is None else tp.swapaxes(one, 0, 1) for one in values]


def _one_step(step: Step, state: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], Any]:
    """Steps beyond the length of a sequence keep its state, and their output is 0."""
    gates, counts = x
    following = step(state, gates)
    if counts is None:
        return following, following[0]
    output = tp.where(counts, following[0], 0)
    kept = zip(following, state, strict=True)
    return tuple(tp.where(counts, new, old) for new, old in kept), output


def _reordered(weights: Any, order: Sequence[int]) -> Any:
    """Return weights of gates, which lie side by side on axis 1, in another order."""
    gates = tp.split(weights, len(order), axis=1)
    return tp.concat([gates[at] for at in order], axis=1)


def _weights(
    weights: Sequence[Any], biases: Sequence[Any], order: Sequence[int], direction: str
) -> list[Any]:
    """Return kernels and biases as a layer of tensorplug's takes them.

    There, a kernel is [inputs, gates], and a single direction has no axis. ``order``: where ONNX
    has each of its gates.
    """
    kernels = [tp.swapaxes(_reordered(one, order), 1, 2) for one in weights]
    others = [None if one is None else _reordered(one, order) for one in biases]
    two = direction == "bidirectional"
    return [one if two or one is None else one[0] for one in (*kernels, *others)]


def _fused(
    function: Callable[..., Any],
    x: Any,
    weights: Sequence[Any],
    lengths: Any,
    initial: Sequence[Any],
    *,
    units: int,
    direction: str,
    layout: int,
) -> tuple[Any, ...]:
    """Return what ``_layer`` does, from a layer of tensorplug's and ``_weights``.

    There, the axis of the sequences is before that of the steps.
    """
    two = direction == "bidirectional"
    directions = len(DIRECTIONS[direction])
    x = x if layout else tp.swapaxes(x, 0, 1)
    batch, time = x.shape[:2]
    state = None
    if any(one is not None for one in initial):
        zeros = tp.zeros((directions, batch, units), dtype=x.dtype)
        both = [zeros if one is None else one for one in _layout(initial, layout)]
        states = [one if two else one[0] for one in both]
        state = tuple(states) if len(states) > 1 else states[0]
    y, last = function(x, *weights, initial_state=state, lengths=lengths, direction=direction)
    y = tp.reshape(y, (batch, time, directions, units))
    lasts = [one if two else one[None] for one in (last if isinstance(last, tuple) else [last])]
    return y if layout else tp.permute_dims(y, (1, 2, 0, 3)), *_layout(lasts, layout)


@rule("RNN")
def rnn(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    *,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,  # noqa: ARG001
) -> tuple[Any, ...]:
    directions = _directions(direction, w, r, hidden_size)
    functions = activations_of(activations, activation_alpha, activation_beta, clip)

    def step_of(at: int) -> Step:
        bias = _halves(b, at)[1]
        (activation,) = _of_direction(functions, at, 1)

        def step(state: tuple[Any, ...], gates: Any) -> tuple[Any, ...]:
            return (activation(gates + tp.matmul(state[0], r[at], transpose_b=True) + bias),)

        return step

    steps = [step_of(at) for at in range(len(directions))]
    kinds = {"units": r.shape[-1], "layout": layout}
    return _layer(x, _times(w), b, lengths, [initial_h], steps, directions, **kinds)


@rule("LSTM")
def lstm(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    peepholes: Any = None,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,  # noqa: ARG001
    node: Node,
    scope: Scope,
) -> tuple[Any, ...]:
    directions = _directions(direction, w, r, hidden_size)
    usual, initial = USUAL_OF_LSTM * len(directions), [initial_h, initial_c]
    names = tuple(activations) or usual
    if names == usual and clip is None and peepholes is None and not input_forget:

        def made() -> list[Any]:
            bias = None if b is None else tp.add(*tp.split(b, 2, axis=1))
            return _weights([w, r], [bias], (0, 2, 3, 1), direction)

        return _fused(
            tp.nn.lstm, x, scope.prepared(node, {1: w, 2: r, 3: b}, made), lengths, initial,
            units=r.shape[-1], direction=direction, layout=layout,
        )  # fmt: skip
    return lstm_by_steps(
        x,
        b,
        lengths,
        initial,
        peepholes,
        _times(w),
        _times(r),
        functions=activations_of(names, activation_alpha, activation_beta, clip),
        directions=directions,
        units=r.shape[-1],
        input_forget=input_forget,
        layout=layout,
    )


def lstm_by_steps(
    x: Any,
    b: Any,
    lengths: Any,
    initial: Sequence[Any],
    peepholes: Any,
    of_inputs: Products,
    of_states: Products,
    *,
    functions: Sequence[Callable[[Any], Any]],
    directions: Sequence[bool],
    units: int,
    input_forget: int,
    layout: int = 0,
) -> tuple[Any, ...]:
    """Return what LSTM does, with any functions and any products of rows and weights."""

    def step_of(at: int) -> Step:
        bias = _halves(b, at)[1]
        f, g, h = _of_direction(functions, at, 3)
        of_input, of_output, of_forget = (
            (0.0, 0.0, 0.0) if peepholes is None else tp.split(peepholes[at], 3)
        )

        def step(state: tuple[Any, ...], gates: Any) -> tuple[Any, ...]:
            output, cell = state
            i, o, forget, c = tp.split(gates + of_states(at, output) + bias, 4, axis=1)
            i = f(i + of_input * cell)
            kept = 1 - i if input_forget else f(forget + of_forget * cell)
            cell = kept * cell + i * g(c)
            return f(o + of_output * cell) * h(cell), cell

        return step

    steps = [step_of(at) for at in range(len(directions))]
    return _layer(x, of_inputs, b, lengths, initial, steps, directions, units=units, layout=layout)


@rule("GRU")
def gru(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    *,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,  # noqa: ARG001
    node: Node,
    scope: Scope,
) -> tuple[Any, ...]:
    directions = _directions(direction, w, r, hidden_size)
    usual = ("Sigmoid", "Tanh") * len(directions)
    names = tuple(activations) or usual
    if names == usual and clip is None and linear_before_reset:

        def made() -> list[Any]:
            biases = [None, None] if b is None else tp.split(b, 2, axis=1)
            return _weights([w, r], biases, (1, 0, 2), direction)

        return _fused(
            tp.nn.gru, x, scope.prepared(node, {1: w, 2: r, 3: b}, made), lengths, [initial_h],
            units=r.shape[-1], direction=direction, layout=layout,
        )  # fmt: skip
    functions = activations_of(names, activation_alpha, activation_beta, clip)
    units = r.shape[-1]

    def step_of(at: int) -> Step:
        bias = tp.zeros((3 * units,), dtype=x.dtype) if b is None else _halves(b, at)[1]
        f, g = _of_direction(functions, at, 2)
        bias_gates, bias_hidden = tp.split(bias, [2 * units, units])
        of_gates, of_hidden = tp.split(r[at], [2 * units, units])

        def step(state: tuple[Any, ...], gates: Any) -> tuple[Any, ...]:
            (old,) = state
            both, new = tp.split(gates, [2 * units, units], axis=1)
            both = f(both + tp.matmul(old, of_gates, transpose_b=True) + bias_gates)
            update, reset = tp.split(both, 2, axis=1)
            if linear_before_reset:
                hidden = reset * (tp.matmul(old, of_hidden, transpose_b=True) + bias_hidden)
            else:
                hidden = tp.matmul(reset * old, of_hidden, transpose_b=True) + bias_hidden
            return ((1 - update) * g(new + hidden) + update * old,)

        return step

    steps = [step_of(at) for at in range(len(directions))]
    kinds = {"units": units, "layout": layout}
    return _layer(x, _times(w), b, lengths, [initial_h], steps, directions, **kinds)


def _of_direction(functions: Sequence[Any], at: int, count: int) -> Sequence[Any]:
    if len(functions) < (at + 1) * count:
        raise ValueError(f"{len(functions)} activations, each direction needs {count}")
    return functions[at * count : (at + 1) * count]
