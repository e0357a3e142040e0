"""All optimizers: compiled, mapped over an ensemble, saved, differentiated, and on variables."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import tree

from .formulas import RULES

train = tp.train


def clip(gradients):
    return train.clip_by_global_norm(gradients, 0.1)[0]


OPTIMIZERS = {name: rule.optimizer for name, rule in RULES.items()} | {
    "chain": train.chain(clip, train.adam(0.1)),
    "accumulate": train.accumulate(train.momentum(0.1), 3),
    "scaled": train.LossScaled(train.chain(clip, train.adam(0.1)), train.LossScale(interval=2)),
    "accumulate scaled": train.accumulate(train.LossScaled(train.sgd(0.1)), 2),
    "lbfgs": train.lbfgs(3),
}
WITH_VARIABLES = [name for name in OPTIMIZERS if name != "lbfgs"]  # whose loop has no gradient
for_each = pytest.mark.parametrize("name", OPTIMIZERS)
X = np.random.default_rng(0).normal(size=(6, 4))


def loss_of(shift=0.0):
    x = tp.asarray(X)

    def loss(params):
        hidden = tp.tanh(x @ params["w"] + params["b"][0])
        return tp.mean(tp.square(hidden - 0.5 - shift)) + 1e-3 * tp.sum(tp.square(params["w"]))

    return loss


def start(seed=1):
    rng = np.random.default_rng(seed)
    return {"w": tp.asarray(rng.normal(size=(4, 3))), "b": [tp.asarray(rng.normal(size=3))]}


def stepping(optimizer):
    """Return a function of (params, state, shift) that takes a step."""

    def step(params, state, shift):
        loss = loss_of(shift)
        value, gradients = tp.value_and_grad(lambda p: optimizer.scale(loss(p), state))(params)
        return optimizer.step(gradients, state, params, value=value, value_fn=loss)

    return step


def run(step, params, state, turns=range(7)):
    for turn in turns:
        params, state = step(params, state, tp.asarray(0.01 * turn, dtype="float64"))
    return params, state


def agree(found, expected, rtol=1e-9):
    """Compare two trees by paths, types and values."""
    assert sorted(tree.paths(found)) == sorted(tree.paths(expected))

    def compare(one, other):
        assert one.type == other.type
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol, atol=rtol)

    tp.tree_map(compare, found, expected)


@for_each
def test_compiled_steps_are_steps(name):
    optimizer, params = OPTIMIZERS[name], start()
    step, traces = stepping(optimizer), []

    def counted(*args):
        traces.append(name)
        return step(*args)

    expected = run(step, params, optimizer.init(params))
    agree(run(tp.compile(counted), params, optimizer.init(params)), expected)
    assert traces == [name]
    assert np.abs(expected[0]["w"].numpy() - params["w"].numpy()).min() > 1e-4


@for_each
def test_an_ensemble_steps_like_its_members(name):
    optimizer, members = OPTIMIZERS[name], [start(seed) for seed in (1, 2, 3)]
    together = tp.tree_map(lambda *leaves: tp.stack(leaves), *members)
    step = stepping(optimizer)
    mapped = tp.vmap(step, in_axes=(0, 0, None))
    params, state = run(mapped, together, tp.vmap(optimizer.init)(together), range(4))
    for k, member in enumerate(members):
        expected = run(step, member, optimizer.init(member), range(4))
        agree(tp.tree_map(lambda leaf, k=k: leaf[k], (params, state)), expected)


@for_each
def test_a_saved_or_copied_state_continues_exactly(name, tmp_path):
    optimizer, step = OPTIMIZERS[name], stepping(OPTIMIZERS[name])
    params, state = run(step, start(), optimizer.init(start()), range(4))
    tp.save({"params": params, "state": state}, tmp_path / "saved.safetensors")
    loaded = tp.load(tmp_path / "saved.safetensors")
    wanted = run(step, params, copy.deepcopy(state), range(4, 7))
    agree(run(step, loaded["params"], loaded["state"], range(4, 7)), wanted, rtol=0)


@for_each
def test_update_and_step_are_the_same(name):
    optimizer, params, loss = OPTIMIZERS[name], start(), loss_of()
    state = optimizer.init(params)
    gradients = tp.grad(lambda p: optimizer.scale(loss(p), state))(params)
    updates, after = optimizer.update(gradients, state, params, value_fn=loss)
    agree(
        (train.apply_updates(params, updates), after),
        optimizer.step(gradients, state, params, value_fn=loss),
    )


@pytest.mark.parametrize("name", WITH_VARIABLES)
def test_a_step_has_a_derivative(name):
    """Beside a difference quotient, with respect to the shift that the loss of each step has."""
    optimizer, step = OPTIMIZERS[name], stepping(OPTIMIZERS[name])

    def after(shift):
        params, state = start(), optimizer.init(start())
        for _ in range(3):
            params, state = step(params, state, shift)
        return loss_of()(params)

    at, h = np.asarray(0.1), 1e-5
    slope = float(tp.grad(after, unconnected="zeros")(tp.asarray(at)))
    ends = [float(after(tp.asarray(at + offset))) for offset in (h, -h)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", WITH_VARIABLES)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_variables_move_like_trees(name, compiled, tmp_path):
    """Also after the state was saved, set to another one, and restored."""
    optimizer, params = copy.copy(OPTIMIZERS[name]), start()
    w, b = tp.Variable(params["w"], name="w"), tp.Variable(params["b"][0], name="b")

    def step(shift):
        return optimizer.minimize(lambda: loss_of(shift)({"w": w, "b": [b]}), [w, b])

    take = tp.compile(step) if compiled else step
    state = optimizer.init(params)
    for turn in range(7):
        shift = tp.asarray(0.01 * turn, dtype="float64")
        expected = loss_of(shift)(params)
        if turn == 3:
            saved = [optimizer.state, w.read(), b.read()]
            tp.save(saved[0], tmp_path / "state.safetensors")
            take(shift)
            assert int(optimizer.state.get("step", 0)) in {0, 4}
            optimizer.state = tp.load(tmp_path / "state.safetensors")
            w.assign(saved[1])
            b.assign(saved[2])
        agree(take(shift), expected, rtol=1e-12)
        params, state = stepping(optimizer)(params, state, shift)
        agree({"w": w.read(), "b": [b.read()]}, params)
    agree(optimizer.state, _by_name(state))


def _by_name(state):
    """Return a state of the tree in the form of that of variables."""
    if not isinstance(state, dict):
        return state
    if set(state) == {"w", "b"}:
        return {"w": state["w"], "b": state["b"][0]}
    return {name: _by_name(item) for name, item in state.items()}


# L-BFGS -------------------------------------------------------------------------------------


def rosenbrock(p):
    x, y = p["x"], p["y"]
    return tp.sum(100.0 * tp.square(y - tp.square(x)) + tp.square(1.0 - x))


def minimum(loss, params, steps, optimizer):
    state = optimizer.init(params)
    step = tp.compile(
        lambda params, state: optimizer.step(tp.grad(loss)(params), state, params, value_fn=loss)
    )
    for _ in range(steps):
        params, state = step(params, state)
    return params


def test_lbfgs_finds_the_minimum_of_rosenbrock():
    """From the classical start, where gradient descent needs thousands of steps."""
    params = {"x": tp.asarray([-1.2], dtype="float64"), "y": tp.asarray([1.0], dtype="float64")}
    found = minimum(rosenbrock, params, 40, train.lbfgs())
    np.testing.assert_allclose([found["x"].item(), found["y"].item()], [1, 1], rtol=1e-8)


def test_lbfgs_finds_the_minimum_of_a_logistic_regression():
    """The gradient vanishes there, and Newton's method leads to the same place."""
    rng = np.random.default_rng(3)
    x, labels = rng.normal(size=(50, 4)), (rng.random(50) < 0.4).astype(np.float64)
    w = np.zeros(4)
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ w))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + 0.1 * np.eye(4)
        w = w - np.linalg.solve(hessian, x.T @ (p - labels) + 0.1 * w)

    def loss(params):
        scores = tp.asarray(x) @ params
        terms = tp.nn.softplus(scores) - tp.asarray(labels) * scores
        return tp.sum(terms) + 0.05 * tp.sum(tp.square(params))

    found = minimum(loss, tp.zeros(4, dtype="float64"), 20, train.lbfgs())
    np.testing.assert_allclose(found.numpy(), w, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_search_satisfies_wolfes_conditions(scale):
    optimizer, params = train.lbfgs(curvature=0.5), tp.asarray(np.array([2.0, -3.0, 0.5]))

    def loss(p):
        return scale * tp.sum(tp.square(tp.square(p) - tp.asarray([1.0, 4.0, 9.0])) + p)

    state = optimizer.init(params)
    for _ in range(12):
        value, g = tp.value_and_grad(loss)(params)
        updates, state = optimizer.update(g, state, params, value=value, value_fn=loss)
        params = train.apply_updates(params, updates)
        after, h = tp.value_and_grad(loss)(params)
        slope = float(tp.sum(g * updates))
        assert slope < 0
        assert float(after) <= float(value) + 1e-4 * slope + 1e-12 * abs(float(value))
        assert float(tp.sum(h * updates)) >= 0.5 * slope


def test_nothing_moves_at_the_minimum():
    params = tp.zeros(3)
    moved, state = train.lbfgs().step(
        tp.zeros(3), train.lbfgs().init(params), params, value_fn=lambda p: tp.sum(p * p)
    )
    assert moved.tolist() == [0, 0, 0]
    assert not state["moves"].numpy().any()


# Composition --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [train.sgd, train.momentum, train.adamw, train.lion, train.lamb])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_mask_spares_biases(make, compiled):
    """With and without kernels, as a tree and as a function."""
    params = start()
    masks = (lambda p: tp.tree_map(lambda leaf: leaf.ndim > 1, p), {"w": True, "b": [False]})
    with_, without = make(0.1, weight_decay=0.5), make(0.1, weight_decay=0.0)
    wanted = [
        run(stepping(each), params, each.init(params), range(1))[0] for each in (with_, without)
    ]
    for mask in masks:
        optimizer = make(0.1, weight_decay=0.5, mask=mask)
        step = tp.compile(stepping(optimizer)) if compiled else stepping(optimizer)
        found = run(step, params, optimizer.init(params), range(1))[0]
        agree(found["w"], wanted[0]["w"], 1e-12)
        agree(found["b"], wanted[1]["b"], 1e-12)
        assert abs(wanted[0]["b"][0] - wanted[1]["b"][0]).numpy().min() > 1e-4


def test_accumulated_batches_step_like_one():
    rng = np.random.default_rng(0)
    x = tp.asarray(rng.normal(size=(12, 4)))
    plain, optimizer = train.adam(0.1), train.accumulate(train.adam(0.1), 3)
    params = moved = tp.asarray(rng.normal(size=4))
    state, other = plain.init(params), optimizer.init(params)

    def gradient(params, part):
        return tp.grad(lambda p: tp.mean(tp.square(tp.tanh(part @ p) - 0.5)))(params)

    for _ in range(4):
        params, state = plain.step(gradient(params, x), state, params)
        before = moved.tolist()
        for k in range(3):
            assert moved.tolist() == before
            moved, other = optimizer.step(gradient(moved, x[4 * k : 4 * k + 4]), other, moved)
        agree(moved, params)
    agree(other["optimizer"], state)
    assert (other["count"].item(), other["sums"].tolist()) == (0, [0, 0, 0, 0])


@pytest.mark.parametrize("decay", [0.0, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_running_means_of_parameters(decay, dtype):
    values = np.random.default_rng(0).normal(size=(5, 3)).astype(dtype)
    averaging = train.ema(decay)
    state = averaging.init({"w": tp.asarray(values[0])})
    update = tp.compile(averaging.update)
    for t, value in enumerate(values, 1):
        state = update({"w": tp.asarray(value)}, state)
        expected = np.average(values[:t], axis=0, weights=decay ** np.arange(t)[::-1])
        found = averaging.value(state)["w"]
        assert found.type == tp.TensorType(dtype, (3,))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
