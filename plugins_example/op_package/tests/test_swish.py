"""Values, dtypes and gradients, natively and decomposed, against formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.testing import check_grads

from tensorplug_example_swish import SWISH, swish

# The backend, and how the op runs there. On "cpu without" its kernel is removed first. "minimal",
# another example in tensorplug's repository, has no kernel for Swish.
PLACES = {
    "cpu": "native",
    "cpu without": "decomposed",
    "opencl": "native",
    "minimal": "decomposed",
}
BETAS = [1.0, 1.702, 0.125, 30]
POINTS = np.linspace(-12, 12, 49)


@pytest.fixture(params=PLACES)
def place(request):
    """Make a backend the active one and return how Swish must run there."""
    name, _, without = request.param.partition(" ")
    try:
        entered = tp.use_backend(name)
        entered.__enter__()
    except (tp.errors.BackendNotInstalledError, tp.errors.BackendUnavailableError) as missing:
        pytest.skip(str(missing))
    if without:
        tp.unregister_kernel(SWISH, name)
    yield PLACES[request.param]
    entered.__exit__(None, None, None)


def formula(x, beta):
    """Evaluate the definition number by number; ``math.exp`` is the C library's."""
    values = [number / (1 + math.exp(-beta * number)) for number in np.ravel(x).tolist()]
    return np.array(values).reshape(np.shape(x))


def slope(x, beta, step=1e-5):
    return (formula(x + step, beta) - formula(x - step, beta)) / (2 * step)


def curvature(x, beta, step=1e-4):
    outer = formula(x + step, beta) + formula(x - step, beta)
    return (outer - 2 * formula(x, beta)) / step**2


def assert_close(tensor, wide, dtype, rtol, atol=0.0):
    assert (tensor.shape, tensor.dtype.name) == (wide.shape, dtype)
    np.testing.assert_allclose(tensor.numpy(), wide, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("shape", [(49,), (7, 1, 7), ()])
def test_values(place, engine, dtype, beta, shape):
    if getattr(tp, dtype) not in engine.open(tp.get_backend()).backend.dtypes:
        pytest.skip(f"{tp.get_backend()} has no {dtype}")
    x = (POINTS.reshape(shape) if shape else POINTS[30]).astype(dtype)
    how = "widened" if (place, dtype) == ("decomposed", "float16") else place
    assert tp.explain(SWISH, [x], {"beta": beta}).how == how
    rounded = float(np.array(beta, dtype))
    about = np.finfo(dtype)
    # A rounding error of beta * x becomes |beta x| times as large; the rest costs a few eps.
    relative = about.eps * (8 + np.max(np.abs(rounded * x)))
    expected = formula(x.astype(np.float64), rounded)
    assert_close(swish(x, beta=beta), expected, dtype, relative, 16 * about.smallest_subnormal)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("beta", BETAS)
def test_limits(beta):
    x = tp.asarray([-math.inf, -1e38, 1e38, math.inf, math.nan])
    np.testing.assert_array_equal(
        x.swish(beta=beta).numpy(), np.array([0, 0, 1e38, math.inf, math.nan], np.float32)
    )


def test_one_opencl_program_serves_every_beta(engine):
    try:
        opened = engine.open("opencl")
    except (tp.errors.BackendNotInstalledError, tp.errors.BackendUnavailableError) as missing:
        pytest.skip(str(missing))
    x = np.array([0.5], np.float32)
    with tp.use_backend("opencl"):
        for beta in BETAS:
            assert_close(swish(x, beta=beta), formula(x, beta), "float32", 1e-5)
    assert opened.backend.memory()["programs"] == 1


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("dtype", ["int32", "int8", "bool"])
def test_integers_and_booleans_become_floats(dtype):
    x = np.array([[-2, 0, 3]]).astype(dtype)
    assert_close(swish(x), formula(x, 1.0), "float32", 1e-6)


@pytest.mark.usefixtures("place")
def test_empty_input():
    assert swish(np.zeros((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("beta", BETAS)
def test_gradient_in_float32(beta):
    x = tp.asarray(POINTS.astype(np.float32))
    gradient = tp.grad(lambda x: x.swish(beta=beta).sum())(x)
    assert_close(gradient, slope(POINTS, float(np.float32(beta))), "float32", 1e-5, 1e-5)


@pytest.mark.parametrize("beta", BETAS)
def test_first_and_second_order_in_float64(beta):
    x = tp.asarray(POINTS)

    def first(x):
        return tp.grad(lambda x: swish(x, beta=beta).sum())(x)

    second = tp.grad(lambda x: first(x).sum())(x)
    assert_close(first(x), slope(POINTS, beta), "float64", 1e-7, 1e-8)
    assert_close(second, curvature(POINTS, beta), "float64", 1e-5, 1e-4)
    check_grads(lambda x: swish(x, beta=beta), [POINTS[::5]], order=2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "beta", [0, -1.0, math.inf, math.nan, 1e-60, 1e60, 10**400, "1", True, 1j, None]
)
def test_invalid_beta_is_refused(beta):
    swish(tp.asarray([1.0]), beta=1)  # a plan for 1 must not be used for True
    with pytest.raises(tp.errors.ArgumentError, match="attribute 'beta'"):
        swish(tp.asarray([1.0]), beta=beta)


@pytest.mark.parametrize("values", [[1j], ["a"]], ids=["complex", "text"])
def test_complex_numbers_and_text_are_refused(values):
    with pytest.raises(tp.errors.DTypeError, match=r"^Swish"):
        swish(tp.asarray(values))


def test_method_of_tensors():
    x = tp.asarray([-1.0, 2.0])
    chained = x.swish(beta=2).sum()
    assert_close(chained, formula(np.array([-1.0, 2.0]), 2).sum(), "float32", 1e-6)
