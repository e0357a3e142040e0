"""Draws of further distributions: what they depend on, shapes, dtypes, gradients, bad calls."""

from __future__ import annotations

import inspect
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendUnavailableError,
    CompileError,
    DTypeError,
    NotConnectedError,
    ShapeError,
)
from tensorplug.testing import check_grads, isolated_engine

COV = [[2.0, 1.0], [1.0, 3.0]]
X = np.arange(12, dtype=np.float32).reshape(3, 4)

# By name: the function, its shape and parameters, and what key 42 gives.
DRAWS: dict[str, tuple[str, tuple[int, ...] | None, dict[str, Any], list[float]]] = {
    "laplace": ("laplace", (2,), {}, [-0.5855629444122314, -0.17822198569774628]),
    "beta": ("beta", (2,), {"a": 0.5, "b": 2.0}, [0.09985439479351044, 0.030694227665662766]),
    "dirichlet": (
        "dirichlet",
        None,
        {"alpha": [0.5, 1.0, 2.0]},
        [0.31915196776390076, 0.3867553770542145, 0.29409268498420715],
    ),
    "multivariate_normal": (
        "multivariate_normal",
        None,
        {"mean": [0.0, 1.0], "cov": COV},
        [-1.1642087697982788, -0.4498898983001709],
    ),
    "few poisson": ("poisson", (6,), {"rate": 3.0}, [4, 6, 6, 2, 2, 3]),
    "many poisson": ("poisson", (5,), {"rate": 300.0}, [314, 274, 291, 291, 309]),
    "few binomial": ("binomial", (6,), {"n": 20, "p": 0.25}, [5, 8, 8, 4, 4, 5]),
    "many binomial": ("binomial", (5,), {"n": 1000, "p": 0.75}, [739, 771, 757, 757, 743]),
}
SCALARS = [name for name, (_, shape, _, _) in DRAWS.items() if shape is not None]
IN_ROUNDS = [name for name in DRAWS if name not in ("laplace", "multivariate_normal")]
EXACT = ("laplace", "few poisson")  # the same bits on every backend


def key(number: int = 0) -> tp.Tensor:
    return tp.random.fold_in(tp.random.key(7), number)


def draw(name: str, key: tp.Tensor, *shape: Any) -> tp.Tensor:
    function, _, parameters, _ = DRAWS[name]
    drawn: tp.Tensor = getattr(tp.random, function)(key, *shape, **parameters)
    return drawn


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_do_not_change_from_version_to_version(name: str) -> None:
    found = draw(name, tp.random.key(42), DRAWS[name][1]).numpy()
    tolerance = 1e-6 if found.dtype.kind == "f" else 0
    np.testing.assert_allclose(found, DRAWS[name][3], rtol=tolerance)


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_depends_on_its_key_and_on_nothing_else(name: str) -> None:
    keys = list(tp.random.split(tp.random.key(5), 3))
    before = [draw(name, key, (3, 5)).numpy() for key in keys]
    after = [draw(name, key, (3, 5)).numpy() for key in reversed(keys)][::-1]
    np.testing.assert_array_equal(before, after)
    assert not np.array_equal(before[0], before[1])


@pytest.mark.parametrize("name", SCALARS)
def test_fewer_are_the_first_of_more(name: str) -> None:
    many = draw(name, key(), (50,)).numpy()
    for shape in [(), (0,), (7,), (5, 3), (2, 0, 3)]:
        some = draw(name, key(), shape)
        assert some.shape == shape
        np.testing.assert_array_equal(some.numpy().ravel(), many[: some.size])


@pytest.mark.parametrize("name", DRAWS)
def test_a_new_key_needs_no_new_plan(name: str, engine: Any) -> None:
    device, sizes = engine.devices.active, set()
    for number, item in enumerate(list(tp.random.split(tp.random.key(1), 40))):
        draw(name, tp.random.fold_in(item, number), (3, 5))
        caches = (device.plans, device.slow_plans, device.constants)
        sizes.add(tuple(len(cache) for cache in caches))
    assert len(sizes) == 1


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("backend", ["minimal", "opencl"])
def test_backends_draw_the_same_numbers(backend: str, name: str) -> None:
    if backend not in {installed.name for installed in tp.backends()}:
        pytest.skip(f"backend {backend} is not installed")
    drawn = []
    for each in (backend, "cpu"):
        try:
            with isolated_engine(each) as engine:
                engine.fallback = "error"
                drawn.append(draw(name, tp.random.key(11), (7, 143)).numpy())
        except BackendUnavailableError as error:
            pytest.skip(str(error))
    found, expected = drawn
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    counts_or_exact = name in EXACT or found.dtype.kind != "f"
    eps = 0 if counts_or_exact else np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=64 * eps, atol=8 * eps)


# Generators --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWS)
def test_methods_of_a_generator_are_the_functions_without_their_key(name: str) -> None:
    function, shape, parameters, _ = DRAWS[name]
    rng = tp.random.Generator(3)
    method = getattr(rng, function)
    assert function in dir(rng)
    without = list(inspect.signature(getattr(tp.random, function)).parameters.values())[1:]
    assert list(inspect.signature(method).parameters.values()) == without
    for number in range(2):
        expected = draw(name, tp.random.fold_in(tp.random.key(3), number), shape)
        np.testing.assert_array_equal(method(shape, **parameters).numpy(), expected.numpy())


def test_hints_of_a_generator() -> None:
    rng = tp.random.Generator(3)
    with pytest.raises(AttributeError, match=r"did you mean Generator.dirichlet\?"):
        _ = rng.dirichlt
    with pytest.raises(TypeError, match=r"here it is shape="):
        rng.poisson(size=3, rate=1.0)


# Shapes, dtypes, transformations -----------------------------------------------------------


def test_shapes_and_dtypes_of_vectors() -> None:
    alpha = np.ones((4, 1, 3), np.float32)
    mean, cov = np.zeros((5, 2), np.float32), np.eye(2, dtype=np.float32)
    random = tp.random
    for drawn, dtype, shape in [
        (random.dirichlet(key(), alpha=alpha), tp.float32, (4, 1, 3)),
        (random.dirichlet(key(), (4, 2), alpha=alpha), tp.float32, (4, 2, 3)),
        (random.dirichlet(key(), alpha=[1, 2], dtype="float16"), tp.float16, (2,)),
        (random.multivariate_normal(key(), mean=mean, cov=cov), tp.float32, (5, 2)),
        (
            random.multivariate_normal(
                key(), (7, 3), "float16", mean=[0, 0], cov=np.stack([cov] * 3)
            ),
            tp.float16,
            (7, 3, 2),
        ),
        (random.poisson(key(), (2,), "int64", rate=2.0**40), tp.int64, (2,)),
    ]:
        assert drawn.type == tp.TensorType(dtype, shape)


def test_draws_are_differentiable_in_place_and_scale() -> None:
    a, b = np.array([[0.5], [1.5]]), np.array([2.0, 3.0, 5.0])
    check_grads(lambda a, b: tp.random.laplace(key(), (2, 3), loc=a, scale=b), [a, b], order=2)

    def vectors(mean: tp.Tensor, cov: tp.Tensor) -> tp.Tensor:
        symmetric = (cov + tp.matrix_transpose(cov)) / 2
        return tp.random.multivariate_normal(key(), (3,), mean=mean, cov=symmetric)

    check_grads(vectors, [np.array([1.0, 2.0]), np.array(COV)])


def test_beta_and_dirichlet_are_constant_in_their_concentrations() -> None:
    for drawn in (
        lambda a: tp.random.beta(key(), (3,), a=a, b=2.0),
        lambda a: tp.random.dirichlet(key(), alpha=tp.stack([a, a])),
    ):
        with pytest.raises(NotConnectedError):
            tp.grad(lambda a, drawn=drawn: tp.sum(drawn(a)))(tp.asarray(2.0))


@pytest.mark.parametrize("name", DRAWS)
def test_draws_in_rounds_alone_are_no_part_of_a_compiled_function(name: str) -> None:
    compiled = tp.compile(lambda at: draw(name, at, (3,)))
    if name in IN_ROUNDS:
        with pytest.raises(CompileError, match="reads the data"):
            compiled(key())
    else:
        np.testing.assert_array_equal(compiled(key()).numpy(), draw(name, key(), (3,)).numpy())


# What has no distribution ------------------------------------------------------------------


def test_counts_where_there_is_no_distribution() -> None:
    rate = tp.asarray([-1.0, nan, inf, 2.0**24, 0.0, 3.0])
    found = tp.random.poisson(key(), rate=rate).tolist()
    assert found[:5] == [-1, -1, -1, -1, 0]
    assert found[5] >= 0
    n = tp.asarray([-1, 5, 5, 5, 5, 0, 2**24])
    p = tp.asarray([0.5, -0.1, nan, 1.0, 0.0, 0.5, 0.5])
    assert tp.random.binomial(key(), n=n, p=p).tolist() == [-1, -1, -1, 5, 0, 0, -1]


def test_concentrations_of_no_distribution_give_nan() -> None:
    bad = tp.asarray([0.0, -0.5, -1.0, nan, inf, 2.0])
    found = tp.random.beta(key(), a=bad, b=0.5).numpy()
    np.testing.assert_array_equal(np.isnan(found), [True] * 5 + [False])
    assert np.isnan(tp.random.dirichlet(key(), alpha=[1.0, -0.5]).numpy()).all()


@pytest.mark.parametrize(
    ("name", "arguments", "parameters", "error", "message"),
    [
        ("beta", (), {"a": 0.0, "b": 1.0}, ArgumentError, "beta: a must be positive and fin"),
        ("beta", (), {"a": 1.0, "b": nan}, ArgumentError, "beta: b must be positive and fin"),
        ("laplace", (0.3,), {}, ArgumentError, r"see help\(tensorplug.random.laplace\)"),
        ("poisson", (), {"rate": -1.0}, ArgumentError, r"rate must be in \[0, 8388608\]"),
        ("poisson", (), {"rate": nan}, ArgumentError, "rate must be in .*, got nan"),
        ("poisson", ((), "int8"), {"rate": 300.0}, ArgumentError, r"in \[0, 127\]"),
        ("poisson", ((), "uint8"), {"rate": 1.0}, DTypeError, "must be a signed integer"),
        ("poisson", ((), "float32"), {"rate": 1.0}, DTypeError, "must be a signed int"),
        ("binomial", (), {"n": 2, "p": 1.5}, ArgumentError, r"p must be in \[0, 1\], got 1.5"),
        ("binomial", (), {"n": -1, "p": 0.5}, ArgumentError, "binomial: n must be in"),
        ("binomial", (), {"n": 2.5, "p": 0.5}, ArgumentError, "binomial: n must be an integer"),
        ("dirichlet", (), {"alpha": 1.0}, ShapeError, "alpha must have at least rank 1"),
        ("dirichlet", ((2,),), {"alpha": X + 1}, ShapeError, "dirichlet: shapes"),
        (
            "multivariate_normal",
            (),
            {"mean": [0.0], "cov": np.eye(2)},
            ShapeError,
            r"cov must end with shape \[1, 1\], got float64\[2,2\]",
        ),
        (
            "multivariate_normal",
            (),
            {"mean": 0.0, "cov": np.eye(2)},
            ShapeError,
            "mean must have at least rank 1",
        ),
    ],
)
def test_bad_calls(
    name: str, arguments: Any, parameters: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(tp.random, name)(key(), *arguments, **parameters)
