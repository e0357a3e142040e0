"""Draws composed of others: bounds, shapes, dtypes, gradients, bad calls."""

from __future__ import annotations

from functools import partial
from math import erf, inf, nan

import numpy as np
import pytest
from tests.core.support.engines import expect
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    NotConnectedError,
    ShapeError,
)
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

random = tp.random
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def key(number: int = 0) -> tp.Tensor:
    return random.fold_in(random.key(7), number)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("lower", "upper"), [(-2, 2), (-inf, inf), (0, 0.001), (4, inf), (-9, -4), (-inf, 0), (1, 1.5)]
)
def test_truncated_normal_stays_within(lower: float, upper: float, dtype: str) -> None:
    found = random.truncated_normal(key(), (20_000,), dtype, lower=lower, upper=upper)
    assert (found.dtype.name, found.shape) == (dtype, (20_000,))
    values = found.numpy()
    assert np.isfinite(values).all()
    kind = values.dtype.type
    assert kind(lower) <= values.min() <= values.max() <= kind(upper)
    assert len(np.unique(values)) > (100 if dtype != "float16" else 1)


def test_no_intermediate_value_is_infinite() -> None:
    with tp.debug():
        random.truncated_normal(key(), (500,), lower=-inf, upper=inf)
        random.gamma(key(), (500, 4), concentration=tp.asarray([1e-30, 0.5, 1.0, 1e30]))
        random.gumbel(key(), (500,))
        random.categorical(key(), [0.0, 1.0], (500,))


def test_truncated_normal_is_scaled() -> None:
    plain = random.truncated_normal(key(), (50,)).numpy()
    found = random.truncated_normal(key(), (50,), loc=10.0, scale=3.0)
    expect(found, "float32", (50,), np.float32(10) + plain * np.float32(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_truncated_normal_inverts_the_distribution_function(dtype: str) -> None:
    """The numbers are those of the uniform draw, put through the inverse function."""
    u = random.uniform(key(), (5000,), dtype).numpy().astype(float)
    z = random.truncated_normal(key(), (5000,), dtype, lower=-3.0, upper=3.0).numpy()
    phi = np.vectorize(lambda x: 0.5 * (1 + erf(x / 2**0.5)))
    back = (phi(z.astype(float)) - phi(-3.0)) / (phi(3.0) - phi(-3.0))
    np.testing.assert_allclose(back, u, rtol=0, atol={"float32": 3e-7, "float64": 1e-15}[dtype])


def test_gradients_of_truncated_normal() -> None:
    given = [np.array([-1.0, 0.2]), np.array([1.5, 0.9]), np.array(3.0), np.array([[0.5], [2.0]])]
    check_grads(
        lambda a, b, c, d: random.truncated_normal(
            key(), (2, 2), "float64", lower=a, upper=b, loc=c, scale=d
        ),
        given,
    )


def test_gamma_of_tensors() -> None:
    concentration = np.array([[0.2], [5.0]])
    found = random.gamma(key(), (2, 3), concentration=concentration, scale=[1.0, 10.0, 100.0])
    assert found.type == tp.TensorType(tp.float64, (2, 3))
    alone = random.gamma(key(), (2, 3), concentration=concentration).numpy()
    expect(found, "float64", (2, 3), alone * [1.0, 10.0, 100.0])
    expect(random.gamma(key(), (0, 2), concentration=5.0), "float32", (0, 2), np.zeros((0, 2)))
    assert random.gamma(key(), concentration=2.0, dtype="float16").type == tp.TensorType(
        tp.float16, ()
    )


def test_gamma_of_what_has_none_is_nan() -> None:
    bad = tp.asarray([0.0, -1.0, nan, inf, 2.0])
    found = random.gamma(key(), concentration=bad).numpy()
    np.testing.assert_array_equal(np.isnan(found), [True, True, True, True, False])


def test_gamma_and_gradients() -> None:
    sample = random.gamma(key(), (3,), concentration=2.0).numpy()
    grad = tp.grad(lambda scale: tp.sum(random.gamma(key(), (3,), concentration=2.0, scale=scale)))
    np.testing.assert_allclose(grad(tp.asarray(1.5)).item(), sample.sum(), rtol=1e-6)
    with pytest.raises(NotConnectedError):
        tp.grad(lambda a: tp.sum(random.gamma(key(), (3,), concentration=a)))(tp.asarray(2.0))


def test_bernoulli_of_tensors() -> None:
    p = tp.asarray([0.0, 1.0, 0.5])
    found = random.bernoulli(key(), (100, 3), p=p).numpy()
    assert not found[:, 0].any()
    assert found[:, 1].all()
    assert 20 < found[:, 2].sum() < 80
    assert random.bernoulli(key()).type == tp.TensorType(tp.bool, ())


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (lambda: random.bernoulli(key(), p=1.5), r"p must be in \[0, 1\], got 1.5"),
        (lambda: random.bernoulli(key(), p=nan), r"p must be in \[0, 1\], got nan"),
        (lambda: random.gamma(key(), concentration=0.0), "concentration must be positive and fi"),
        (lambda: random.gamma(key(), concentration=nan), "concentration must be positive and fi"),
        (
            lambda: random.truncated_normal(key(), lower=1.0, upper=1.0),
            "lower must be below upper, got 1.0 and 1.0",
        ),
        (lambda: random.truncated_normal(key(), lower=nan), "got nan and 2.0"),
        (
            lambda: random.truncated_normal(key(), lower=5.0, upper=6.0),
            "float32 has too few numbers between 5.0 and 6.0",
        ),
        (
            lambda: random.truncated_normal(key(), (), "float64", lower=-9.0, upper=-8.0),
            "float64 has too few",
        ),
        (lambda: random.permutation(key(), -1), "must not be negative, got -1"),
        (lambda: random.permutation(key(), 2.0), "permutation: a number must be an"),
        (lambda: random.choice(key(), 3, (4,), replace=False), "cannot choose 4 of 3"),
        (lambda: random.choice(key(), 0, (1,)), "cannot choose 1 of 0"),
        (lambda: random.gumbel(0), "gumbel: key must come from"),
    ],
    DTypeError: [
        (lambda: random.bernoulli(key(), p=["a"]), "bernoulli: p must hold real numbers"),
    ],
    ShapeError: [
        (lambda: random.gamma(key(), (3,), concentration=[1.0, 2.0]), "gamma: shapes"),
        (lambda: random.categorical(key(), 1.0), "must have at least rank 1"),
        (lambda: random.categorical(key(), X, axis=2), "categorical: axis 2 is out of range"),
        (lambda: random.categorical(key(), X[:, :0]), r"float32\[3,0\] is empty"),
        (lambda: random.categorical(key(), X, (4,)), r"categorical: shapes \[4\] and"),
        (lambda: random.categorical(key(), X, ()), r"shape \[3\].* to \[\]"),
        (lambda: random.permutation(key(), X, axis=2), r"permutation of float32\[3,4\]: ax"),
        (lambda: random.choice(key(), 3, p=[1.0, 2.0]), "one number per slice, got"),
        (lambda: random.choice(key(), 3, p=0.5), "per slice, got 0.5"),
    ],
}

test_bad_calls = refused(REFUSED, regex=True)


PINNED = {
    "bits": (random.bits, ((2,),), [2632642643, 2012563771]),
    "uniform": (random.uniform, ((3,),), [0.6129598617553711, 0.4685865044593811, 0.07323169708]),
    "normal": (random.normal, ((3,),), [-0.823219895362854, -0.5488356947898865, -1.923926711082]),
    "normal64": (
        random.normal,
        ((3,), "float64"),
        [-1.0360238086554643, 0.6653748678073496, -1.3132156353965418],
    ),
    "exponential": (random.exponential, ((2,),), [0.48945578932762146, 0.7580345273017883]),
    "integers": (partial(random.integers, high=100), ((5,),), [46, 34, 32, 45, 65]),
    "long": (
        partial(random.integers, high=2**63),
        ((2,), "int64"),
        [3143892883038251094, 4190321816948419895],
    ),
    "gumbel": (random.gumbel, ((2,),), [0.7144611477851868, 0.27702635526657104]),
    "truncated": (random.truncated_normal, ((2,),), [0.27364206314086914, -0.07523007690906525]),
    "gamma": (
        partial(random.gamma, concentration=0.5),
        ((2,),),
        [1.2762504816055298, 1.1536860466003418],
    ),
    "bernoulli": (random.bernoulli, ((5,),), [False, True, True, True, False]),
    "categorical": (random.categorical, ([0.0, 1.0, 2.0], (6,)), [1, 1, 2, 2, 2, 2]),
    "permutation": (random.permutation, (6,), [3, 1, 4, 2, 0, 5]),
    "choice": (random.choice, (9, (4,)), [4, 3, 2, 4]),
    "split": (random.split, (1,), [[506892317, 1097941434, 308913620, 2909802112]]),
    "fold_in": (random.fold_in, (1,), [4083680298, 1124755188, 1588012356, 1183440109]),
}


@pytest.mark.parametrize("name", PINNED)
def test_numbers_do_not_change_from_version_to_version(name: str) -> None:
    """A seed written down today must give the same data tomorrow."""
    function, arguments, expected = PINNED[name]
    found = function(random.key(42), *arguments).numpy()
    tolerance = 1e-6 if found.dtype.kind == "f" else 0
    np.testing.assert_allclose(found, expected, rtol=tolerance)
