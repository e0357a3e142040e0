"""NumPy, Matplotlib, array-api-compat and array-api-extra on tensors."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import GradientError

from .clients import DTYPES, compare

if TYPE_CHECKING:
    from .clients import Call

compat = pytest.importorskip("array_api_compat")
extra = pytest.importorskip("array_api_extra")


def _first(g):
    return extra.at(g.x)[0, :]


EXTRA: dict[str, Call] = {
    "angle": lambda g: extra.angle(g.x - 1, xp=g.xp),
    "apply_where": lambda g: extra.apply_where(g.v > 0, g.v, g.xp.exp, g.xp.negative),
    "argpartition": lambda g: g.xp.take(g.sample, extra.argpartition(g.sample, 3)[3:4]),
    **{
        f"at.{name}": lambda g, name=name: getattr(_first(g), name)(g.x[1, :])
        for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
    },
    "at of a mask": lambda g: extra.at(g.v)[g.v > 0].set(2.0),
    "at of a mask, added": lambda g: extra.at(g.v)[g.v > 0].add(2.0),
    "at of picks": lambda g: extra.at(g.v)[g.ints([1, 4])].add(2.0),
    "at of all": lambda g: extra.at(g.v)[...].multiply(2.0),
    "at of a copy": lambda g: extra.at(g.v)[2:4].add(2.0, copy=True),
    "atleast_nd": lambda g: extra.atleast_nd(g.v, ndim=3),
    "cov": lambda g: extra.cov(g.x**2),
    "create_diagonal": lambda g: extra.create_diagonal(g.v, offset=1),
    "deg2rad": lambda g: extra.deg2rad(g.x),
    "isclose": lambda g: extra.isclose(g.x, g.x + 1e-7),
    "isin": lambda g: extra.isin(g.ints([1, 2, 3]), g.ints([2])),
    "kron": lambda g: extra.kron(g.square, g.x),
    "lazy_apply": lambda g: extra.lazy_apply(np.exp, g.x, as_numpy=True),
    "nan_to_num": lambda g: extra.nan_to_num(g.array([1.0, np.nan, np.inf])),
    "nanmax": lambda g: extra.nanmax(g.array([1.0, np.nan, 2.0])),
    "nanmean": lambda g: extra.nanmean(g.array([1.0, np.nan, 2.0])),
    "nanmin": lambda g: extra.nanmin(g.array([1.0, np.nan, 2.0])),
    "nansum": lambda g: extra.nansum(g.array([1.0, np.nan, 2.0])),
    "nunique": lambda g: extra.nunique(g.ints([3, 1, 3])),
    "one_hot": lambda g: extra.one_hot(g.ints([2, 0]), 3, dtype=g.dtype),
    "pad": lambda g: extra.pad(g.x, (1, 2), constant_values=3),
    "partition": lambda g: extra.partition(g.sample, 5)[5],
    "rad2deg": lambda g: extra.rad2deg(g.x),
    "searchsorted": lambda g: extra.searchsorted(g.v, g.p),
    "setdiff1d": lambda g: extra.setdiff1d(g.v, g.v[:3]),
    "sinc": lambda g: extra.sinc(g.v),
    "union1d": lambda g: extra.union1d(g.v, g.p[0, :]),
}
LOOSE = {"nunique", "searchsorted"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXTRA)
def test_as_with_arrays(name, dtype):
    compare(EXTRA[name], dtype, loose=name in LOOSE)


def test_array_api_compat_recognizes_tensors():
    x = tp.asarray([[1.0, 2.0]])
    assert compat.array_namespace(x, x) is tp
    assert compat.is_array_api_obj(x)
    assert compat.is_array_api_strict_namespace(tp) is False
    assert compat.is_writeable_array(x)
    assert (compat.device(x), compat.size(x)) == (x.device, 2)
    assert compat.to_device(x, x.device) is x
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, np.ones(2))


@pytest.mark.parametrize(
    "call", [np.sum, np.mean, np.max, np.std, np.any], ids=lambda call: call.__name__
)
def test_reductions_are_the_methods(call):
    x = tp.asarray([[1.0, 2.0], [3.0, 5.0]])
    found = call(x, axis=0)
    assert isinstance(found, tp.Tensor)
    np.testing.assert_allclose(found.numpy(), call(x.numpy(), axis=0), rtol=1e-6)


CONVERSIONS = {
    "asarray": np.asarray,
    "concatenate": lambda x: np.concatenate([x, x]),
    "median": np.median,
    "norm": np.linalg.norm,
    "assert_allclose": lambda x: np.testing.assert_allclose(x, x),
}


@pytest.mark.parametrize("call", CONVERSIONS.values(), ids=CONVERSIONS)
def test_no_conversion_cuts_off_a_gradient(call):
    with pytest.raises(GradientError, match="would be lost"):
        tp.grad(lambda x: call(x * 2))(tp.ones((2, 2)))


def test_numpys_functions_get_the_elements():
    x = tp.asarray([[1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_allclose(x, [[1, 2], [3, 5]])
    np.testing.assert_array_equal(x, x)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(x, x + 1)
    assert np.asarray(x).dtype == np.float32
    np.testing.assert_array_equal(np.concatenate([x, x]).shape, (4, 2))
    np.testing.assert_array_equal(np.ones(2)[tp.asarray([0, 1, 0])], [1, 1, 1])
    assert np.empty(tp.asarray(3)).shape == (3,)
    assert np.dtype(tp.float32) == np.dtype("float32")
    assert np.zeros(2, dtype=tp.int16).dtype == np.int16


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "matmul", "lt", "eq"])
def test_operators_with_arrays_give_tensors(name):
    call = getattr(operator, name)
    x, array = tp.asarray([1.0, 2.0]), np.float32([3, 4])
    for result, wanted in [
        (call(x, array), call(x.numpy(), array)),
        (call(array, x), call(array, x.numpy())),
        (call(array[0], x), call(array[0], x.numpy())) if name != "matmul" else (x, x.numpy()),
    ]:
        assert isinstance(result, tp.Tensor)
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)
        assert result.dtype == wanted.dtype


def test_matplotlib_plots_tensors():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    x = tp.asarray(np.linspace(0, 1, 5))
    figure, axes = pyplot.subplots()
    (line,) = axes.plot(x, x**2)
    np.testing.assert_allclose(line.get_ydata(), x.numpy() ** 2)
    assert axes.scatter(x, -x).get_offsets().shape == (5, 2)
    assert len(axes.bar(x, x)) == 5
    assert axes.imshow(tp.reshape(tp.arange(6.0), (2, 3))).get_array().shape == (2, 3)
    axes.hist(x)
    axes.fill_between(x, x, x + 1)
    figure.canvas.draw()
    pyplot.close(figure)


CALLS = {
    "at": lambda x: extra.at(x)[0, :].add(1.0, copy=True),
    "at a mask": lambda x: extra.at(x)[x > 1].set(0.0, copy=True),
    "cov": extra.cov,
    "kron": lambda x: extra.kron(x, x),
    "pad": lambda x: extra.pad(x, 1),
    "sinc": extra.sinc,
    "isclose": lambda x: extra.isclose(x, x),
    "nanmean": extra.nanmean,
    "apply_where": lambda x: extra.apply_where(x > 1, x, tp.exp, tp.negative),
    "contract": lambda x: tp.einsum("ij,kj->ik", x, x),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_several_backends_in_turn(call):
    """Results are on the backend in use; operands from another one are copied there.

    But what a library makes on ``x.device``, as ``pad`` does, and then assigns to, stays there.
    """
    made = {}
    for name in ("cpu", "minimal"):
        with tp.use_backend(name):
            made[name] = tp.asarray(np.linspace(0.1, 2, 24).reshape(4, 6))
    wanted = None
    for given in ("cpu", "minimal", "cpu"):
        for used in ("minimal", "cpu"):
            with tp.use_backend(used):
                result = call(made[given])
                assert result.device in (given, used)
            wanted = result.numpy() if wanted is None else wanted
            np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-12)
        assert made[given].device == given
