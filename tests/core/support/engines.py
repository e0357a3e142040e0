"""Engines for tests: backends in memory whose kernels and failures a test controls."""

from __future__ import annotations

import threading
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.compile.decomposed import count_crossing, run_programs
from tensorplug.contract import dtypes as dt
from tensorplug.contract.owner import Owner
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch.context import Context, use_context
from tensorplug.dispatch.handlers import Handlers
from tensorplug.engine.engine import Engine, Opened
from tensorplug.engine.registry import Registry
from tensorplug.errors import BackendMemoryError, BackendNotInstalledError, DeviceLostError
from tensorplug.ops import creation, extents, joining, movement, reduction, sorting
from tensorplug.ops.elementwise import arithmetic, casting, unary
from tensorplug.plugins import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorplug.contract.backend import DeviceInfo

CORE = Owner("the-core", "1.0")


class MemoryBackend:
    """NumPy arrays as buffers. ``room`` limits the bytes of one upload, ``lost`` fails all."""

    def __init__(self, name: str, dtypes: frozenset[dt.DType] = dt.FIXED) -> None:
        self.name = name
        self.device = f"memory of {name}"
        self.dtypes = dtypes
        self.room: float = float("inf")
        self.lost = False
        self.closed = False
        self.synchronized = 0

    def _check(self) -> None:
        assert not self.closed, "a closed backend was called"
        if self.lost:
            raise DeviceLostError(f"{self.name} is gone")

    def from_host(self, array: np.ndarray) -> np.ndarray:
        self._check()
        if array.nbytes > self.room:
            raise BackendMemoryError(f"{self.name} has no room for {array.nbytes} bytes")
        return np.array(array)

    def to_host(self, buffer: np.ndarray) -> np.ndarray:
        self._check()
        return buffer

    def describe(self, buffer: Any) -> TensorType:
        self._check()
        if not isinstance(buffer, np.ndarray):
            raise TypeError(f"{buffer!r} is no array")
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: np.ndarray) -> tuple[int, int]:
        owner = buffer
        while owner.base is not None:
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:
        self._check()
        self.synchronized += 1

    def memory(self) -> Mapping[str, int]:
        return {"reserve": 7}

    def close(self) -> None:
        self.closed = True


def basic_kernels() -> KernelTable:
    """Return a new table of a few kernels in plain NumPy."""
    kernels = KernelTable()

    @kernels.register(arithmetic.ADD)
    def add(a, b):
        return np.asarray(np.add(a, b))

    @kernels.register(arithmetic.MULTIPLY)
    def multiply(a, b):
        return np.asarray(np.multiply(a, b))

    @kernels.register(unary.NEG)
    def negative(x):
        return np.asarray(np.negative(x))

    @kernels.register(unary.EXP)
    def exp(x):
        return np.asarray(np.exp(x))

    @kernels.register(casting.CAST)
    def cast(x, *, dtype):
        return x.astype(dtype.numpy)

    @kernels.register(movement.IDENTITY)
    def identity(x):
        return x

    @kernels.register(movement.RESHAPE)
    def reshape(x, *, shape):
        return x.reshape(shape)

    @kernels.register(movement.BROADCAST_TO)
    def broadcast_to(x, *, shape):
        return np.broadcast_to(x, shape).copy()

    @kernels.register(joining.CONCAT)
    def concat(xs, *, axis):
        return np.concatenate(xs, axis=axis)

    @kernels.register(extents.PAD_V2)
    def pad(x, *, paddings, constant_value):
        return np.pad(x, paddings, constant_values=constant_value)

    @kernels.register(reduction.SUM)
    def sum(x, *, axis, keep_dims):
        return np.asarray(np.sum(x, axis=axis, keepdims=keep_dims, dtype=x.dtype))

    @kernels.register(creation.FILL)
    def fill(*, shape, value, out):
        return np.full(shape, value, out.dtype.numpy)

    @kernels.register(creation.ZEROS_LIKE)
    def zeros_like(x):
        return np.zeros_like(x)

    @kernels.register(creation.ONES_LIKE)
    def ones_like(x):
        return np.ones_like(x)

    @kernels.register(sorting.TOP_K)
    def top_k(x, *, k):
        order = np.argsort(-x, axis=-1, kind="stable")[..., :k]
        return [np.take_along_axis(x, order, -1), order.astype(np.int32)]

    return kernels


class Source:
    """Backends by name, each with the tables that it brings."""

    def __init__(self, tables: Mapping[str, Sequence[KernelTable]]) -> None:
        self.tables = tables
        self.backends: dict[str, MemoryBackend] = {}  # the latest one opened, by device name
        self.dtypes: dict[str, frozenset[dt.DType]] = {}
        self.kinds: dict[str, type[MemoryBackend]] = {}  # of other classes, by name
        self.refusals: dict[str, Exception] = {}
        self.opened: list[str] = []
        self.listed: dict[str, list[DeviceInfo]] = {}
        self.offers: dict[str, dict[str, Any]] = {}  # capabilities by backend: name -> member

    def names(self) -> Sequence[str]:
        return list(self.tables)

    def explain_unknown(self, name: str) -> str:
        return "" if name in self.tables else f"backend {name!r} is not installed"

    def devices(self, name: str) -> Sequence[DeviceInfo] | None:
        if name in self.refusals:
            raise self.refusals[name]
        if name not in self.tables:
            raise BackendNotInstalledError(f"backend {name!r} is not installed")
        return self.listed.get(name)

    def open(self, name: str, device: str | None) -> Opened:
        if name in self.refusals:
            raise self.refusals[name]
        if name not in self.tables:
            raise BackendNotInstalledError(f"backend {name!r} is not installed")
        full = name if device is None else f"{name}:{device}"
        self.opened.append(full)
        kind = self.kinds.get(name, MemoryBackend)
        backend = kind(name, self.dtypes.get(name, dt.FIXED))
        self.backends[full] = backend
        for member, value in self.offers.get(name, {}).items():
            setattr(backend, member, value)
        owner = Owner(f"{name}-distribution", "2.0")
        return Opened(backend, owner, tuple((owner, table) for table in self.tables[name]))


def make(
    tables: Mapping[str, Sequence[KernelTable]] | Iterable[str] = ("memory",),
    *,
    fallback: Any = "error",
    rules: bool = True,
    kinds: Mapping[str, type[MemoryBackend]] | None = None,
) -> Engine:
    """Return an engine with these backends; names alone get the basic kernels."""
    if not hasattr(tables, "items"):
        tables = {name: [basic_kernels()] for name in tables}
    registry = Registry(catalogue.catalogue())
    if rules:
        registry.add(
            CORE,
            rules=chain.from_iterable(catalogue.rules()),
            decompositions=chain.from_iterable(catalogue.decompositions()),
        )
    source = Source(tables)
    source.kinds.update(kinds or {})
    handlers = Handlers(run_programs, crossing=count_crossing)
    return Engine(source, registry, fallback=fallback, handlers=handlers)


def using(engine: Engine) -> use_context:
    """Return a context in which ops run on ``engine``."""
    return use_context(Context(engine))


def together(count: int, work: Callable[[int], None]) -> None:
    """Run ``work(0)`` to ``work(count - 1)`` in threads started at once; raise what one raised."""
    barrier = threading.Barrier(count)
    raised: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:  # noqa: BLE001  # handed to the caller's thread
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def same_type(x: TensorType) -> TensorType:
    return x


def first_type(a: TensorType, b: TensorType) -> TensorType:  # named by the spec
    return a


def spec_of(name: str, inputs: tuple[str, ...] = ("x",), **options: Any) -> KernelSpec:
    """Return a new spec whose output is of its first input's type."""
    rules: dict[int, Callable[..., Any]] = {1: same_type, 2: first_type}
    return KernelSpec(name, inputs, options.pop("infer", rules[len(inputs)]), **options)


def expect(tensor: Any, dtype: str, shape: tuple[int, ...], values: Any) -> None:
    """Check dtype and shape first, then the values exactly (NaN equals NaN)."""
    assert (str(tensor.dtype), tensor.shape) == (dtype, shape)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(values, dtype=dtype))


def same(tensor: Any, values: Any, dtype: str | None = None) -> None:
    """Check dtype, without one that of the array, and shape; then the values exactly."""
    wanted = np.asarray(values)
    assert (str(tensor.dtype), tensor.shape) == (dtype or dt.of(wanted.dtype).name, wanted.shape)
    np.testing.assert_array_equal(tensor.numpy(), wanted)
