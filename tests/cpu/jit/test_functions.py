"""Single functions that LLVM compiles: the same numbers as the formulas in higher precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.groups import elementary

MORE = {"erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}
NUMPY = {"asin": "arcsin", "acos": "arccos", "acosh": "arccosh", "atanh": "arctanh"}
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 3e4, 1e8, -1e30, 1e-30, np.inf, -np.inf, np.nan]
CASES = [
    (spec.name, dtype)
    for spec, dtypes in elementary._FASTER.items()
    for dtype in sorted(dtypes, key=str)
]


def _formula(name: str):
    name = name.lower()
    return MORE.get(name) or getattr(np, NUMPY.get(name, name))


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(JIT, "always")
    with tp.use_backend("cpu"):
        yield


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_functions(name, dtype):
    rng = np.random.default_rng(1)
    numbers = [EDGES, rng.uniform(-1, 1, 101), 5 * rng.standard_normal(50)]
    x = np.concatenate(numbers).astype(dtype.numpy)
    function = getattr(tp, name.lower(), None) or getattr(tp.special, name.lower())
    result = function(tp.asarray(x))
    with np.errstate(all="ignore"):
        expected = _formula(name)(x.astype(np.longdouble)).astype(np.float64)
    assert (result.dtype, result.shape) == (dtype, x.shape)
    tolerance = 4 * float(np.finfo(dtype.numpy).eps)
    expected = expected.astype(dtype.numpy)
    far = np.abs(expected) < np.finfo(dtype.numpy).tiny  # subnormal, with fewer digits
    np.testing.assert_allclose(result.numpy()[~far], expected[~far], rtol=tolerance)
    np.testing.assert_allclose(result.numpy()[far], expected[far], atol=1e-37)
    if not np.isnan(expected[0]):  # of 0.0 and -0.0
        np.testing.assert_array_equal(np.signbit(result.numpy()[:2]), np.signbit(expected[:2]))


@pytest.mark.parametrize("view", ["rows", "turned", "one"])
def test_layouts(view):
    x = np.linspace(-1, 1, 35).reshape(5, 7)
    part = {"rows": x[::2], "turned": x.T, "one": x[2, 3]}[view]
    result = tp.asin(tp.asarray(part))
    assert result.shape == part.shape
    np.testing.assert_allclose(result.numpy(), np.arcsin(part), rtol=1e-15)


def test_other_dtypes_and_small_arrays_have_numpys_loops(monkeypatch):
    asked = []
    monkeypatch.setattr(elementary, "compile_group", asked.append)
    tp.asin(tp.asarray(np.ones(3, np.float16)))
    tp.log(tp.asarray(np.ones(3)))
    tp.asin(tp.asarray(np.ones(3, np.complex64)))
    monkeypatch.setenv(JIT, "1")
    tp.asin(tp.asarray(np.ones(1001)))
    assert not asked
    tp.asin(tp.asarray(np.zeros(1 << 15)))
    assert len(asked) == 1
