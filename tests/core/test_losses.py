"""Losses against their formulas in NumPy, with weights and every reduction."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

REDUCTIONS = ("none", "sum", "mean", "sum_by_nonzero_weights")
RNG = np.random.default_rng(3)
LABELS = RNG.uniform(0.1, 0.9, (4, 3))
PREDICTIONS = RNG.uniform(0.1, 0.9, (4, 3))
LOGITS = RNG.normal(size=(4, 3)) * 3
ONEHOT = np.eye(3)[[0, 2, 1, 1]]
BITS = (LABELS > 0.5).astype(np.float64)


@pytest.fixture(autouse=True)
def _on_the_cpu():
    with tp.use_backend("cpu"):
        yield


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return np.log(np.exp(x) / np.exp(x).sum(-1, keepdims=True))


def huber(a, b, delta):
    e = np.abs(a - b)
    return np.where(e <= delta, e**2 / 2, delta * (e - delta / 2))


def binary(y, p, eps=0.0):
    return -y * np.log(p + eps) - (1 - y) * np.log(1 - p + eps)


# name -> labels, predictions, options, losses
CASES = {
    "absolute_difference": (LABELS, PREDICTIONS, {}, np.abs(LABELS - PREDICTIONS)),
    "mean_squared_error": (LABELS, PREDICTIONS, {}, (LABELS - PREDICTIONS) ** 2),
    "hinge_loss": (BITS, LOGITS, {}, np.maximum(0, 1 - (2 * BITS - 1) * LOGITS)),
    "huber_loss": (LABELS, LOGITS, {}, huber(LABELS, LOGITS, 1.0)),
    "huber_loss delta": (LABELS, LOGITS, {"delta": 0.3}, huber(LABELS, LOGITS, 0.3)),
    "log_loss": (BITS, PREDICTIONS, {}, binary(BITS, PREDICTIONS, 1e-7)),
    "log_loss epsilon": (LABELS, BITS, {"epsilon": 0.01}, binary(LABELS, BITS, 0.01)),
    "cosine_distance": (
        LABELS,
        PREDICTIONS,
        {"axis": -1},
        1 - np.einsum("ij,ij->i", LABELS, PREDICTIONS)[:, None],
    ),
    "cosine_distance axis 0": (
        LABELS,
        PREDICTIONS,
        {"axis": 0},
        1 - np.einsum("ij,ij->j", LABELS, PREDICTIONS)[None],
    ),
    "sigmoid_cross_entropy": (BITS, LOGITS, {}, binary(BITS, sigmoid(LOGITS))),
    "sigmoid_cross_entropy smooth": (
        BITS,
        LOGITS,
        {"label_smoothing": 0.2},
        binary(BITS * 0.8 + 0.1, sigmoid(LOGITS)),
    ),
    "softmax_cross_entropy": (ONEHOT, LOGITS, {}, -(ONEHOT * log_softmax(LOGITS)).sum(-1)),
    "softmax_cross_entropy smooth": (
        ONEHOT,
        LOGITS,
        {"label_smoothing": 0.3},
        -((ONEHOT * 0.7 + 0.1) * log_softmax(LOGITS)).sum(-1),
    ),
}
WEIGHTS = {
    "absent": None,
    "scalar": np.array(0.5),
    "zeros among them": np.array([0.0, 2.0, 0.0, 0.25]),
    "negative": np.array([1.0, -3.0, 1.0, 0.0]),
}


def expected(losses, weights, how):
    w = np.ones(losses.shape) if weights is None else np.broadcast_to(weights, losses.shape)
    if how == "none":
        return losses * w
    divisor = {"sum": 1, "mean": w.sum(), "sum_by_nonzero_weights": (w != 0).sum()}[how]
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing weighs anything
        return np.sum(losses * w) / np.float64(divisor)


def called(name):
    """Return a loss as a function of labels, predictions and weights."""
    function = getattr(tp.losses, name)
    if name != "cosine_distance":
        return function
    return lambda a, b, w=None, /, *, axis=0, **rest: function(a, b, axis, w, **rest)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_values(case, weights):
    labels, predictions, options, losses = CASES[case]
    function = called(case.split()[0])
    given = WEIGHTS[weights]
    if given is not None and given.ndim and losses.ndim == 2:
        given = given[: losses.shape[0], None]
    for how in REDUCTIONS:
        found = function(labels, predictions, given, reduction=how, **options)
        right = expected(losses, given, how)
        assert (str(found.dtype), found.shape) == ("float64", right.shape), how
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-10, atol=1e-14)
    default = function(labels, predictions, given, **options)
    np.testing.assert_allclose(
        default.numpy(), expected(losses, given, "sum_by_nonzero_weights"), rtol=1e-10
    )


@pytest.mark.parametrize("case", CASES)
def test_gradients(case):
    labels, predictions, options, losses = CASES[case]
    function = called(case.split()[0])
    weights = np.linspace(0.5, 2, losses.shape[0]).reshape((-1,) + (1,) * (losses.ndim - 1))

    def f(predicted, weight):
        return function(labels, predicted, weight, **options)

    if case == "log_loss epsilon":  # log is steep at the bounds
        predictions = PREDICTIONS
    check_grads(f, [predictions, weights], order=2)


@pytest.mark.parametrize("how", REDUCTIONS)
def test_weighing_alone(how):
    losses = np.arange(6.0).reshape(2, 3)
    found = tp.losses.compute_weighted_loss(losses, [[1.0, 0.0, 3.0]], reduction=how)
    right = expected(losses, np.array([[1.0, 0.0, 3.0]]), how)
    assert found.shape == right.shape
    np.testing.assert_allclose(found.numpy(), right, rtol=1e-6)


def test_weights_of_zero():
    for how in ("mean", "sum_by_nonzero_weights"):
        assert np.isnan(tp.losses.compute_weighted_loss([1.0, 2.0], 0.0, reduction=how).item())
    assert tp.losses.compute_weighted_loss([1.0, 2.0], 0.0, reduction="sum").item() == 0


@pytest.mark.parametrize("size", [200.0, 1e4, 1e30])
def test_large_logits_lose_nothing(size):
    """The loss of a sure and wrong prediction is the logit itself, of a right one nothing."""
    x, y = tp.asarray([size, -size]), tp.asarray([0.0, 1.0])
    wrong = tp.losses.sigmoid_cross_entropy(y, x, reduction="none")
    np.testing.assert_array_equal(wrong.numpy(), np.float32([size, size]))
    right = tp.losses.sigmoid_cross_entropy(1 - y, x, reduction="none")
    np.testing.assert_array_equal(right.numpy(), np.float32([0, 0]))


def test_integers_become_floats():
    found = tp.losses.softmax_cross_entropy(tp.asarray([[0, 1]]), tp.asarray([[0.0, 0.0]]))
    assert found.dtype is tp.float32
    assert found.item() == pytest.approx(np.log(2))


@pytest.mark.parametrize("name", sorted({case.split()[0] for case in CASES}))
def test_bad_calls(name):
    function = called(name)
    x = tp.asarray([[1.0, 2.0, 3.0]])
    what = "logits" if "entropy" in name else "predictions"
    with pytest.raises(ShapeError) as caught:
        function(x, x[:, :2])
    assert (
        str(caught.value)
        == f"{name}: labels and {what} must have the same shape, got float32[1,3] and float32[1,2]"
    )
    with pytest.raises(ShapeError, match=rf"{name}: weights float32\[2\] do not broadcast to the"):
        function(x, x, [1.0, 2.0])
    with pytest.raises(ArgumentError, match=f"{name}: reduction must be one of 'none', 'sum'"):
        function(x, x, reduction="average")
    for given in ((x, x, ["a"]), (["a"], x), (x, [["a", "b", "c"]])):
        with pytest.raises(
            DTypeError, match=f"{name}: .* must hold numbers or booleans, got string"
        ):
            function(*given)


def test_labels_without_an_axis():
    with pytest.raises(ShapeError, match="must have at least rank 1"):
        tp.losses.softmax_cross_entropy(1.0, 1.0)
