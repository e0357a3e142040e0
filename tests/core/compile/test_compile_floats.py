"""compile: Python floats are inputs of a program, unless the function uses them as numbers."""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import Counted, agree
from tests.core.support.tensors import tensor

import tensorplug as tp
from tensorplug.errors import CompileError

A = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]], np.float32)
FLOATS = [0.1, 0.3, -0.0, 1e-300, 1e300, math.inf, math.nan]

on_cpu = pytest.mark.usefixtures("on_the_cpu")


# Values and dtypes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *(("cpu", dtype) for dtype in ("float16", "complex64", "complex128")),
        *product(("cpu", "minimal"), ("float32", "float64", "int32", "uint8", "bool")),
    ],
)
def test_a_float_beside_a_tensor_is_weak(backend, dtype):
    f = Counted(lambda x, rate: (x * rate, rate - x, tp.where(x == 0, rate, x), tp.asarray(rate)))
    with tp.use_backend(backend):
        compiled = tp.compile(f)
        x = tp.asarray(np.array([0, 1, 3]).astype(dtype))
        for rate in FLOATS:
            for ours, theirs in zip(compiled(x, rate), f.f(x, rate), strict=True):
                assert ours.type == theirs.type
                np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert f.calls == 1


ARITHMETIC = {
    "add": lambda r: (r + 1, 1 + r, r + r),
    "subtract": lambda r: (r - 0.3, 1 - r, 0.3 - r),
    "multiply": lambda r: (r * 3, 3 * r, r * True),
    "divide": lambda r: (r / 3, 1 / r, r / r),
    "whole": lambda r: (r // 0.03, 7 // r, r % 0.03, 1 % r, *divmod(r, 0.03), *divmod(1, r)),
    "power": lambda r: (r**2, 2**r, r**0.5, r**-1),
    "signs": lambda r: (-r, +r, abs(-r), -abs(r), 0.0 * -r, -0.0 * r, 0.0 * r),
    "chain": lambda r: ((1 - r) ** 2 / (1 - r**3), r * 2 + r * 2),
    "own members": lambda r: (r.real, r.imag, r.conjugate(), copy.deepcopy(r), copy.copy(r)),
}


@on_cpu
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_that_of_python(name):
    """To the last bit of a double, in results and beside a tensor."""
    f = Counted(lambda x, rate: [(x * r, r) for r in ARITHMETIC[name](rate)])
    compiled = tp.compile(f)
    x = tp.asarray([1.0, 3.0], dtype=tp.float64)
    for rate in (0.1, 0.7, 1e-5, 12.0):
        for ours, theirs in zip(compiled(x, rate), f.f(x, rate), strict=True):
            assert ours[0].type == theirs[0].type
            np.testing.assert_array_equal(ours[0].numpy(), theirs[0].numpy())
            assert type(ours[1]) is float
            assert repr(ours[1]) == repr(float(theirs[1]))
    assert f.calls == 1


@on_cpu
def test_errors_of_arithmetic_come_at_every_call():
    compiled = tp.compile(lambda x, rate: x * (1 / rate))
    agree(compiled(tensor(A), 2.0), tensor(A * 0.5))
    with pytest.raises(ZeroDivisionError):
        compiled(tensor(A), 0.0)
    rooted = tp.compile(lambda x, rate: x * rate**0.5)
    agree(rooted(tensor(A), 4.0), tensor(A * 2))
    with pytest.raises(CompileError, match=r"pow of a float argument .* static_floats=True"):
        rooted(tensor(A), -4.0)


@dataclass
class Options:
    rate: float
    steps: int


@on_cpu
def test_floats_in_trees_are_inputs():
    f = Counted(lambda x, o, *, more: (x * o.rate * more["a"][0] ** o.steps, o))
    compiled = tp.compile(f)
    for rate in (0.5, 0.25):
        given = (tensor(A), Options(rate, 2))
        more = {"a": (rate * 3, "text")}
        result = compiled(*given, more=more)
        agree(result, f.f(*given, more=more))
        assert result[1] == Options(rate, 2)
    assert f.calls == 1
    compiled(tensor(A), Options(0.5, 3), more={"a": (1.0, "text")})
    assert f.calls == 2  # integers are static


@on_cpu
def test_equal_inputs_are_one():
    f = tp.compile(lambda x, rate: (x * rate + x * (1 - rate), x - (1 - rate)))
    assert len(f.program(tensor(A), 0.5).inputs) == 3


@on_cpu
def test_arrays_of_numpy_leave_arithmetic_to_the_float():
    def f(x, rate):
        return x * tp.asarray(A * rate + np.float64(2) * rate + np.asarray([rate]))

    compiled = tp.compile(f)
    for rate in (0.5, 2.0):
        agree(compiled(tensor(A), rate), f(tensor(A), rate))


# Gradients ------------------------------------------------------------------------------


def _derivative(f, order):
    """Return the sum of derivatives of ``f`` as a function, ``order`` times."""
    if not order:
        return f
    return lambda x: tp.sum(tp.grad(_derivative(f, order - 1))(x))


@on_cpu
def test_gradients_through_a_function_with_floats():
    f = Counted(lambda x, a, b: tp.sum(tp.exp(x * a) * (1 - b)))
    compiled = tp.compile(f)
    for a, b in ((0.5, 0.25), (0.75, -2.0)):
        for order in (1, 2):
            slopes = [_derivative(partial(each, a=a, b=b), order) for each in (compiled, f.f)]
            agree(*[slope(tensor(A)) for slope in slopes], rtol=1e-5)
    with_grad = tp.compile(tp.grad(f.f))
    agree(with_grad(tensor(A), 0.5, 0.25), tp.grad(f.f)(tensor(A), 0.5, 0.25))


@on_cpu
def test_a_float_that_only_the_gradient_uses():
    calls = []

    def scaled(x, rate, clip):
        @tp.custom_grad
        def f(x):
            def slope(dy):
                calls.append("clipped" if clip > 0 else "free")
                return dy * rate * (0.5 if clip > 0 else 1.0)

            return x * 1.0, slope

        return tp.sum(f(x))

    compiled = tp.compile(scaled)
    for rate, clip, factor in (
        (3.0, 1.0, 0.5),
        (5.0, 1.0, 0.5),
        (7.0, -1.0, 1.0),
        (9.0, 1.0, 0.5),
    ):
        gradient = tp.grad(lambda x, r=rate, c=clip: compiled(x, r, c))(tensor(A))
        np.testing.assert_array_equal(gradient.numpy(), np.full_like(A, rate * factor))
    assert calls == ["clipped", "free"]


def _layer(x, n, options=None, *, scale=1.0):
    return x * scale if options is None or scale < 0 else x * n


# What the function looks like -----------------------------------------------------------


class _Scale:
    @tp.compile
    def apply(self, x: Any, by: float = 2.0) -> Any:
        """Multiply."""
        return x * by

    @classmethod
    @tp.compile
    def of_class(cls, x: Any) -> Any:
        """Return x."""
        return x

    @staticmethod
    @tp.compile
    def free(x: Any) -> Any:
        """Return x."""
        return x


@on_cpu
def test_signature_name_and_text_are_those_of_the_function():
    compiled = tp.compile(_layer)
    assert inspect.signature(compiled) == inspect.signature(_layer)
    assert (compiled.__name__, compiled.__module__) == ("_layer", __name__)
    assert compiled.__wrapped__ is _layer
    scale = _Scale()
    assert list(inspect.signature(_Scale.apply).parameters) == ["self", "x", "by"]
    assert list(inspect.signature(scale.apply).parameters) == ["x", "by"]
    assert (scale.apply.__name__, scale.apply.__doc__) == ("apply", "Multiply.")
    agree(scale.apply(tensor(A), by=0.5), tensor(A / 2))
    agree(scale.of_class(tensor(A)), tensor(A))
    agree(_Scale.free(tensor(A)), tensor(A))
    assert "Multiply." in inspect.getdoc(_Scale.apply)


@on_cpu
def test_printing_in_a_compiled_function(capsys):
    @tp.compile
    def f(x, rate):
        print(x)
        print(f"{tp.sum(x)}")
        print(tp.ones((2,)), rate)
        return x * rate

    f(tensor(A), 0.5)
    f(tensor(A), 0.25)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"<traced Tensor {type_} on cpu, which gets its values when the compiled function runs: "
        "return it, or call the function without compile, to see them>"
        for type_ in ("float32[2,3]", "float32[]")
    ] + ["Tensor([1., 1.], dtype=float32, device='cpu') <traced float, 0.5 in this call>"]
