"""An engine with the OpenCL backend and nothing else, without the plugin layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.compile.decomposed import run_programs
from tensorplug.contract import dtypes as dt
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.context import Context, use_context
from tensorplug.dispatch.handlers import Handlers
from tensorplug.engine.engine import Engine, Opened
from tensorplug.engine.registry import Registry
from tensorplug.errors import KernelRefusedError
from tensorplug.ops import creation
from tensorplug.plugins.assembly import core_registry
from tensorplug.plugins.catalogue import catalogue
from tensorplug_opencl import device, plugin
from tensorplug_opencl.backend import OpenCLBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.runtime import Runtime

OWNER = Owner("tensorplug-opencl", "under test")


class Source:
    """One backend, opened through the functions of its plugin module."""

    def names(self) -> Sequence[str]:
        return ("opencl",)

    def devices(self, name: str) -> None:
        assert name == "opencl"

    def open(self, name: str, device: str | None) -> Opened:
        assert name == "opencl"
        backend = plugin.tensorplug_create_backend(device)
        tables = plugin.tensorplug_kernels(backend)
        return Opened(backend, OWNER, tuple((OWNER, table) for table in tables))


def require_device() -> None:
    if not any(actual.verdict.usable for actual in device.available()):
        pytest.skip("there is no sound OpenCL device: install a driver, or tensorplug-opencl[cpu]")


@pytest.fixture
def target():
    """Return the device that the tests run on."""
    require_device()
    return device.choose(None).device


@pytest.fixture(scope="session")
def context():
    require_device()
    engine = Engine(Source(), Registry(catalogue()), fallback="error")
    return Context(engine, engine.open("opencl"))


@pytest.fixture(scope="session")
def core_context():
    """Return a context of an engine that also has the core's decompositions, as programs."""
    require_device()
    engine = Engine(Source(), core_registry(), fallback="error", handlers=Handlers(run_programs))
    return Context(engine, engine.open("opencl"))


@pytest.fixture
def backend():
    """Return a new backend, for tests that break it."""
    require_device()
    opened = OpenCLBackend.open(None)
    yield opened
    opened.close()


@pytest.fixture
def refusing(monkeypatch) -> Callable[[Runtime, int], list[int]]:
    """Return a function that lets a runtime refuse larger groups, and returns the refused ones."""

    def limit(runtime: Runtime, most: int) -> list[int]:
        launch, refused = runtime.launch, []

        def limited(*args: Any, group: int | None = None, **options: Any) -> Any:
            if group is not None and group > most:
                refused.append(group)
                raise KernelRefusedError("too many")
            return launch(*args, group=group, **options)

        monkeypatch.setattr(runtime, "launch", limited)
        return refused

    return limit


@pytest.fixture
def call(core_context) -> Callable[..., Any]:
    """Run a kernel on arrays, twice (the second time from the plan cache); return arrays."""

    def run(spec: Any, *inputs: Any, **attributes: Any) -> Any:
        def tensor(operand: Any) -> Any:
            if isinstance(operand, list):
                return [tensor(part) for part in operand]
            return creation.asarray(np.asarray(operand))

        with use_context(core_context) as context:
            tensors = [tensor(operand) for operand in inputs]
            before = [x.numpy() for x in tensors if not isinstance(x, list)]
            first = context.engine.run(context, spec, tensors, attributes)
            result = context.engine.run(context, spec, tensors, attributes)
            after = [x.numpy() for x in tensors if not isinstance(x, list)]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new)
        if not isinstance(result, list):
            np.testing.assert_array_equal(first.numpy(), result.numpy())
            return result.numpy()
        return [x.numpy() for x in result]

    return run


@pytest.fixture
def near() -> Callable[..., None]:
    """Compare dtype and shape, then NaN and infinities exactly, then values within ``ulp``.

    ``expected`` is in a precision above that of ``dtype``; ``bound`` is an absolute error.
    """

    def compare(
        actual: Any, expected: Any, dtype: Any, *, ulp: float = 0, bound: Any = 0.0
    ) -> None:
        reference = np.asarray(expected)
        kind = dt.of(dtype).numpy
        assert (actual.dtype, actual.shape) == (kind, reference.shape)
        if dt.of(dtype) not in dt.FLOATING:
            np.testing.assert_array_equal(actual, reference)
            return
        with np.errstate(all="ignore"):
            rounded = reference.astype(kind)
            np.testing.assert_array_equal(np.isnan(actual), np.isnan(rounded))
            fine = np.isfinite(rounded)
            ends = (each[~fine].astype(np.float64) for each in (actual, rounded))
            np.testing.assert_array_equal(*ends)  # of bfloat16 it takes NaN for numbers
            off = np.abs(actual.astype(np.longdouble) - reference)[fine]
            step = np.spacing(np.abs(rounded))[fine].astype(np.longdouble)
            allowed = np.maximum((ulp + 0.5) * step, np.broadcast_to(bound, reference.shape)[fine])
        assert (off <= allowed).all(), (actual[fine], reference[fine], float((off / step).max()))

    return compare
