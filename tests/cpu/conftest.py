"""An engine with the CPU backend and nothing else, without the plugin layer."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract.owner import Owner
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.dispatch.context import Context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.engine import Engine, Opened
from tensorplug.engine.registry import Registry
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import plugin
from tensorplug_cpu.jit.codegen.settings import JIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OWNER = Owner("tensorplug-cpu", "under test")


class Source:
    """One backend, opened through the functions of its plugin module."""

    def names(self) -> Sequence[str]:
        return ("cpu",)

    def devices(self, name: str) -> None:
        assert name == "cpu"

    def open(self, name: str, device: str | None) -> Opened:
        assert name == "cpu"
        backend = plugin.tensorplug_create_backend(device)
        tables = plugin.tensorplug_kernels(backend)
        return Opened(backend, OWNER, tuple((OWNER, table) for table in tables))


@pytest.fixture
def loops(monkeypatch):
    """Native loops for large arrays; skips the test where LLVM is not installed."""
    pytest.importorskip("llvmlite", reason="an extra")
    monkeypatch.setenv(JIT, "1")


@pytest.fixture(scope="session")
def context():
    specs = {entry.spec.name: entry.spec for table in plugin.TABLES for entry in table}
    engine = Engine(Source(), Registry(specs.values()))
    return Context(engine, engine.open("cpu"))


def strided(array: np.ndarray) -> np.ndarray:
    """Return a view with the same elements that is contiguous in no order."""
    if not array.ndim:
        return np.full((3,), array, array.dtype)[1:2].reshape(())
    spread = np.empty([2 * length + 1 for length in array.shape[::-1]], array.dtype).T
    view = spread[tuple(slice(1, 2 * length + 1, 2) for length in array.shape)]
    view[...] = array
    return view


def dense(array: np.ndarray) -> np.ndarray:
    return np.array(array, order="C")


@pytest.fixture(params=[dense, strided], ids=["dense", "strided"])
def call(request, context) -> Callable[..., Any]:
    """Run a kernel on read-only NumPy arrays; return arrays.

    NumPy raises at every floating-point flag and every warning is an error, so a kernel that
    obeys the user's settings fails; so does one that writes into an input.
    """

    def run(spec: Any, *inputs: Any, **attributes: Any) -> Any:
        def tensor(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, list):
                return [tensor(array) for array in value]
            buffer = request.param(np.asarray(value))
            buffer.flags.writeable = False
            type_ = context.device.backend.describe(buffer)
            return Tensor._of(buffer, context.device.placement(type_))

        tensors = [tensor(operand) for operand in inputs]
        with (
            np.errstate(all="raise"),
            warnings.catch_warnings(),
            use_context(context),
        ):
            warnings.simplefilter("error")
            run = dispatch_multiple if spec.multiple_outputs else dispatch
            run(spec, *tensors, **attributes)
            result = run(spec, *tensors, **attributes)  # now from the plan cache
        results = result if isinstance(result, list) else [result]
        for output in results:
            assert context.device.backend.describe(output._buffer) == output.type
        arrays = [output._buffer for output in results]
        return arrays if isinstance(result, list) else arrays[0]

    return run


@pytest.fixture
def near() -> Callable[..., None]:
    """Compare dtype, shape, NaN and infinities exactly, then values within ``ulp``.

    ``expected`` is an array or nested list in at least the precision of ``actual``.
    """

    def compare(actual: Any, expected: Any, dtype: Any, *, ulp: float = 0, zeros: bool = True):
        assert isinstance(actual, np.ndarray)
        wanted = np.asarray(expected)
        kind = dt.of(dtype).numpy
        assert (actual.dtype, actual.shape) == (kind, wanted.shape)
        if kind.kind not in "fc":
            np.testing.assert_array_equal(actual, wanted.astype(kind))
            return
        if kind.kind == "c":
            compare(actual.real, wanted.real, actual.real.dtype, ulp=ulp, zeros=zeros)
            compare(actual.imag, np.imag(wanted), actual.real.dtype, ulp=ulp, zeros=zeros)
            return
        with np.errstate(all="ignore"):
            rounded = wanted.astype(kind)
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(rounded))
        special = ~np.isfinite(rounded)
        np.testing.assert_array_equal(actual[special], rounded[special])
        fine = np.isfinite(rounded)
        with np.errstate(all="ignore"):
            off = np.abs(actual[fine].astype(np.float64) - wanted[fine].astype(np.float64))
            step = np.abs(np.spacing(rounded[fine])).astype(np.float64)
        # Half an ulp is the rounding of the expected value itself.
        assert (off <= (ulp + 0.5) * step).all(), (actual[fine], wanted[fine], off / step)
        if zeros:
            exact = fine & (rounded == 0) & (actual == 0)
            np.testing.assert_array_equal(np.signbit(actual[exact]), np.signbit(rounded[exact]))

    return compare
