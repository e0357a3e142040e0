"""Level 1: memory. Transfers to the last bit, isolation, leaks, threads."""

from __future__ import annotations

import gc
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.corpus import LARGE, Corpus
from tensorplug_conformance.floats import finfo
from tensorplug_conformance.trying.leftovers import process_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.dispatch.device import Device
    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_SHAPES: Final = ((), (0,), (1,), (7,), (2, 0, 3), (2, 3, 4), (1, 2, 1, 3, 1, 2), (LARGE,))
_ROUNDS, _BYTES = 64, 1 << 20
_PATIENT: Final = 6  # times that so many bytes pass before what has grown is a leak
_QUIET: Final = 2  # times in which nothing grows: there is none
_THREADS, _CALLS = 8, 40
_ALIVE = 32
_TRIED: Final = 1 << 30  # bytes of a limit that is tried


def _transfer(dtype: DType, _target: Target, opened: Callable[[], Session]) -> None:
    """Every bit pattern, shape and host layout must come back unchanged."""
    backend = opened().device.backend
    if dtype not in backend.dtypes:
        raise NotMeasuredError(f"the backend does not declare {dtype}")
    for what, array in _arrays(dtype):
        buffer = backend.from_host(array)
        real = backend.describe(buffer)
        if real != TensorType(dtype, array.shape):
            raise CheckFailedError(f"{what}: the buffer is described as {real}")
        back: object = backend.to_host(buffer)
        meant = np.array(array)
        if not isinstance(back, np.ndarray) or not same_bits(back, meant):
            raise CheckFailedError(f"{what}: {dtype}{list(array.shape)} came back with other bits")
        _overwrite(array)
        for when in ("was overwritten", "was overwritten and the buffer read once more"):
            if not same_bits(np.asarray(backend.to_host(buffer)), meant):
                raise CheckFailedError(
                    f"{what}: {dtype}{list(meant.shape)} changed on the device when the caller's "
                    f"array {when}"
                )


def _overwrite(array: Array) -> None:
    """Write to the memory of an array, as its owner may; what is read-only may be a view."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not owner.flags.writeable:
        return
    if owner.dtype.kind == "T":
        owner[...] = "overwritten"
    else:
        owner.reshape(-1).view(np.uint8)[...] ^= 1


def _arrays(dtype: DType) -> Iterator[tuple[str, Array]]:
    corpus = Corpus(dtype, 0, "transfer")
    yield "special values", corpus.edges()
    for shape in _SHAPES:
        yield f"shape {list(shape)}", corpus.ordinary(shape)
    matrix = corpus.ordinary((5, 6))
    yield "columns first", np.asfortranarray(matrix)
    yield "transposed", matrix.T
    yield "every other", matrix[::2, 1::2]
    yield "backwards", matrix[::-1, ::-1]
    block = corpus.ordinary((3, 4, 5))
    yield "two axes backwards", block[::-1, :, ::-1]
    yield "all axes backwards", block[::-1, ::-1, ::-1]
    yield "axes turned", block.transpose(2, 0, 1)
    yield "broadcast", np.broadcast_to(matrix[:1], (4, 6))
    frozen = matrix.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    if dtype in dt.FLOATING:
        yield "NaN payloads", _payloads(dtype)
    if dtype in dt.COMPLEX:
        about: Any = finfo(dtype.numpy)
        least = about.smallest_subnormal
        yield "special parts", corpus.special_parts()
        yield "subnormal parts", corpus.of([least * (3 - 1j), 1 + least * 7j, least * 5 + 1j])


def _payloads(dtype: DType) -> Array:
    """Return NaNs that differ in their bits, quiet and signed."""
    width = np.dtype(f"u{dtype.itemsize}")
    quiet = np.array([np.nan], dtype=dtype.numpy).view(width)[0]
    sign = width.type(1 << (8 * dtype.itemsize - 1))
    patterns = [quiet, quiet | width.type(1), quiet | width.type(21), quiet | sign]
    return np.array(patterns, dtype=width).view(dtype.numpy)


def _isolation(_target: Target, opened: Callable[[], Session]) -> None:
    """Later writes to the host array do not reach the buffer, and later kernels do not change
    arrays that were read."""
    session = opened()
    backend = session.device.backend
    for size in (3, 1024, LARGE):
        array = np.arange(size, dtype=np.float32)
        buffer = backend.from_host(array)
        array[:] = -1
        if not same_bits(np.asarray(backend.to_host(buffer)), np.arange(size, dtype=np.float32)):
            raise CheckFailedError(
                f"a write to the host array of {size} elements reached the buffer"
            )
    # Live buffers of one size keep separate contents.
    hosts = [np.full(100, number, dtype=np.float32) for number in range(_ALIVE)]
    buffers = [backend.from_host(host) for host in hosts]
    for host, buffer in zip(hosts, buffers, strict=True):
        if not same_bits(host, np.asarray(backend.to_host(buffer))):
            raise CheckFailedError(f"of {_ALIVE} live buffers, one holds another one's elements")
    a = session.upload(np.arange(8, dtype=np.float32))
    total = session.call(specs.ADD, [a, a], {})[0]
    seen = backend.to_host(total._buffer)  # the very array, not a copy of it
    before = np.array(seen)
    del total
    for _ in range(20):  # a recycled buffer would be written to by one of these
        session.call(specs.MULTIPLY, [a, a], {})
    if not same_bits(before, np.asarray(seen)):
        raise CheckFailedError("an array that was read from the device changed afterwards")


def _describes(_target: Target, opened: Callable[[], Session]) -> None:
    """``describe`` refuses other objects than buffers, and ``allocation`` covers the elements."""
    backend = opened().device.backend
    for stranger in (object(), None, "x", [1.0]):
        try:
            described = backend.describe(stranger)
        except TypeError:
            continue
        raise CheckFailedError(
            f"describe({stranger!r}) returned {described} instead of raising TypeError"
        )
    array = np.zeros((33, 5), dtype=np.float32)
    first, second = backend.from_host(array), backend.from_host(array)
    name, size = backend.allocation(first)
    hash(name)
    if size < array.nbytes:
        raise CheckFailedError(f"allocation() says {size} bytes for {array.nbytes}")
    if backend.allocation(second)[0] == name:
        raise CheckFailedError("allocation() gives one name to two separate buffers")
    if backend.allocation(first)[0] != name:
        raise CheckFailedError("allocation() gives two names to one buffer")


def _leaks(_target: Target, opened: Callable[[], Session]) -> None:
    """Released memory is returned: neither the process nor the device grows."""
    session = opened()
    array = np.ones(_BYTES // 4, dtype=np.float32)

    def round_() -> None:
        for _ in range(_ROUNDS):
            a = session.device.backend.from_host(array)
            session.device.backend.to_host(a)
            tensor = session.upload(array)
            session.read(session.call(specs.ADD, [tensor, tensor], {})[0])
        gc.collect()
        session.device.backend.synchronize()  # last: it may free later what is released

    allowed = _ROUNDS * _BYTES // 4  # of the data that passed through, in each of three buffers
    round_()
    grown: dict[str, int] = {}
    quiet = 0  # rounds; what is freed from before hides a leak in one of them
    for _ in range(_PATIENT):  # pools and caches fill, some of them twice
        before = _figures(session)
        round_()
        after = _figures(session)
        grown = {name: value - before.get(name, 0) for name, value in after.items()}
        quiet = quiet + 1 if max(grown.values(), default=0) <= allowed else 0
        if quiet == _QUIET:
            break
    for name, by in grown.items():
        if by > allowed:
            raise CheckFailedError(
                f"{name} grew by {by} bytes while {3 * _ROUNDS * _BYTES} passed"
            )
    if not grown:
        raise NotMeasuredError(
            "neither the backend nor this platform reports how much memory is used"
        )


def _figures(session: Session) -> dict[str, int]:
    figures = {f"memory()[{name!r}]": n for name, n in session.device.backend.memory().items()}
    return figures | {name: figure() for name, figure in process_figures().items()}


def _limited(device: Device) -> None:
    """A tensor as large as the declared limit is kept, and a larger one is refused."""
    backend, largest = device.backend, device.capabilities.largest_buffer
    if largest is None:
        return
    if largest < 1:
        raise CheckFailedError(f"largest_buffer must be a number of bytes, got {largest!r}")
    if largest > _TRIED:
        return
    array = np.zeros(largest // 4 + 1, np.int32)
    array[-2] = 77
    try:
        kept = np.asarray(backend.to_host(backend.from_host(array[:-1])))
    except BackendMemoryError as error:
        raise CheckFailedError(f"a tensor of {largest:,} bytes, the limit: {error}") from error
    if not same_bits(kept, array[:-1]):
        raise CheckFailedError(f"a tensor of {largest:,} bytes, the limit, reads back as another")
    try:
        backend.from_host(array)
        backend.synchronize()
    except BackendMemoryError:
        return
    raise CheckFailedError(
        f"it declares that a tensor has {largest:,} bytes at most, and holds {array.nbytes:,}"
    )


def _counted(_target: Target, opened: Callable[[], Session]) -> None:
    """``memory`` gives the same names each time, and whole numbers that are not negative.

    What the backend declares to be the largest tensor is so.
    """
    _limited(opened().device)
    backend = opened().device.backend
    names = set(backend.memory())
    if not names:
        raise NotMeasuredError("the backend reports no figures")
    held: list[Any] = []
    for _ in range(_ALIVE):
        held.append(backend.from_host(np.zeros(_BYTES // 64, np.float32)))
        figures = dict(backend.memory())
        if set(figures) != names:
            raise CheckFailedError(
                f"memory() names {sorted(figures)}, and {sorted(names)} at first"
            )
        for name, value in figures.items():
            if value < 0 or value != int(value):
                raise CheckFailedError(f"memory()[{name!r}] is {value!r}")


def _threads(_target: Target, opened: Callable[[], Session]) -> None:
    """Eight threads at once, each with its own numbers."""
    session = opened()
    faults: list[str] = []
    start = threading.Barrier(_THREADS)

    def work(number: int) -> None:
        try:
            start.wait(60)
            for call in range(_CALLS):
                _one_call(session, number, call)
        except Exception as error:  # noqa: BLE001  # whatever went wrong in a thread is the verdict
            faults.append(f"thread {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if any(thread.is_alive() for thread in threads):
        raise CheckFailedError("threads that use the backend at once hang")
    if faults:
        raise CheckFailedError("; ".join(faults[:3]))


def _one_call(session: Session, number: int, call: int) -> None:
    size = 100 + 37 * (call % 5)  # all threads want memory of the same few sizes
    host = np.full(size, number + 1, dtype=np.int32)
    a = session.upload(host)
    doubled = session.call(specs.ADD, [a, a], {})[0]
    product = session.call(specs.MULTIPLY, [doubled, a], {})[0]
    total = session.read(session.call(specs.SUM, [product], {})[0])
    meant = 2 * (number + 1) ** 2
    if not bool((session.read(product) == meant).all()) or int(total) != meant * size:
        raise CheckFailedError(f"call {call} gave the numbers of another thread, or none")


def _dtypes() -> list[Any]:
    return sorted(dt.ANY, key=lambda dtype: dtype.name)


CHECKS: Final = (
    *(Check(1, f"transfer {dtype.name}", partial(_transfer, dtype)) for dtype in _dtypes()),
    Check(1, "isolation", _isolation),
    Check(1, "buffers described", _describes),
    Check(1, "no leaks", _leaks),
    Check(1, "figures of memory", _counted),
    Check(1, "threads", _threads),
)
