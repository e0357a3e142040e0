"""TensorFlow.js's behaviour, scenarios 9 and 30: profiles, and what debug mode sees.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, NonFiniteError
from tensorplug.testing import isolated_engine

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN, INF = float("nan"), float("inf")
THREE = tp.TensorType(tp.float32, (3,))


def squares():
    x = tp.asarray([1.0, 2.0, 3.0])
    for _ in range(2):
        y = tp.square(x)
        y.dispose()
    return x


def test_scenario_09_profile():
    p = tp.profile(squares)
    assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 24, 1)
    assert p.kernel_names == ["Square"]
    assert [(kernel.name, kernel.new_bytes, kernel.live_bytes) for kernel in p.kernels] == [
        ("Square", 12, 24)
    ] * 2
    assert [(kernel.inputs, kernel.outputs) for kernel in p.kernels] == [((THREE,), (THREE,))] * 2
    expect(p.result, "float32", (3,), [1, 2, 3])


def test_row_55_each_profile_has_its_own_figures():
    """TensorFlow.js has one object, which the next profile overwrites."""
    first = tp.profile(squares)
    second = tp.profile(lambda: 5)
    assert (second.kernels, second.result) == ([], 5)
    assert (second.new_bytes, second.peak_bytes, second.new_tensors) == (0, 0, 0)  # not -Infinity
    assert (len(first.kernels), first.peak_bytes) == (2, 24)


def test_row_55_an_exception_ends_the_profile():
    """TensorFlow.js goes on profiling for ever; ours keeps what it has until then."""
    context = current_context()
    with pytest.raises(ZeroDivisionError), tp.profile() as p:
        raise ZeroDivisionError(str(tp.square([1.0]).shape))
    assert current_context() is context
    assert p.kernel_names == ["Square"]
    assert tp.profile(tp.square, [2.0]).kernel_names == ["Square"]
    assert len(p.kernels) == 1


def test_scenario_30_the_kernels_of_log_softmax():
    """On a backend without that kernel, the kernels of its decomposition come first.

    TensorFlow.js has Max, Sub, Cast, Exp, Sum, Log, Sub and the op's own scope. Ours has one
    kernel, or its decomposition, which counts the largest elements apart from the others; and no
    scope.
    """
    with isolated_engine("cpu"):
        tp.unregister_kernel("LogSoftmax", "cpu")
        p = tp.profile(tp.nn.log_softmax, [1.0, 2.0])
    assert [(kernel.name, kernel.how, kernel.depth) for kernel in p.kernels] == [
        ("Max", "native", 1),
        ("Sub", "native", 1),
        ("Equal", "native", 1),
        ("Exp", "native", 1),
        ("Select", "native", 1),
        ("Sum", "native", 1),
        ("Cast", "native", 1),
        ("Sum", "native", 1),
        ("Sub", "native", 1),
        ("Add", "native", 1),
        ("Log1p", "native", 1),
        ("Sub", "native", 1),
        ("LogSoftmax", "decomposed", 0),
    ]


def test_row_54_the_native_kernel_is_one():
    p = tp.profile(tp.nn.log_softmax, [1.0, 2.0])
    assert [(kernel.name, kernel.how) for kernel in p.kernels] == [("LogSoftmax", "native")]


def test_row_54_coroutines_use_the_with_form():
    async def work():
        return tp.square([1.0])

    with pytest.raises(ArgumentError, match="write `with profile\\(\\): await"):
        tp.profile(work)


MADE = {  # row 59: a warning in TensorFlow.js, of float32 alone
    "NaN": (lambda: tp.log(tp.asarray([-1.0])), r"Log\b.*made 1 NaN of 1"),
    "infinity": (lambda: tp.log(tp.asarray([0.0, 1.0])), r"made 1 infinity of 2, at \[0\]: -inf"),
    "float64": (lambda: tp.log(tp.asarray([-1.0], dtype="float64")), "made 1 NaN of 1"),
    "complex64": (lambda: tp.divide(tp.asarray([0j]), 0), r"RealDiv\b.*made 1 NaN of 1"),
}


@pytest.mark.parametrize("what", MADE)
def test_row_59_debug_raises_where_the_first_one_is_made(what):
    call, message = MADE[what]
    call()  # nothing, without debug
    with pytest.raises(NonFiniteError, match=message) as caught:
        tp.debug(call)
    assert "test_tfjs_profiling.py" in str(caught.value)  # the line of Python


def test_row_60_infinity_may_be_uploaded():
    """Masks are made with it; TensorFlow.js refuses both in its debug mode."""
    expect(tp.debug(tp.asarray, [INF]), "float32", (1,), [INF])
    with pytest.raises(NonFiniteError, match="holds 1 NaN of 1"):
        tp.debug(tp.asarray, [NAN])
