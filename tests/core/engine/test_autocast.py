"""Mixed precision: which kernels run in which dtype inside ``autocast``, and what composes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.engine.autocast import IN_FLOAT32, IN_LOW_PRECISION
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.plugins import catalogue
from tensorplug_conformance.denominator import Row, cases_of, entries

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(19)
X = RNG.normal(size=(3, 4)).astype(np.float32)
W = RNG.normal(size=(4, 5)).astype(np.float32)
IMAGE = RNG.normal(size=(1, 5, 5, 2)).astype(np.float32)
FILTER = RNG.normal(size=(2, 2, 2, 3)).astype(np.float32)
HEADS = RNG.normal(size=(1, 2, 3, 4)).astype(np.float32)

FLOATS = {dtype.name for dtype in dt.FLOATING}
NARROW = [name for name in ("float16", "bfloat16") if name in FLOATS]
Call = tuple[str, "Callable[[], Any]", str]
# What; a call of float32 arrays; the dtype of its result inside autocast("float16").
CALLS: list[Call] = [
    ("matmul", lambda: tp.matmul(X, W), "float16"),
    ("einsum", lambda: tp.einsum("ij,jk->ik", X, W), "float16"),
    ("convolution", lambda: tp.nn.conv2d(IMAGE, FILTER, 1, "same"), "float16"),
    ("attention", lambda: tp.nn.scaled_dot_product_attention(HEADS, HEADS, HEADS), "float16"),
    ("exp", lambda: tp.exp(X), "float32"),
    ("exp of halves", lambda: tp.exp(X.astype(np.float16)), "float32"),
    ("softmax of halves", lambda: tp.nn.softmax(X.astype(np.float16)), "float32"),
    ("sum of halves", lambda: tp.sum(X.astype(np.float16)), "float32"),
    ("cumulative sum of halves", lambda: tp.cumulative_sum(X[0].astype(np.float16)), "float32"),
    ("relu of halves", lambda: tp.nn.relu(X.astype(np.float16)), "float16"),
    ("sum of a half and a float", lambda: tp.asarray(X) + X.astype(np.float16), "float32"),
    ("product of doubles", lambda: tp.matmul(X.astype(np.float64), W), "float64"),
    ("product of complex numbers", lambda: tp.matmul(X + 1j, W), "complex64"),
    ("product of integers", lambda: tp.matmul(X.astype(np.int32), W.astype(np.int32)), "int32"),
    ("sum of integers", lambda: tp.sum(X.astype(np.int32)), "int32"),
]


@pytest.mark.parametrize(("what", "call", "dtype"), CALLS, ids=[call[0] for call in CALLS])
def test_the_family_of_a_kernel_decides(what: str, call: Callable[[], Any], dtype: str) -> None:
    outside = call()
    with tp.autocast("float16"):
        inside = [call() for _ in range(3)]  # resolved, cached, from the cache
    for actual in inside:
        assert (actual.dtype, actual.shape) == (dtype, outside.shape)
        np.testing.assert_allclose(actual.numpy(), outside.numpy(), rtol=1e-2, atol=1e-2)
    again = call()
    assert again.dtype == outside.dtype
    np.testing.assert_array_equal(again.numpy(), outside.numpy())


@pytest.mark.parametrize(
    ("autocast", "given", "dtype"),
    [
        ("low", "float32", "float16"),
        ("low", "float64", "float64"),
        ("float32", "float16", "float32"),
        (None, "float16", "float16"),
        (None, "float32", "float32"),
    ],
)
def test_the_spec_of_a_plugin_says_in_which_dtype_its_kernel_runs(
    autocast: Any, given: str, dtype: str
) -> None:
    spec = tp.KernelSpec("Halve", ("x",), lambda x: x, promote=("x",), autocast=autocast)
    with tp.register_kernel(spec, "cpu", lambda x: x / 2), tp.autocast("float16"):
        assert tp.run_kernel(spec, [tp.ones(3, dtype=given)]).dtype == dtype


def test_a_product_rounds_its_inputs_and_its_result_alone() -> None:
    with tp.autocast("float16"):
        result = tp.matmul(X, W)
    wide = X.astype(np.float16).astype(np.float64) @ W.astype(np.float16).astype(np.float64)
    expect(result, "float16", (3, 5), wide.astype(np.float16))


def test_the_rules_name_kernels_of_the_catalogue_and_none_twice() -> None:
    rows = [*IN_LOW_PRECISION.values(), *IN_FLOAT32.values()]
    names = [name for row in rows for name in row]
    assert sorted(set(names) - {spec.name for spec in catalogue.catalogue()}) == []
    assert len(names) == len(set(names))


KERNELS = [
    *(
        (name, "float32", low)
        for row in IN_LOW_PRECISION.values()
        for name in row
        for low in NARROW
    ),
    *((name, low, "float32") for row in IN_FLOAT32.values() for name in row for low in NARROW),
]


@pytest.mark.parametrize(("kernel", "given", "wanted"), KERNELS)
def test_each_kernel_takes_what_the_suite_gives_it(kernel: str, given: str, wanted: str) -> None:
    cases = cases_of(entries()[kernel], Row(kernel, given, "native"), 0)
    small = [case for case in cases if not case.period]
    for case in small[:3]:
        with tp.autocast(given if wanted == "float32" else wanted):
            result = tp.run_kernel(kernel, list(case.inputs), case.attributes)
        output = result[0] if isinstance(result, list) else result
        assert dt.real_part(output.dtype) == wanted  # the eigenvalues are complex


# Blocks ----------------------------------------------------------------------------------


def test_by_default_the_first_narrow_float_that_the_backend_has() -> None:
    with tp.autocast():
        assert tp.matmul(X, W).dtype == NARROW[-1]


def test_blocks_are_nested_and_undo_their_own_change() -> None:
    def dtype() -> str:
        return str(tp.matmul(X, W).dtype)

    with tp.autocast("float16"):
        assert dtype() == "float16"
        with tp.autocast(enabled=False):
            assert dtype() == "float32"
            with tp.autocast("float16"):
                assert dtype() == "float16"
        assert dtype() == "float16"
        with tp.use_backend("cpu"), tp.tidy():
            assert dtype() == "float16"
    assert dtype() == "float32"


def test_another_thread_is_outside() -> None:
    result: list[str] = []
    with tp.autocast("float16"):
        thread = threading.Thread(target=lambda: result.append(str(tp.matmul(X, W).dtype)))
        thread.start()
        thread.join()
    assert result == ["float32"]


def test_as_a_decorator_it_covers_each_call() -> None:
    @tp.autocast("float16")
    def product(x: Any, w: Any) -> Any:
        """Multiply."""
        return tp.matmul(x, w)

    assert [str(product(X, W).dtype) for _ in range(2)] == ["float16", "float16"]
    assert product.__doc__ == "Multiply."
    assert tp.matmul(X, W).dtype == "float32"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tp.autocast("float32"), DTypeError, "autocast: dtype is float32, but must be"),
        (lambda: tp.autocast("narrow"), DTypeError, "unknown dtype 'narrow'"),
        (lambda: tp.autocast(enabled=1), ArgumentError, "autocast: enabled"),
        (lambda: tp.autocast()(3), ArgumentError, "can be decorated, got 3"),
        (lambda: tp.autocast()(_steps), ArgumentError, "can be decorated, got <function _steps"),
        (lambda: tp.autocast()(_events), ArgumentError, "can be decorated, got <function _events"),
    ],
)
def test_what_it_refuses(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def _steps() -> Any:
    yield 1


async def _events() -> Any:
    yield 1


def test_a_block_is_entered_once_at_a_time() -> None:
    block = tp.autocast("float16")
    with block, pytest.raises(RuntimeError, match="this autocast has been entered already"):
        block.__enter__()
    with block:
        assert tp.matmul(X, W).dtype == "float16"


# What runs inside ------------------------------------------------------------------------


def test_explain_and_observers_see_the_casts() -> None:
    x, w = tp.asarray(X), tp.asarray(W)
    with tp.autocast("float16"), tp.profile() as profile:
        assert tp.matmul(x, w).dtype == "float16"
    assert "Cast" in str(profile)
    with tp.autocast("float16"):
        assert "promoted: to float16" in str(tp.explain("BatchMatMul", [x, w]))
