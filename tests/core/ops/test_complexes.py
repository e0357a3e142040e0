"""Complex numbers: parts, wholes, moduli, and gradients that pass through them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import DTypeError
from tensorplug.testing import check_grads, isolated_engine
from tensorplug_conformance.primitives import PRIMITIVES


@pytest.fixture(scope="module", params=["native", "decomposed"], autouse=True)
def form(request):
    """Run natively, and then with the primitives alone."""
    with isolated_engine("cpu"):
        if request.param == "decomposed":
            for name in tp.kernels_for("cpu"):
                if name not in PRIMITIVES:
                    tp.unregister_kernel(name, "cpu")
        yield request.param


def test_dtypes():
    for real, imag, dtype in (
        *(("int32", "int32", "complex64"), ("float16", "float16", "complex64")),
        *(("float32", "float64", "complex128"), ("int8", "float64", "complex128")),
    ):
        expect(tp.complex(np.ones(2, real), np.ones((), imag)), dtype, (2,), [1 + 1j] * 2)
    expect(tp.complex(1, np.float64([2])), "complex128", (1,), [1 + 2j])
    whole = tp.run_kernel("Complex", {"real": np.float32(1), "imag": np.float32(-1)})
    expect(whole, "complex64", (), 1 - 1j)
    expect(tp.run_kernel("Real", {"input": whole}), "float32", (), 1)
    expect(tp.run_kernel("Imag", {"input": whole}), "float32", (), -1)
    with pytest.raises(DTypeError, match="input 'real' is complex64"):
        tp.complex(whole, 1)


def test_real_numbers():
    x = np.float32([1, -2])
    expect(tp.real(x), "float32", (2,), x)
    expect(tp.imag(x), "float32", (2,), [0, 0])
    expect(tp.conj(x), "float32", (2,), x)
    expect(tp.imag(np.int8([3])), "int8", (1,), [0])


def test_modulus():
    expect(tp.abs([3 + 4j]), "float32", (1,), [5])
    expect(abs(tp.asarray([3 + 4j])), "float32", (1,), [5])
    expect(tp.abs(-2), "int32", (), 2)
    with pytest.raises(DTypeError, match=r"ComplexAbs.*input 'x' is float32"):
        tp.run_kernel("ComplexAbs", {"x": np.float32([1])})


# Gradients from real numbers to real numbers, by way of complex ones -------------------------

X, Y = np.array([0.5, -1.5]), np.array([2.0, 1.0])
THROUGH = {  # kernels whose rules are tried
    "Complex, Real": lambda x, y: tp.real(tp.complex(x, y) * tp.complex(y, x)),
    "Complex, Imag": lambda x, y: tp.imag(tp.complex(x, y) * tp.complex(x, 2 * y)),
    "ComplexAbs": lambda x, y: tp.abs(tp.complex(x, y) * tp.complex(y, 1.0)),
    "Conj": lambda x, y: tp.real(tp.conj(tp.complex(x, y)) * tp.complex(y, x)),
    "Imag of real numbers": lambda x, y: tp.imag(x) + x * y,
    "Exp": lambda x, y: tp.imag(tp.exp(tp.complex(x, y))),
    "Cast": lambda x, y: tp.real(tp.astype(x, "complex128") * tp.complex(y, x)),
}


@pytest.mark.parametrize("what", THROUGH)
def test_gradients_through_complex_numbers(what):
    check_grads(THROUGH[what], [X, Y], order=2)


def test_the_gradient_of_a_modulus_at_0_is_0():
    zero = np.zeros(2, np.float32)
    gradients = tp.grad(lambda x, y: tp.sum(tp.abs(tp.complex(x, y))), (0, 1))(zero, zero)
    for gradient in gradients:
        expect(gradient, "float32", (2,), [0, 0])
