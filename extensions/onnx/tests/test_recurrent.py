"""Recurrent layers, against the equations of ONNX's text, one number of a step after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError

from .one_operator import model_of, outputs_of

TIME, BATCH, FEATURES, UNITS = 4, 3, 2, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
RNG = np.random.default_rng(7)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Functions of ONNX with their default alpha and beta.
FUNCTIONS = {
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": sigmoid,
    "Affine": lambda x, alpha=1.0, beta=0.0: alpha * x + beta,
    "LeakyRelu": lambda x, alpha=0.01: np.where(x >= 0, x, alpha * x),
    "ThresholdedRelu": lambda x, alpha=1.0: np.where(x > alpha, x, 0),
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
    "Elu": lambda x, alpha=1.0: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
}


def equations(operator, x, w, r, b, state, peepholes, functions, options):
    """Return the next state of one direction for one sequence."""
    wb, rb = np.split(b, 2)
    ws, rs, wbs, rbs = (np.split(one, GATES[operator]) for one in (w, r, wb, rb))
    h = state[0]
    clip = options.get("clip", np.inf)
    f, g, k = (lambda v, one=one: one(np.clip(v, -clip, clip)) for one in (functions * 3)[:3])
    a = [ws[at] @ x + wbs[at] for at in range(GATES[operator])]
    if operator == "RNN":
        return (f(a[0] + rs[0] @ h + rbs[0]),)
    if operator == "GRU":
        z = f(a[0] + rs[0] @ h + rbs[0])
        reset = f(a[1] + rs[1] @ h + rbs[1])
        if options.get("linear_before_reset"):
            new = g(a[2] + reset * (rs[2] @ h + rbs[2]))
        else:
            new = g(a[2] + rs[2] @ (reset * h) + rbs[2])
        return ((1 - z) * new + z * h,)
    c = state[1]
    p = np.split(peepholes, 3)  # of input, output and forget gate
    i = f(a[0] + rs[0] @ h + rbs[0] + p[0] * c)
    forget = f(a[2] + rs[2] @ h + rbs[2] + p[2] * c)
    if options.get("input_forget"):
        forget = 1 - i
    c = forget * c + i * g(a[3] + rs[3] @ h + rbs[3])
    o = f(a[1] + rs[1] @ h + rbs[1] + p[1] * c)
    return o * k(c), c


def expected_outputs(operator, inputs, options):
    x, w, r, b, lengths, *states = (None if one is None else one for one in inputs)
    count, directions = (2 if operator == "LSTM" else 1), w.shape[0]
    peepholes = states.pop() if operator == "LSTM" else None
    if peepholes is None:
        peepholes = np.zeros((directions, 3 * UNITS))
    b = np.zeros((directions, 2 * GATES[operator] * UNITS)) if b is None else b
    lengths = np.full(BATCH, TIME) if lengths is None else lengths
    per_direction = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator]
    names = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
    functions = options.get("functions", [FUNCTIONS[name] for name in names[operator]] * 2)
    if options.get("layout"):
        x = x.swapaxes(0, 1)
        states = [None if one is None else one.swapaxes(0, 1) for one in states]
    ys = np.zeros((TIME, directions, BATCH, UNITS))
    lasts = [np.zeros((directions, BATCH, UNITS)) for _ in range(count)]
    for d, n in itertools.product(range(directions), range(BATCH)):
        own = functions[d * per_direction : (d + 1) * per_direction]
        state = tuple(np.zeros(UNITS) if one is None else one[d, n] for one in states)
        steps = range(lengths[n])
        if options.get("direction") == "reverse" or d == 1:
            steps = reversed(steps)
        for t in steps:
            state = equations(
                operator, x[t, n], w[d], r[d], b[d], state, peepholes[d], own, options
            )
            ys[t, d, n] = state[0]
        for last, one in zip(lasts, state, strict=True):
            last[d, n] = one
    if options.get("layout"):
        return [ys.transpose(2, 0, 1, 3), *(last.swapaxes(0, 1) for last in lasts)]
    return [ys, *lasts]


def inputs_of(operator, directions, *, layout=0, lengths=None, without=()):
    def numbers(*shape):
        return RNG.uniform(-1, 1, shape).astype(np.float32)

    gates = GATES[operator] * UNITS
    found = [
        numbers(*((BATCH, TIME) if layout else (TIME, BATCH)), FEATURES),
        numbers(directions, gates, FEATURES),
        numbers(directions, gates, UNITS),
        numbers(directions, 2 * gates),
        lengths,
        *(
            numbers(*((BATCH, directions) if layout else (directions, BATCH)), UNITS)
            for _ in range(2 if operator == "LSTM" else 1)
        ),
    ]
    if operator == "LSTM":
        found.append(numbers(directions, 3 * UNITS))
    return [None if at in without else one for at, one in enumerate(found)]


LENGTHS = np.array([4, 1, 3], np.int32)
B, INITIAL_C, PEEPHOLES = 3, 6, 7

# Attributes, and which inputs are left out.
VARIANTS = {
    "RNN": ({}, ()),
    "RNN clipped, no bias": ({"clip": 0.3}, (B,)),
    "GRU": ({}, ()),
    "GRU, no bias": ({}, (B,)),
    "GRU linear": ({"linear_before_reset": 1}, ()),
    "GRU linear, no bias": ({"linear_before_reset": 1}, (B,)),
    "GRU linear and clipped": ({"linear_before_reset": 1, "clip": 0.4}, ()),
    "LSTM": ({}, (PEEPHOLES,)),
    "LSTM, no bias, half a state": ({}, (B, INITIAL_C, PEEPHOLES)),
    "LSTM with peepholes": ({}, ()),
    "LSTM clipped": ({"clip": 0.3}, (PEEPHOLES,)),
    "LSTM coupled": ({"input_forget": 1}, (PEEPHOLES,)),
}


@pytest.mark.parametrize("way", ["called", "compiled"])
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["", "lengths"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("name", VARIANTS)
def test_layers(name, direction, layout, lengths, way):
    attributes, without = VARIANTS[name]
    operator = name.split()[0].strip(",")
    attributes = {**attributes, "direction": direction, "layout": layout, "hidden_size": UNITS}
    directions = 2 if direction == "bidirectional" else 1
    inputs = inputs_of(operator, directions, layout=layout, lengths=lengths, without=without)
    compare(way, operator, inputs, attributes, attributes)


def compare(way, operator, inputs, attributes, options):
    count = 3 if operator == "LSTM" else 2
    found = outputs_of(way, operator, inputs, attributes, opset=14, outputs=count)
    for one, expected in zip(found, expected_outputs(operator, inputs, options), strict=True):
        assert one.dtype == np.float32
        assert one.shape == expected.shape
        np.testing.assert_allclose(one, expected, atol=2e-6)


# Each activation, and the alpha and beta that it is given.
ACTIVATIONS = [
    *((name, {}) for name in FUNCTIONS if name != "ScaledTanh"),
    ("Affine", {"alpha": 0.5, "beta": 0.25}),
    ("LeakyRelu", {"alpha": 0.5}),
    ("ThresholdedRelu", {"alpha": 0.1}),
    ("ScaledTanh", {"alpha": 0.5, "beta": 2.0}),
    ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}),
    ("Elu", {"alpha": 0.5}),
]


@pytest.mark.parametrize(("name", "given"), ACTIVATIONS)
def test_activations(name, given):
    attributes = {"activations": [name]} | {f"activation_{key}": [given[key]] for key in given}
    options = {"functions": [lambda x: FUNCTIONS[name](x, **given)]}
    compare("called", "RNN", inputs_of("RNN", 1), attributes, options)


def test_each_activation_takes_the_next_alpha_that_it_needs():
    attributes = {
        "activations": ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Elu", "Affine"],
        "activation_alpha": [0.25, 0.5, 0.75, 1.25],
        "activation_beta": [0.375, 0.125],
        "direction": "bidirectional",
    }
    functions = [
        lambda x: FUNCTIONS["HardSigmoid"](x, 0.25, 0.375),
        np.tanh,
        lambda x: FUNCTIONS["LeakyRelu"](x, 0.5),
        sigmoid,
        lambda x: FUNCTIONS["Elu"](x, 0.75),
        lambda x: 1.25 * x + 0.125,
    ]
    compare("called", "LSTM", inputs_of("LSTM", 2), attributes, {"functions": functions})


@pytest.mark.parametrize("name", ["RNN", "GRU", "GRU linear", "LSTM", "LSTM with peepholes"])
def test_gradients_are_the_slopes(name):
    attributes, without = VARIANTS[name]
    operator = name.split()[0]
    inputs = inputs_of(operator, 1, lengths=LENGTHS, without=without)
    inputs = [
        one if one is None or one.dtype.kind == "i" else one.astype(np.float64) for one in inputs
    ]
    model = model_of(operator, inputs, attributes, opset=14)
    names = [
        f"x{at}" for at, one in enumerate(inputs) if one is not None and one.dtype.kind == "f"
    ]
    given = {f"x{at}": tp.asarray(one) for at, one in enumerate(inputs) if one is not None}
    direction = {key: RNG.uniform(-1, 1, given[key].shape) for key in names}

    def loss(values):
        return tp.sum(model.apply({}, {**given, **values})["y0"] ** 2)

    def at(step):
        return float(loss({key: given[key] + step * direction[key] for key in names}))

    found = tp.grad(loss)({key: given[key] for key in names})
    slope = sum(float(np.sum(found[key].numpy() * direction[key])) for key in names)
    np.testing.assert_allclose(slope, (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-6)


WRONG = {
    "direction": ("RNN", 1, {"direction": "sideways"}, "sideways"),
    "directions": ("GRU", 1, {"direction": "bidirectional"}, "bidirectional"),
    "activation": ("RNN", 1, {"activations": ["Swish"]}, "Swish"),
    "activations": ("LSTM", 1, {"activations": ["Tanh", "Tanh"]}, "2 activations"),
    "hidden size": ("LSTM", 1, {"hidden_size": 4}, "hidden_size"),
    "alpha": ("RNN", 1, {"activations": ["ScaledTanh"]}, "alpha"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    operator, directions, attributes, message = WRONG[name]
    with pytest.raises(NodeError, match=rf"{operator}.*{message}"):
        outputs_of("called", operator, inputs_of(operator, directions), attributes, opset=14)
