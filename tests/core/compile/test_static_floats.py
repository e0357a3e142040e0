"""compile: Python floats that a function uses as numbers, and warnings of many signatures."""

from __future__ import annotations

import math

import pytest
from tests.core.compile.test_compile import Counted, agree
from tests.core.compile.test_compile_floats import A, _layer, on_cpu
from tests.core.support.tensors import tensor

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, RecompileWarning


def _condition(x, rate):
    return x * rate if rate > 0.4 else x


def _function(x, rate):
    return x * math.exp(rate)


def _number(x, rate):
    return x * int(rate * 10)


def _attribute(x, rate):
    return tp.nn.leaky_relu(x, rate)


def _filled(x, rate):
    return tp.full((2, 3), rate) + x


def _text(x, rate):
    return x * float(f"{rate:.3f}")


def _key(x, rate):
    return x * {0.3: 1.0, 0.5: 2.0, 0.7: 3.0}[rate]


def _listed(x, rate):
    return x * tp.asarray([rate, 1.0, 2.0])


def _checked(x, rate):
    return x * rate if isinstance(rate, float) and not math.isnan(rate) else x


def _of_a_tensor(x, rate):
    return x * float(tp.exp(tp.asarray(rate)))  # data that depend on a float


@on_cpu
@pytest.mark.parametrize(
    "f",
    [
        _condition,
        _function,
        _number,
        _attribute,
        _filled,
        _text,
        _key,
        _listed,
        _checked,
        _of_a_tensor,
    ],
    ids=lambda f: f.__name__,
)
def test_a_float_that_the_function_uses_as_a_number_is_static(f):
    compiled = tp.compile(f)
    for _ in range(2):
        for rate in (0.3, 0.5, 0.7):
            agree(compiled(tensor(A), rate), f(tensor(A), rate), rtol=1e-6)


@on_cpu
def test_only_the_floats_that_were_used_are_static():
    f = Counted(lambda x, a, b: x * a if b > 0 else x - a)
    compiled = tp.compile(f)
    for b, traces in ((1.0, 1), (-1.0, 2), (1.0, 2)):
        for a in (0.5, 0.25, 0.125):
            agree(compiled(tensor(A), a, b), f.f(tensor(A), a, b))
        assert f.calls == traces


@on_cpu
def test_branches_that_use_different_floats():
    def f(x, a, b):
        if a > 0:
            return x * 2 if b > 0 else x * 3
        return x * b

    counted = Counted(f)
    compiled = tp.compile(counted)
    given = [(a, b) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    for _ in range(3):
        for a, b in given:
            agree(compiled(tensor(A), a, b), f(tensor(A), a, b))
    assert counted.calls <= 6  # each value is traced once, after the first few calls


@on_cpu
def test_signed_zeros_and_nan_are_values():
    f = Counted(lambda x, rate: x * math.copysign(1.0, rate))
    compiled = tp.compile(f)
    for rate in (0.0, -0.0, math.nan, 0.0, -0.0, math.nan):
        agree(compiled(tensor(A), rate), f.f(tensor(A), rate))
    assert f.calls == 3


@on_cpu
def test_static_floats_on_request():
    f = Counted(lambda x, rate: x * rate)
    for compiled in (tp.compile(f, static_floats=True), tp.compile(static_floats=True)(f)):
        f.calls = 0
        for rate in (0.5, 0.25, 0.5):
            agree(compiled(tensor(A), rate), f.f(tensor(A), rate))
        assert f.calls == 2
        assert len(compiled.program(tensor(A), 0.5).inputs) == 1
    with pytest.raises(ArgumentError, match="static_floats must be True or False, got 1"):
        tp.compile(f, static_floats=1)


@on_cpu
def test_a_float_that_outlives_the_trace_is_useless():
    kept = []

    @tp.compile
    def f(x, rate):
        kept.append(rate * 2)
        return x * rate

    f(tensor(A), 0.5)
    for use in (
        float,
        bool,
        lambda number: tensor(A) * number,
        lambda number: f(tensor(A), number),
    ):
        with pytest.raises(CompileError, match="used after tracing; return it"):
            use(kept[0])
    assert repr(kept[0]) == "<traced float, 1.0 in this call>"


WARNINGS = {
    "an integer": (lambda n: ((tensor(A), n), {}), "n was 7, now 8", "as a float or as a tensor"),
    "a shape": (
        lambda n: ((tp.zeros((1,) * (n + 1)), 2), {}),
        r"x was float32\[1(,1){7}\] on cpu, now float32\[1(,1){8}\] on cpu",
        "pad tensors",
    ),
    "a dtype": (
        lambda n: ((tp.zeros((1,) * n, dtype=(tp.float32, tp.float64)[n % 2]), 2), {}),
        r"x was float64\[1(,1){6}\] on cpu, now float32\[1(,1){7}\] on cpu",
        "one dtype and one device",
    ),
    "a used float": (
        lambda n: ((tensor(A), 2, "o"), {"scale": n / 2}),
        r"scale was 3\.5, now 4\.0",
        r"uses the float as a Python number \(at test_compile_floats\.py:\d+\)",
    ),
    "an object": (
        lambda n: ((tensor(A), 2, type(f"Kind{n}", (), {})), {}),
        r"options was <class '.*Kind7'>, now <class '.*Kind8'>",
        "compared by value",
    ),
    "a structure": (
        lambda n: ((tensor(A), 2, {f"key{n}": 1}), {}),
        r"the arguments are x, n, options\['key8'\] instead of x, n, options\['key7'\]",
        "trees of one structure",
    ),
}


@on_cpu
@pytest.mark.parametrize("name", WARNINGS)
def test_the_ninth_signature_warns_once_of_what_changed(name):
    arguments, change, cure = WARNINGS[name]
    compiled = tp.compile(_layer)
    for n in range(8):
        args, kwargs = arguments(n)
        compiled(*args, **kwargs)
    args, kwargs = arguments(8)
    with pytest.warns(RecompileWarning) as caught:
        compiled(*args, **kwargs)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("compile: _layer was traced for more than 8 signatures")
    assert warning.filename == __file__
    for pattern in (change, cure):
        assert pytest.raises(AssertionError, match=pattern).matches(AssertionError(text)), text
    for n in range(9, 30):
        args, kwargs = arguments(n)
        compiled(*args, **kwargs)  # any warning is an error


@on_cpu
def test_a_learning_rate_that_changes_at_every_call_warns_of_nothing():
    f = Counted(lambda x, rate: x - rate * x)
    compiled = tp.compile(f)
    for step in range(100):
        compiled(tensor(A), 0.1 * 0.99**step)
    assert f.calls == 1
    assert repr(compiled).endswith("1 programs>")
