"""Functions of complex numbers from the primitives: accurate in every direction and size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="module", autouse=True)
def _primitives() -> Iterator[None]:
    """Run the module on an engine whose one backend has nothing but the primitives."""
    with isolated_engine("cpu") as engine:
        engine.fallback = "error"
        for name in tp.kernels_for("cpu"):
            if name not in PRIMITIVES:
                tp.unregister_kernel(name, "cpu")
        yield


def _sigmoid(z: Any) -> Any:
    # Of e**-z for a positive, of e**z for a negative real part: neither overflows.
    power = np.exp(np.where(z.real < 0, z, -z))
    return np.where(z.real < 0, power, 1) / (1 + power)


def _expm1(z: Any) -> Any:
    half = z / 2
    return 2 * np.exp(half) * np.sinh(half)


def _log1p(z: Any) -> Any:
    moved = z.copy()  # of z + 1 the imaginary part would lose the sign of its zero
    moved.real += 1
    return np.where(abs(z) > 0.5, np.log(moved), 2 * np.arctanh(z / (2 + z)))


# Kernel, the function in long doubles, and how far the parts of its arguments go.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "Acos": (np.arccos, 1e30, 1e30),
    "Acosh": (np.arccosh, 1e30, 1e30),
    "Asin": (np.arcsin, 1e30, 1e30),
    "Asinh": (np.arcsinh, 1e30, 1e30),
    "Atanh": (np.arctanh, 1e30, 1e30),
    "Cosh": (np.cosh, 80.0, 1e3),
    "Expm1": (_expm1, 80.0, 1e3),
    "Log10": (np.log10, 1e30, 1e30),
    "Log1p": (_log1p, 1e30, 1e30),
    "Log2": (np.log2, 1e30, 1e30),
    "Sigmoid": (_sigmoid, 80.0, 1e3),
    "Sinh": (np.sinh, 80.0, 1e3),
    "Tan": (np.tan, 1e3, 35.0),
    "Tanh": (np.tanh, 35.0, 1e3),
}
# Where one part vanishes and the other does not, these give it to the accuracy of the whole.
NORMWISE = {"Expm1", "Log1p", "Log2", "Log10", "Sigmoid"}
ULP = 12


def arguments(dtype: np.dtype[Any], real: float, imaginary: float) -> Any:
    """Return numbers of all sizes, on both sides of the axes, and near poles."""
    rng = np.random.default_rng(4)
    part = np.finfo(dtype).dtype
    sizes = 10.0 ** rng.uniform(-25, 30, (2, 400))
    moderate = rng.uniform(0, 4, (2, 200))
    near = np.array([1.0, 0.0])[:, None] + rng.normal(size=(2, 200)) * 10.0 ** -rng.uniform(1, 12)
    x, y = np.concatenate([sizes, moderate, near], axis=1)
    signs = rng.choice([-1.0, 1.0], (2, x.size))
    z = np.empty(x.size, dtype)
    z.real = (np.minimum(x, real) * signs[0]).astype(part)
    z.imag = (np.minimum(y, imaginary) * signs[1]).astype(part)
    cuts = np.empty((6, 2, 2), dtype)
    cuts.real = np.array([0.5, 1.0, 3.0, -0.5, -1.0, -3.0])[:, None, None]
    cuts.imag = np.array([0.0, -0.0])[:, None]
    cuts[..., 1] = cuts[..., 1].imag + 1j * cuts[..., 1].real  # and beside the other axis
    return np.concatenate([z, cuts.ravel(), poles(dtype)])


def poles(dtype: np.dtype[Any]) -> Any:
    """Return numbers near the poles of some function, and where e**z almost overflows."""
    steps = np.array([1e-2, -1e-2, 0.1])
    around = (steps[:, None] + 1j * steps).ravel()
    near = [at + around for at in (1j, 1.0, -1.0, np.pi * 1j, np.pi / 2 * 1j, np.pi / 2)]
    tiny = np.array([1 + 1e-25j, 1 - 1e-25j, -1 + 1e-25j])
    return np.concatenate([*near, tiny]).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("kernel", FUNCTIONS)
def test_each_part_is_accurate(kernel: str, dtype: str) -> None:
    reference, real, imaginary = FUNCTIONS[kernel]
    z = arguments(np.dtype(dtype), real, imaginary)
    assert tp.explain(kernel, [z]).how == "decomposed"
    actual = tp.run_kernel(kernel, [z]).numpy()
    with np.errstate(all="ignore"):
        exact = reference(z.astype(np.clongdouble))
        expected = exact.astype(dtype)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    about = np.finfo(dtype)
    for part in ("real", "imag"):
        one, other = getattr(actual, part), getattr(exact, part)
        size = np.abs(exact if kernel in NORMWISE else other)
        finite = np.isfinite(getattr(expected, part))
        np.testing.assert_array_equal(one[~finite], getattr(expected, part)[~finite])
        allowed = ULP * about.eps * size + 4 * about.smallest_subnormal
        with np.errstate(invalid="ignore"):  # of infinities, which are compared above
            wrong = finite & ~(np.abs(one - other) <= allowed)
        assert not wrong.any(), (part, z[wrong][:4], actual[wrong][:4], exact[wrong][:4])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("kernel", ["Cosh", "Expm1", "Sinh"])
def test_a_result_that_almost_overflows(kernel: str, dtype: str) -> None:
    """Where e**x overflows, its product with the sine or cosine of 45 degrees does not."""
    x = np.log(np.finfo(dtype).max) + 0.25
    z = np.array([x + 0.25j * np.pi, x - 0.25j * np.pi], dtype)
    actual = tp.run_kernel(kernel, [z]).numpy()
    expected = FUNCTIONS[kernel][0](z.astype(np.clongdouble))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected.astype(dtype), rtol=ULP * np.finfo(dtype).eps * 99)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("kernel", "part", "factor"), [("Sinh", "real", np.cos), ("Cosh", "imag", np.sin)]
)
def test_a_part_that_vanishes_keeps_its_sign(
    kernel: str, part: str, factor: Callable[[Any], Any], dtype: str
) -> None:
    """Sinh x cos y and sinh x sin y have the sign of both factors if x is 0."""
    angles = np.array([0.5, 2.0, 3.5, 5.0, -0.5, -2.0, -3.5, -5.0])  # of all quadrants
    z = np.empty((2, angles.size), dtype)
    z.real, z.imag = np.array([[0.0], [-0.0]]), angles
    actual = getattr(tp.run_kernel(kernel, [z]).numpy(), part)
    expected = np.array([[0.0], [-0.0]]) * factor(angles)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.parametrize("kernel", FUNCTIONS)
def test_gradients_go_through_it(kernel: str) -> None:
    z = np.array([0.75 + 0.5j, -0.5 + 1.25j, 1.5 - 0.75j])

    def f(z: Any) -> Any:
        return tp.run_kernel(kernel, [z]) * (1 - 2j)

    check_grads(f, [z], order=2)
