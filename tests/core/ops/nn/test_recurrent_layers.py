"""Recurrent layers over sequences: each sequence by itself in NumPy, all options, refusals."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

RNG = np.random.default_rng(13)
BATCH, TIME, FEATURES, UNITS = 3, 5, 4, 2
TOLERANCES = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-13}
LAYERS = {"lstm": (tp.nn.lstm, 4, 2), "gru": (tp.nn.gru, 3, 1)}  # gates, states


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, state, kernel, recurrent, bias):
    h, c = state
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, state, kernel, recurrent, bias, recurrent_bias):
    (h,) = state
    xr, xz, xn = np.split(x @ kernel + bias, 3)
    ar, az, an = np.split(h @ recurrent + recurrent_bias, 3)
    z = sigmoid(xz + az)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + ar) * an) + z * h,)


STEPS = {"lstm": lstm_step, "gru": gru_step}


def one_direction(name, x, weights, states, seen, *, backwards):
    """Go through each sequence by itself, and through the steps that count only."""
    units = weights[1].shape[0]
    outputs = np.zeros((*x.shape[:2], units))
    last = [np.array(state, np.float64) for state in states]
    for n in range(len(x)):
        state = tuple(begin[n] for begin in last)
        steps = np.flatnonzero(seen[n])
        for t in steps[::-1] if backwards else steps:
            state = STEPS[name](x[n, t], state, *weights)
            outputs[n, t] = state[0]
        for end, value in zip(last, state, strict=True):
            end[n] = value
    return outputs, last


def expected(name, x, weights, states, seen, direction):
    x, *rest = (np.asarray(item, np.float64) for item in (x, *weights, *states))
    weights, states = rest[: len(weights)], rest[len(weights) :]
    if direction != "bidirectional":
        return one_direction(name, x, weights, states, seen, backwards=direction == "reverse")
    halves = [
        one_direction(
            name, x, [w[at] for w in weights], [s[at] for s in states], seen, backwards=bool(at)
        )
        for at in (0, 1)
    ]
    ends = [np.stack(pair) for pair in zip(*(last for _, last in halves), strict=True)]
    return np.concatenate([output for output, _ in halves], axis=-1), ends


def given(name, dtype="float64", direction="forward", sizes=(BATCH, TIME, FEATURES, UNITS)):
    """Return x, the weights and the states."""
    batch, time, features, units = sizes
    _, gates, states = LAYERS[name]
    lead = (2,) if direction == "bidirectional" else ()
    width = gates * units
    shapes = [(features, width), (units, width), *[(width,)] * (5 - gates)]
    weights = [RNG.normal(size=(*lead, *shape)).astype(dtype) for shape in shapes]
    begin = [RNG.normal(size=(*lead, batch, units)).astype(dtype) for _ in range(states)]
    return RNG.normal(size=(batch, time, features)).astype(dtype), weights, begin


def as_state(name, states):
    return tuple(states) if name == "lstm" else states[0]


def flat(name, found):
    """Return the outputs and the states as a list of tensors."""
    outputs, state = found
    return [outputs, *state] if name == "lstm" else [outputs, state]


def assert_close(found, right, dtype):
    for got, wanted in zip(found, right, strict=True):
        assert (got.shape, got.dtype.name) == (wanted.shape, dtype)
        tolerance = TOLERANCES[dtype]
        np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=tolerance)


MASKS = {
    "all": {},
    "lengths": {"lengths": [3, 5, 0]},
    "lengths in bytes": {"lengths": np.array([1, 2, 5], np.uint8)},
    "mask": {"mask": RNG.random((BATCH, TIME)) < 0.6},
}


def seen_by(options):
    if "lengths" in options:
        return np.arange(TIME) < np.asarray(options["lengths"])[:, None]
    return options.get("mask", np.ones((BATCH, TIME), bool))


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", LAYERS)
def test_values(name, mask, direction, dtype):
    x, weights, states = given(name, dtype, direction)
    right, ends = expected(name, x, weights, states, seen_by(MASKS[mask]), direction)
    options = {**MASKS[mask], "direction": direction}
    found = LAYERS[name][0](x, *weights, initial_state=as_state(name, states), **options)
    assert_close(flat(name, found), [right, *ends], dtype)


@pytest.mark.parametrize("name", LAYERS)
def test_defaults(name):
    x, weights, states = given(name)
    zeros = [np.zeros_like(weight) for weight in weights[2:]]
    begin = [np.zeros_like(state) for state in states]
    seen = np.ones((BATCH, TIME), bool)
    right, ends = expected(name, x, [*weights[:2], *zeros], begin, seen, "forward")
    assert_close(flat(name, LAYERS[name][0](x, *weights[:2])), [right, *ends], "float64")


def whole(name, options, x, *rest):
    """Return one number that depends on all results."""
    count = len(rest) - LAYERS[name][2]
    state = as_state(name, list(rest[count:]))
    found = LAYERS[name][0](x, *rest[:count], initial_state=state, **options)
    return sum(tp.sum(part**2 * (at + 1)) for at, part in enumerate(flat(name, found)))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("mask", ["all", "mask"])
@pytest.mark.parametrize("name", LAYERS)
def test_derivatives(name, mask, direction):
    x, weights, states = given(name, "float64", direction)
    f = partial(whole, name, {**MASKS[mask], "direction": direction})
    order = 2 if direction == "forward" else 1
    check_grads(f, [x, *weights, *states], order=order, directions=1, rtol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_padding_makes_no_difference(name):
    x, weights, _ = given(name)
    layer = partial(LAYERS[name][0], lengths=[2, 3, 1])
    lost = np.where(seen_by({"lengths": [2, 3, 1]})[..., None], x, np.inf)
    slopes = []
    for values in (x, lost):
        loss = lambda x: sum(tp.sum(part) for part in flat(name, layer(x, *weights)))  # noqa: E731
        slopes.append(tp.value_and_grad(loss)(tp.asarray(values)))
    assert slopes[0][0].item() == slopes[1][0].item()
    np.testing.assert_array_equal(slopes[0][1].numpy(), slopes[1][1].numpy())


def test_dtypes_are_promoted():
    x, weights, _ = given("lstm", "float32")
    y, (h, c) = tp.nn.lstm(x, weights[0].astype("float64"), *weights[1:])
    assert {tensor.dtype for tensor in (y, h, c)} == {tp.float64}


X, KERNEL, RECURRENT = np.ones((3, 5, 4)), np.ones((4, 8)), np.ones((2, 8))
REFUSED = {
    "rank": ((X[0], KERNEL, RECURRENT), {}, ShapeError, r"x must be \[batch, time, features\]"),
    "features": ((X[..., :3], KERNEL, RECURRENT), {}, ShapeError, r"kernel must .* \[3, 8\]"),
    "units": ((X, KERNEL, RECURRENT[:1]), {}, ShapeError, r"units\], got float64\[1,8\]$"),
    "no units": ((X, KERNEL, 1.0), {}, ShapeError, "recurrent_kernel must have rank 2, got"),
    "gates": (
        (X, KERNEL, RECURRENT[:, :7]),
        {},
        ShapeError,
        r"must be \[units, 4 \* units\], got",
    ),
    "bias": ((X, KERNEL, RECURRENT, np.ones(2)), {}, ShapeError, r"bias must have shape \[8\]"),
    "integers": (
        (X, KERNEL, RECURRENT.astype(int)),
        {},
        DTypeError,
        "recurrent_kernel must be fl",
    ),
    "direction": ((X, KERNEL, RECURRENT), {"direction": "back"}, ArgumentError, "'bidirectional'"),
    "one direction": (
        (X, KERNEL, RECURRENT),
        {"direction": "bidirectional"},
        ShapeError,
        r"recurrent_kernel must have rank 3, got float64\[2,8\]",
    ),
    "transposed": (
        (X, KERNEL.T, RECURRENT.T),
        {},
        ShapeError,
        r"must be \[units, 4 \* units\], got float64\[8,2\], which is its transpose$",
    ),
    "both": (
        (X, KERNEL, RECURRENT),
        {"lengths": [1, 1, 1], "mask": np.ones((3, 5), bool)},
        ArgumentError,
        "not both",
    ),
    "lengths": ((X, KERNEL, RECURRENT), {"lengths": [1]}, ShapeError, r"have shape \[3\]"),
    "half": ((X, KERNEL, RECURRENT), {"lengths": [0.5] * 3}, DTypeError, "must be integers"),
    "mask": ((X, KERNEL, RECURRENT), {"mask": np.ones((5, 3), bool)}, ShapeError, r"bool\[3,5\]"),
    "mask of numbers": ((X, KERNEL, RECURRENT), {"mask": np.ones((3, 5))}, DTypeError, "float64"),
    "one state": (
        (X, KERNEL, RECURRENT),
        {"initial_state": np.ones((3, 2))},
        ArgumentError,
        r"initial_state must be \(h, c\), got ndarray",
    ),
    "state": (
        (X, KERNEL, RECURRENT),
        {"initial_state": (np.ones((3, 2)), np.ones((2, 3)))},
        ShapeError,
        r"initial_state c must have shape \[3, 2\], got float64\[2,3\]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    arguments, options, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        tp.nn.lstm(*arguments, **options)


def test_gru_refuses():
    with pytest.raises(ShapeError, match=r"initial_state must have shape \[3, 2\], got float64"):
        tp.nn.gru(X, KERNEL[:, :6], RECURRENT[:, :6], initial_state=np.ones((3, 5)))
    with pytest.raises(ShapeError, match=r"recurrent_bias must have shape \[6\]"):
        tp.nn.gru(X, KERNEL[:, :6], RECURRENT[:, :6], None, np.ones(8))
