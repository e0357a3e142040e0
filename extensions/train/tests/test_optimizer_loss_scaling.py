"""Loss scaling in the optimizers of variables, against the same steps in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, NotConnectedError, ShapeError

from .expecting import expect
from .test_variables import MAKE

INF, NAN = math.inf, math.nan
START = [1.0, -2.0, 0.5]
GRADIENTS = np.array(
    [
        [0.5, 1.0, -2.0],
        [INF, 1.0, 1.0],
        [1.0, 0.25, 0.5],
        [0.5, NAN, 0.5],
        [0.0, 1.0, 2.0],
        [3.0, -0.5, 1.0],
        [1.0, 1.0, 1.0],
        [0.5, -INF, 1.0],
        [0.25, 2.0, 1.0],
    ]
)


def close(tensor: Any, dtype: str, shape: tuple[int, ...], values: Any, rtol: float) -> None:
    assert (str(tensor.dtype), tensor.shape) == (dtype, shape)
    np.testing.assert_allclose(tensor.numpy(), values, rtol=rtol)


class ScalingInNumPy:
    """The rule of the factor, in numbers."""

    def __init__(self, scale: float, interval: int) -> None:
        self.scale, self.interval, self.run = scale, interval, 0

    def after(self, finite: bool) -> float:
        self.run = self.run + 1 if finite else 0
        if not finite:
            self.scale /= 2
        elif self.run == self.interval:
            self.scale, self.run = self.scale * 2, 0
        return self.scale


def in_numpy(formula: Any, gradients: Any, initial: float) -> tuple[Any, list[float], int]:
    """Return the variable after all steps, the factor after each, and the steps not skipped."""
    scaling, state, scales, taken = ScalingInNumPy(initial, 2), {}, [], 0
    w = np.array(START)
    for g in gradients:
        finite = bool(np.isfinite(g).all())
        if finite:
            taken += 1
            w = formula(w, g, state, taken)
        scales.append(scaling.after(finite))
    return w, scales, taken


def scaled(make: Any, initial: float, interval: int | None = 2) -> Any:
    """Return an optimizer like that of ``make``, with loss scaling."""
    plain = make()
    options = {name: value for name, value in vars(plain).items() if name[0] != "_"}
    loss_scale = tp.train.LossScale(initial, interval=interval)
    return type(plain)(plain.learning_rate, **options, loss_scale=loss_scale)


def scale_of(optimizer: Any) -> float:
    state = optimizer.weights()["loss_scale"]
    assert {name: str(value.type) for name, value in state.items()} == {
        "scale": "float32[]",
        "finite_steps": "int32[]",
    }
    return state["scale"].item()


def stepping(optimizer: Any, w: Any, *, compiled: bool) -> Any:
    """Return a function that takes a step of which the gradient is its argument."""

    def step(g: Any) -> Any:
        return optimizer.minimize(lambda: tp.sum(w * g), [w])

    return tp.compile(step) if compiled else step


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
def test_steps_and_factors_are_those_of_numpy(formula: Any, compiled: bool) -> None:
    w = tp.Variable(tp.asarray(START, dtype="float32"), name="w")
    optimizer = scaled(MAKE[formula], 8.0)
    step = stepping(optimizer, w, compiled=compiled)
    scales = []
    for g in GRADIENTS:
        before = w.numpy().copy()
        loss = step(tp.asarray(g, dtype="float32"))
        close(loss, "float32", (), np.sum(before * g), 1e-6)
        if not np.isfinite(g).all():
            np.testing.assert_array_equal(w.numpy(), before)
        scales.append(scale_of(optimizer))
    values, factors, taken = in_numpy(formula, GRADIENTS, 8.0)
    assert scales == factors
    assert (optimizer.iterations, type(optimizer.iterations), taken) == (6, int, 6)
    close(w, "float32", (3,), values, 2e-3 if formula.__name__ == "centered" else 2e-5)


@pytest.mark.parametrize("formula", MAKE, ids=lambda formula: formula.__name__)
def test_without_overflow_the_steps_are_those_without_scaling(formula: Any) -> None:
    paths = []
    for optimizer in (MAKE[formula](), scaled(MAKE[formula], 2.0**15)):
        w = tp.Variable(tp.asarray(START, dtype="float64"), name=None)
        step = stepping(optimizer, w, compiled=False)
        paths.append([])
        for g in GRADIENTS[np.isfinite(GRADIENTS).all(axis=1)]:
            step(tp.asarray(g))
            paths[-1].append(w.numpy().copy())
    np.testing.assert_allclose(paths[1], paths[0], rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_scaled_gradient_that_overflows_in_halves_shrinks_the_factor(compiled: bool) -> None:
    w = tp.Variable(tp.asarray(START, dtype="float16"), name="w")
    optimizer = tp.train.SGD(0.25, loss_scale=tp.train.LossScale(2.0**15))
    step = stepping(optimizer, w, compiled=compiled)
    g = np.array([3.0, 1.0, 0.5], np.float16)
    expected = np.array(START, np.float16)
    for turn, factor in enumerate([2.0**14, 2.0**14]):  # 3 * 2**15 is more than float16 has
        step(tp.asarray(g))
        expect(w, "float16", (3,), expected - np.float16(0.25) * g * turn)
        assert scale_of(optimizer) == factor
    assert optimizer.iterations == 1


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("outside", [False, True], ids=["in the loss", "around the step"])
def test_gradients_that_vanish_in_halves_do_not(dtype: str, outside: bool, compiled: bool) -> None:
    """The cotangent of the product is 1e-6, and that of w 1e-9: 0 in float16, but not scaled."""
    w = tp.Variable(tp.asarray([[1.0]]), name="w")
    optimizer = tp.train.SGD(1e6, loss_scale=tp.train.LossScale(2.0**15))

    def loss() -> Any:
        with tp.autocast(dtype):
            return tp.sum(w @ tp.full((1, 1), 1e-3)) * 1e-6

    def step() -> Any:
        with tp.autocast(dtype, enabled=outside):
            return optimizer.minimize(loss)

    (tp.compile(step) if compiled else step)()
    close(w, "float32", (1, 1), [[1 - 1e6 * 1e-9]], 1e-5)


@pytest.mark.parametrize("bad", ["a", "b"])
def test_one_variable_that_overflows_stops_all(bad: str) -> None:
    a, b = tp.Variable([1.0], name="a"), tp.Variable([2.0], name="b")
    optimizer = tp.train.Momentum(0.5, loss_scale=tp.train.LossScale(8.0))
    optimizer.apply_gradients({name: [INF if name == bad else 1.0] for name in ("a", "b")})
    assert (a.item(), b.item(), optimizer.iterations, scale_of(optimizer)) == (1, 2, 0, 4)
    velocity = optimizer.weights()["velocity"]
    assert {name: value.tolist() for name, value in velocity.items()} == {"a": [0], "b": [0]}
    optimizer.apply_gradients({"a": [1.0], "b": [2.0]})
    assert (a.item(), b.item(), optimizer.iterations) == (0.5, 1, 1)


def test_gradients_between_computing_and_applying_are_unscaled() -> None:
    w = tp.Variable([3.0], name="w")
    frozen = tp.Variable([2.0], name="frozen", trainable=False)
    optimizer = tp.train.SGD(1.0, loss_scale=tp.train.LossScale(1024.0))
    found = optimizer.compute_gradients(lambda: tp.sum(w * w * frozen), [w, frozen])
    expect(found.value, "float32", (), 18.0)
    expect(found.grads["w"], "float32", (1,), [12.0])
    assert found.grads["frozen"] is None
    clipped, norm = tp.train.clip_by_global_norm([found.grads["w"]], 1.0)
    assert norm.item() == 12
    optimizer.apply_gradients([(w, clipped[0]), (frozen, None)])
    assert (w.item(), frozen.item()) == (2, 2)


def test_minimize_returns_what_f_returns() -> None:
    w = tp.Variable(3.0, name="w")
    optimizer = tp.train.SGD(0.5, loss_scale=tp.train.LossScale())
    value, aux = optimizer.minimize(lambda: (w * w, "more"), has_aux=True)
    expect(value, "float32", (), 9.0)
    assert (aux, w.item()) == ("more", 0)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (
            lambda w: w * 2,
            ShapeError,
            "f must return a scalar, a tensor of shape [], got float32[1]",
        ),
        (lambda _: 1.0, ArgumentError, "f must return"),
        (lambda _: tp.asarray(1.0), NotConnectedError, "no differentiable path"),
    ],
)
def test_its_errors_are_those_without_scaling(f: Any, error: Any, message: str) -> None:
    w = tp.Variable([3.0], name="w")
    found = []
    for options in ({}, {"loss_scale": tp.train.LossScale()}):
        with pytest.raises(error) as caught:
            tp.train.SGD(0.5, **options).minimize(lambda: f(w), [w])
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert message in found[0] or "tensor" in found[0]
    assert w.item() == 3


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_state_is_saved_and_restored(compiled: bool, tmp_path: Any) -> None:
    w = tp.Variable(tp.asarray(START), name="w")
    make = MAKE[next(formula for formula in MAKE if formula.__name__ == "adam")]
    optimizer = scaled(make, 8.0, interval=3)
    step = stepping(optimizer, w, compiled=compiled)
    given = [tp.asarray(g, dtype="float32") for g in GRADIENTS]
    for g in given[:3]:
        step(g)
    path = tmp_path / "optimizer.safetensors"
    saved = optimizer.weights()
    tp.save(saved, path)
    there = w.read()
    ends = []
    for fresh in (False, False, True):
        if fresh:
            optimizer = scaled(make, 1.0, interval=3)
            step = stepping(optimizer, w, compiled=compiled)
        optimizer.set_weights(tp.load(path, like=saved))
        w.assign(there)
        assert (optimizer.iterations, scale_of(optimizer)) == (2, 4)
        for g in given[3:]:
            step(g)
        ends.append((w.tolist(), scale_of(optimizer), optimizer.iterations))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0][1:] == (2, 6)  # 8, 4, 2, then 4 after three finite steps, then 2


def test_a_schedule_counts_the_steps_that_were_taken() -> None:
    seen = []

    def schedule(taken: Any) -> Any:
        expect(taken, "int32", (), seen[-1])
        return 0.5

    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(schedule, loss_scale=tp.train.LossScale())
    for taken, g in ((0, 1.0), (1, INF), (1, 1.0), (2, NAN)):
        seen.append(taken)
        optimizer.apply_gradients({"w": [g]})
    assert w.item() == 0


def test_a_constant_factor_still_skips() -> None:
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(0.5, loss_scale=tp.train.LossScale(8.0, interval=None))
    for g in (1.0, NAN, INF, 1.0):
        optimizer.apply_gradients({"w": [g]})
        assert scale_of(optimizer) == 8
    assert (w.item(), optimizer.iterations) == (0, 2)


def test_setting_the_number_of_steps() -> None:
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(lambda taken: taken * 1.0, loss_scale=tp.train.LossScale())
    optimizer.iterations = 3
    assert optimizer.iterations == 3
    optimizer.apply_gradients({"w": [1.0]})
    assert (w.item(), optimizer.iterations) == (-2, 4)


STATE = {"scale": 4.0, "finite_steps": 1}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"iterations": 1}, r"SGD needs \['iterations', 'loss_scale'\], got \['iterations'\]"),
        ({"iterations": 1, "loss_scale": {"scale": 4.0}}, r"loss_scale needs \['finite_steps', "),
        ({"iterations": 1, "loss_scale": 4.0}, r"loss_scale needs \['finite_steps', 'scale'\]"),
        (
            {"iterations": 1, "loss_scale": {**STATE, "scale": [4.0]}},
            r"loss_scale\['scale'\] must be float32\[\], got float32\[1\]",
        ),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(weights: Any, message: str) -> None:
    optimizer = tp.train.SGD(loss_scale=tp.train.LossScale(8.0))
    with pytest.raises(ArgumentError, match=f"set_weights: {message}"):
        optimizer.set_weights(weights)
    assert (scale_of(optimizer), optimizer.iterations) == (8, 0)
    with pytest.raises(ArgumentError, match="SGD needs"):
        tp.train.SGD().set_weights(optimizer.weights())


def test_what_is_no_loss_scale_is_refused() -> None:
    for given in (1024.0, "dynamic", True):
        with pytest.raises(ArgumentError, match=r"SGD: loss_scale must be a LossScale or None"):
            tp.train.SGD(loss_scale=given)


def test_its_text() -> None:
    optimizer = tp.train.SGD(0.5, loss_scale=tp.train.LossScale(8.0))
    assert repr(optimizer) == (
        "SGD(learning_rate=0.5, iterations=0, "
        "loss_scale=LossScale(8.0, interval=2000, growth=2.0, backoff=0.5))"
    )


def test_the_loss_scale_of_a_program_is_fixed() -> None:
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.SGD(0.5, loss_scale=tp.train.LossScale(8.0))
    step = tp.compile(lambda g: optimizer.apply_gradients([(w, g)]))
    step(tp.asarray([1.0]))
    with pytest.raises(AttributeError):
        optimizer.loss_scale = None
    optimizer.learning_rate = lambda _: 0.5
    with pytest.raises(CompileError, match="options of SGD have changed"):
        step(tp.asarray([1.0]))


def test_it_is_no_listed_variable() -> None:
    w = tp.Variable([1.0], name="w")
    optimizer = tp.train.Adam(0.5, loss_scale=tp.train.LossScale())
    optimizer.minimize(lambda: tp.sum(w * w))
    tp.dispose_variables()
    v = tp.Variable([1.0], name="v")
    optimizer.minimize(lambda: tp.sum(v * v), [v])
    assert optimizer.iterations == 2
