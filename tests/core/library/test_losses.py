"""Losses against their formulas in NumPy, with weights and every reduction."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from tests.core.support.public_functions import FUNCTIONS

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tensorplug.testing import check_grads

REDUCTIONS = ("none", "sum", "mean", "sum_by_nonzero_weights")
RNG = np.random.default_rng(3)
LABELS = RNG.uniform(0.1, 0.9, (4, 3))
PREDICTIONS = RNG.uniform(0.1, 0.9, (4, 3))
LOGITS = RNG.normal(size=(4, 3)) * 3
ONEHOT = np.eye(3)[[0, 2, 1, 1]]
BITS = (LABELS > 0.5).astype(np.float64)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


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
    "binary_cross_entropy": (BITS, PREDICTIONS, {}, binary(BITS, PREDICTIONS)),
    "binary_cross_entropy smooth": (
        BITS,
        PREDICTIONS,
        {"label_smoothing": 0.2},
        binary(BITS * 0.8 + 0.1, PREDICTIONS),
    ),
    "kl_divergence": (LABELS, PREDICTIONS, {}, (LABELS * np.log(LABELS / PREDICTIONS)).sum(-1)),
    "kl_divergence axis 0": (
        LABELS,
        PREDICTIONS,
        {"axis": 0},
        (LABELS * np.log(LABELS / PREDICTIONS)).sum(0),
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
    if given is not None and given.ndim:
        given = given[: losses.shape[0]].reshape(-1, *(1,) * (losses.ndim - 1))
    for how in REDUCTIONS:
        found = function(labels, predictions, given, reduction=how, **options)
        right = expected(losses, given, how)
        assert (str(found.dtype), found.shape) == ("float64", right.shape), how
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-10, atol=1e-14)
    default = function(labels, predictions, given, **options)
    np.testing.assert_allclose(
        default.numpy(), expected(losses, given, "sum_by_nonzero_weights"), rtol=1e-10
    )


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
    what = "logits" if "logits" in inspect.signature(function).parameters else "predictions"
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


INF, NAN = np.inf, np.nan
LARGE = 1 + np.log(4.0)  # the slope of y * log(y / p) in y, at y = 1 and p = 1/4
EDGES = {  # name: labels, predictions, losses, their slopes in the labels, in the predictions
    "binary_cross_entropy": [
        (1.0, 1.0, 0.0, -100.0, -1.0),
        (0.0, 0.0, 0.0, 100.0, 1.0),
        (1.0, 0.0, 100.0, 100.0, 0.0),
        (0.0, 1.0, 100.0, -100.0, 0.0),
        (0.5, 1.0, 50.0, -100.0, -0.5),
        (1.0, NAN, NAN, NAN, NAN),
    ],
    "kl_divergence": [
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 0.25, 0.0, 0.0, 0.0),
        (1.0, 0.25, np.log(4.0), LARGE, -4.0),
        (1.0, 1.0, 0.0, 1.0, -1.0),
        (1.0, 0.0, INF, INF, -INF),
        (0.0, NAN, NAN, NAN, NAN),
        (NAN, 0.5, NAN, NAN, NAN),
    ],
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", EDGES)
def test_probabilities_of_0_and_1(name, dtype):
    labels, predictions, losses, *slopes = np.array(EDGES[name]).T[..., None]
    function = getattr(tp.losses, name)
    given = [tp.asarray(x, dtype=dtype) for x in (labels, predictions)]

    def total(y, p):
        return function(y, p, reduction="sum")

    found = function(*given, reduction="none")
    assert (str(found.dtype), found.numpy().size) == (dtype, len(labels))
    rtol = float(tp.finfo(dtype).eps)
    found = found.astype("float64").numpy().ravel()
    np.testing.assert_allclose(found, losses.ravel(), rtol=rtol, equal_nan=True)
    assert not np.signbit(found[~np.isnan(found)]).any()  # no -0
    for slope, right in zip(tp.grad(total, argnums=(0, 1))(*given), slopes, strict=True):
        assert str(slope.dtype) == dtype
        found = slope.astype("float64").numpy()
        np.testing.assert_allclose(found, right, rtol=rtol, equal_nan=True)


def test_probabilities_near_0_lose_nothing():
    """1 - 1e-9 is 1 in float32, so its logarithm must not be taken."""
    found = tp.losses.binary_cross_entropy([0.0], [1e-9])
    assert found.item() == pytest.approx(1e-9, rel=1e-6)


def test_the_axis_of_classes():
    with pytest.raises(ShapeError, match=r"kl_divergence of float32\[2\]: axis 1 is out of range"):
        tp.losses.kl_divergence([0.0, 1.0], [0.5, 0.5], axis=1)


def test_labels_without_an_axis():
    with pytest.raises(ShapeError, match="must have at least rank 1"):
        tp.losses.softmax_cross_entropy(1.0, 1.0)


NUMBERS = ONEHOT.argmax(-1).astype(np.int32)
SMOOTH = {"plain": 0.0, "smooth": 0.3}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("smoothing", SMOOTH)
@pytest.mark.parametrize("ignored", [None, -100])
def test_losses_of_class_numbers(weights, smoothing, ignored):
    s, given = SMOOTH[smoothing], WEIGHTS[weights]
    losses = -((ONEHOT * (1 - s) + s / 3) * log_softmax(LOGITS)).sum(-1)
    labels, factors = NUMBERS, given
    if ignored is not None:
        labels = np.where([True, False, True, True], NUMBERS, ignored).astype(np.int32)
        losses[1] = 0
        factors = np.array(np.broadcast_to(1.0 if given is None else given, 4))
        factors[1] = 0
    function = tp.losses.sparse_softmax_cross_entropy
    options = {"label_smoothing": s, "ignore_index": ignored}
    for how in REDUCTIONS:
        found = function(labels, LOGITS, given, reduction=how, **options)
        right = expected(losses, factors, how)
        assert (str(found.dtype), found.shape) == ("float64", right.shape), how
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-10, atol=1e-14)
    check_grads(lambda x: function(labels, x, given, reduction="sum", **options), [LOGITS])
    check_grads(lambda x: function(labels, x, given, **options) ** 2, [LOGITS], order=2)


def test_nothing_flows_from_what_is_ignored():
    function = tp.losses.sparse_softmax_cross_entropy
    dx = tp.grad(lambda x: function([1, -1], x, ignore_index=-1))(tp.asarray(LOGITS[:2]))
    assert dx[1].tolist() == [0, 0, 0]
    assert np.all(dx[0].numpy() != 0)
    assert np.isnan(function([-1, -1], LOGITS[:2], ignore_index=-1).item())
    none = function([-1, -1], LOGITS[:2], ignore_index=-1, reduction="none")
    assert none.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("labels", "logits", "options", "error", "message"),
    [
        ([0, 3], LOGITS[:2], {}, OutOfRangeError, "label 3 is out of range for 3 classes"),
        ([0, -1], LOGITS[:2], {}, OutOfRangeError, "label -1 is out of range for 3 classes"),
        ([0, 1, 2], LOGITS[:2], {}, ShapeError, "labels must have the shape of logits without"),
        (0, 1.0, {}, ShapeError, "at least rank 1"),
        ([0], LOGITS[:1, :0], {}, ShapeError, "one class"),
        ([0.0], LOGITS[:1], {}, DTypeError, r"labels must be integers, got float32\[1\]"),
        ([0], ["a"], {}, DTypeError, "logits must hold numbers or booleans"),
        ([0], LOGITS[:1], {"ignore_index": 0.5}, ArgumentError, "ignore_index must be an integer"),
        (
            np.array([0], np.uint8),
            LOGITS[:1],
            {"ignore_index": -1},
            ArgumentError,
            "ignore_index: -1 does not fit into uint8",
        ),
        ([0], LOGITS[:1], {"reduction": "all"}, ArgumentError, "reduction must be one of"),
    ],
)
def test_bad_calls_with_class_numbers(labels, logits, options, error, message):
    with pytest.raises(error, match=message):
        tp.losses.sparse_softmax_cross_entropy(labels, logits, **options)


@pytest.mark.parametrize("delta", [0, -1.0, float("nan"), True, "1"])
def test_the_delta_of_huber_loss_is_above_0(delta):
    with pytest.raises(ArgumentError, match="huber_loss: delta must be a number above 0"):
        tp.losses.huber_loss([0.0], [0.5], delta=delta)


def test_the_hessian_of_huber_loss_is_1_up_to_delta():
    def first(x):
        return tp.grad(lambda x: tp.losses.huber_loss(tp.zeros_like(x), x, reduction="sum"))(x)

    x = tp.asarray([0.0, -0.0, 0.5, -0.75, 2.0, -3.0])
    np.testing.assert_array_equal(first(x).numpy(), [0, 0, 0.5, -0.75, 1, -1])
    second = tp.grad(lambda x: tp.sum(first(x)))(x)
    np.testing.assert_array_equal(second.numpy(), [1, 1, 1, 1, 0, 0])


LOSSES = [name for name in FUNCTIONS if name.startswith("losses.")]


@pytest.mark.parametrize("name", LOSSES)
def test_arguments_have_names(name):
    function = FUNCTIONS[name]
    names = list(inspect.signature(function).parameters)
    labels = np.asarray([2, 0, 1]) if "sparse" in name else ONEHOT[:3]
    weights = np.asarray([0.5, 0.0, 3.0])
    rowwise = "softmax" in name or name == "losses.kl_divergence"
    known = {"axis": 1, "weights": weights if rowwise else weights[:, None]}
    scores = PREDICTIONS[:3]
    values = {at: known.get(at, labels if "labels" in at else scores) for at in names}
    given = {at: values[at] for at in names[: names.index("weights") + 1]}
    named, placed = function(**given), function(*given.values())
    assert (named.shape, named.dtype, named.item()) == (placed.shape, placed.dtype, placed.item())
