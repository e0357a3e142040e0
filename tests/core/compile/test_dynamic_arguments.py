"""Dynamic sizes: arguments of every kind, gradients from outside, observers, refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_dynamic import SIZES, assert_same, floats, matrix, programs, traces

import tensorplug as tp
from tensorplug.errors import ArgumentError, RecompileWarning, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_a_tree_by_prefix():
    def f(batch, scale):
        return tp.sum(batch["x"] * batch["y"][0][:, None]) * scale

    def batch(n):
        return {"x": floats(n, 4), "y": (floats(n), "unused")}

    for axes in ({"x": [0], "y": [0]}, {"x": 0, "y": (0, None)}, 0):
        given = axes if axes == 0 else {**axes, "y": axes["y"]}
        compiled = tp.compile(f, dynamic={"batch": given})
        for n in SIZES:
            assert_same(compiled(batch(n), 2.0), f(batch(n), 2.0))
            assert_same(compiled(batch=batch(n), scale=3.0), f(batch(n), 3.0))
        assert programs(compiled) == 2  # by position, and by name


def test_floats_and_variables_and_generators():
    total = tp.Variable(tp.zeros((4,)))
    generator = tp.random.Generator(7)

    def f(x, rate):
        noise = generator.uniform(x.shape)
        total.assign(total + tp.sum(x, axis=0))
        return x * (rate / x.shape[0]) + noise, rate * 2

    compiled, seen = traces(f, dynamic={"x": 0})
    sums = np.zeros(4, np.float32)
    other = tp.random.Generator(7)
    for n in SIZES[:3]:
        for rate in (0.5, 0.25):
            x = matrix(n)
            result, doubled = compiled(x, rate)
            sums += x.numpy().sum(0)
            assert doubled == 2 * rate
            noise = other.uniform(x.shape)
            assert_same(result, x * (rate / n) + noise)
            np.testing.assert_allclose(total.numpy(), sums, rtol=1e-5)
    assert (programs(compiled), len(seen)) == (1, 4)


def test_a_variable_of_a_dynamic_size_gets_the_exact_one():
    kept = tp.Variable(tp.zeros((0, 4)), trainable=False)

    def f(x):
        kept.assign(x * 2)
        return tp.sum(kept)

    with pytest.raises(ShapeError):
        f(matrix(17))
    result = tp.compile(lambda x: {"same": x, "double": [x * 2], "none": None}, dynamic={"x": 0})
    assert result(matrix(17))["double"][0].shape == (17, 4)
    assert_same(result(matrix(17))["same"], matrix(17))


def test_arguments_that_the_function_assigns_or_gives_up():
    def f(x):
        x[1] = 5.0
        return tp.sum(x, axis=0)

    compiled = tp.compile(f, dynamic={"x": 0})
    for n in SIZES[:2]:
        x, y = matrix(n), matrix(n)
        assert_same(compiled(x), f(y))
        assert_same(x, y)
    given = tp.compile(lambda x: x * 2, dynamic={"x": 0}, donate="x")
    for n in SIZES[:2]:
        x = matrix(n)
        assert_same(given(x), matrix(n) * 2)
        assert x.is_disposed


def test_gradients_from_outside_are_exact():
    compiled = tp.compile(lambda x: tp.mean(tp.log(x**2 + 1)), dynamic={"x": 0})
    with pytest.warns(RecompileWarning, match="a gradient flows through it from outside"):
        gradient = tp.grad(compiled)(matrix(17))
    x = matrix(17).numpy().astype(np.float64)
    np.testing.assert_allclose(gradient.numpy(), 2 * x / (x * x + 1) / x.size, rtol=1e-5)


def test_observers_see_no_padding():
    counted = tp.Variable(tp.zeros(()))
    generator, other = tp.random.Generator(3), tp.random.Generator(3)

    def f(x, rate, rng):
        counted.assign(counted + 1)
        return tp.sum(rate / x, axis=0) + rng.uniform((4,))

    compiled = tp.compile(lambda x, rate: f(x, rate, generator), dynamic={"x": 0})
    for rate in (0.5, 0.25, 0.125):
        expected = tp.sum(rate / matrix(17), axis=0) + other.uniform((4,))
        assert_same(compiled(matrix(17), rate), expected)
        with tp.debug():  # which refuses infinities
            expected = tp.sum(rate / matrix(17), axis=0) + other.uniform((4,))
            assert_same(compiled(matrix(17), rate), expected)
    assert counted.item() == 6


def test_a_function_that_changes_is_noticed():
    state = {"factor": 2.0}
    compiled = tp.compile(lambda x: x * state["factor"] + x.shape[0], dynamic={"x": 0})
    assert_same(compiled(matrix(17)), matrix(17) * 2 + 17)
    state["factor"] = 3.0
    assert_same(compiled(matrix(18)), matrix(18) * 3 + 18)
    assert_same(compiled(matrix(17)), matrix(17) * 2 + 17)  # as without dynamic sizes


def test_many_sizes_cause_no_warning_of_many_signatures():
    compiled = tp.compile(tp.sum, dynamic={"x": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(65, 96):
            assert_same(compiled(matrix(n)), tp.sum(matrix(n)))
    assert programs(compiled) == 1


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    (["x"], None, ArgumentError, "dynamic must be a dict of axes by the name or position"),
    ({"z": 0}, None, ArgumentError, "dynamic has 'z', but the parameters of f are x, rest"),
    ({7: 0}, None, ArgumentError, "dynamic has 7, but the parameters of f are x, rest"),
    ({"x": 1.5}, None, ArgumentError, "dynamic of 'x': axes must be integers, got 1.5"),
    ({"x": [True]}, None, ArgumentError, "dynamic of 'x': axes must be integers"),
    ({"x": {"a": "b"}}, None, ArgumentError, "dynamic of 'x': axes must be integers, got 'b'"),
    ({"x": 2}, matrix(5), ShapeError, "dynamic of x, float32[5,4]: axis 2"),
    ({"x": {"a": 0}}, matrix(5), ArgumentError, "dynamic of x: dict of ['a'] for Tensor"),
    ({"x": {"a": 0}}, {"b": matrix(5)}, ArgumentError, "dict of ['a'] for dict of ['b']"),
    ({"x": [3]}, {"b": [matrix(5)]}, ShapeError, "dynamic of x['b'][0], float32[5,4]: axis 3"),
]


@pytest.mark.parametrize(("dynamic", "argument", "error", "message"), BAD)
def test_what_is_refused(dynamic, argument, error, message):
    def f(x, rest=None):
        return x

    with pytest.raises(error) as caught:
        tp.compile(f, dynamic=dynamic)(argument)
    assert message in str(caught.value)
