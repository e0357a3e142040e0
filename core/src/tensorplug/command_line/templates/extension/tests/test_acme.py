"""Values, dtypes and gradients, natively and decomposed, against formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.testing import check_grads

from tensorplug_acme import (
    ACME,
    acme,
)

# The backend, and how the op runs there: on "cpu without" its kernel is removed first.
PLACES = {"cpu": "native", "cpu without": "decomposed", "opencl": "native"}
POINTS = np.linspace(-12, 12, 49)


@pytest.fixture(params=PLACES)
def place(request):
    """Make a backend the active one and return how the op must run there."""
    name, _, without = request.param.partition(" ")
    try:
        entered = tp.use_backend(name)
        entered.__enter__()
    except (tp.errors.BackendNotInstalledError, tp.errors.BackendUnavailableError) as missing:
        pytest.skip(str(missing))
    if without:
        tp.unregister_kernel(ACME, name)
    yield PLACES[request.param]
    entered.__exit__(None, None, None)


def formula(x, beta):
    """Evaluate the definition number by number; ``math.exp`` is the C library's."""
    values = [number / (1 + math.exp(-beta * number)) for number in np.ravel(x).tolist()]
    return np.array(values).reshape(np.shape(x))


@pytest.mark.parametrize("beta", [1.0, 0.125, 30])
@pytest.mark.parametrize("shape", [(49,), (7, 1, 7)])
def test_values(place, beta, shape):
    x = POINTS.astype(np.float32).reshape(shape)
    assert tp.explain(ACME, [x], {"beta": beta}).how == place
    found = acme(x, beta=beta)
    assert (found.shape, found.dtype) == (shape, tp.float32)
    # A rounding error of beta * x becomes |beta x| times as large.
    relative = np.finfo(np.float32).eps * (8 + np.max(np.abs(beta * x)))
    np.testing.assert_allclose(found.numpy(), formula(x, beta), rtol=relative, atol=1e-44)


@pytest.mark.usefixtures("place")
def test_limits_and_integers():
    x = tp.asarray([-math.inf, -1e38, 1e38, math.inf, math.nan])
    expected = np.array([0, 0, 1e38, math.inf, math.nan], np.float32)
    np.testing.assert_array_equal(x.acme().numpy(), expected)
    assert acme(tp.asarray([0])).dtype == tp.float32
    assert acme(np.zeros((0, 3))).shape == (0, 3)


def test_gradients_to_second_order():
    def function(x):
        return acme(x, beta=1.5)

    check_grads(function, [POINTS[::5]], order=2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0, -1.0, math.inf, math.nan, 1e60, "1", True, None])
def test_invalid_beta_is_refused(beta):
    with pytest.raises(tp.errors.ArgumentError, match="attribute 'beta'"):
        acme(tp.asarray([1.0]), beta=beta)
