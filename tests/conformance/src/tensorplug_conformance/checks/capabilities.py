"""Level 1: a backend's optional capabilities, and where its kernels really run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.comparing.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.device import Device
    from tensorplug.plugin import Tensor
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_SIZE: Final = 1 << 12
_SIDES: Final = (4, 300, 1200)  # of arrays of 64 bytes, 360 kB and 6 MB
_LARGE: Final = 1 << 18
_BUFFERS: Final = 5
_SIDE: Final = 256
_SIDE_MOST: Final = 4096
_LONG: Final = 30_000_000  # nanoseconds
_TIMES: Final = 4
_HOST_TYPE: Final = 1  # DLPack's kDLCPU


def _overwrites(_target: Target, opened: Callable[[], Session]) -> None:
    """``overwrite`` writes what it says, or nothing; never where an older loan sees it."""
    for side in _SIDES:
        _overwrites_square(side, opened().device)


def _overwrites_square(side: int, device: Device) -> None:
    backend, exclusive = device.backend, device.capabilities.exclusive
    if exclusive is None:
        raise NotMeasuredError("the backend does not offer exclusive")
    before = np.arange(side * side, dtype=np.float32).reshape(side, side)
    changed = before.copy()
    changed[1:, ::2] = 99
    part = changed[1:, ::2].copy()
    key = (slice(1, None), slice(None, None, 2))
    original = backend.from_host(before)
    memory = exclusive(original)
    if memory is None:
        raise NotMeasuredError("exclusive returned None for float32")
    loan = memory.lend()
    done = memory.overwrite(key, backend.from_host(part))
    current = changed if done else before
    del loan
    older, newer = memory.lend(), memory.lend()
    result = np.asarray(backend.to_host(newer))
    if not same_bits(result, current):
        held = result[1:, ::2].ravel()[:4].tolist()
        raise CheckFailedError(
            f"{side}x{side}: overwrite returned {done}, and the memory holds {held}, ..., there"
        )
    if not same_bits(np.asarray(backend.to_host(original)), before):
        raise CheckFailedError("overwrite changed the buffer that exclusive copied")
    if memory.overwrite(key, backend.from_host(np.zeros_like(part))):
        raise CheckFailedError(f"{side}x{side}: overwrite returned True while an older loan lived")
    if not same_bits(np.asarray(backend.to_host(older)), current):
        raise CheckFailedError(f"{side}x{side}: overwrite changed an older loan")


def _counts(_target: Target, opened: Callable[[], Session]) -> None:
    """``live_buffers`` grows with each buffer, and falls when buffers are released."""
    device = opened().device
    backend, counter = device.backend, device.capabilities.counts_buffers
    if counter is None:
        raise NotMeasuredError("the backend does not count its buffers")
    array = np.ones(7, np.float32)
    try:
        backend.synchronize()  # it may be freeing what was released before
        before = counter.live_buffers()
        held = [backend.from_host(array) for _ in range(_BUFFERS)]
        during = counter.live_buffers() - before
        if during != _BUFFERS or not all(map(counter.counts, held)):
            raise CheckFailedError(f"{_BUFFERS} more buffers are counted as {during}")
        held.clear()
        backend.synchronize()
        after = counter.live_buffers() - before
        if after:
            raise CheckFailedError(f"{after} released buffers are counted")
    finally:
        counter.stop_counting()


def _shares(_target: Target, opened: Callable[[], Session]) -> None:
    """Shared buffers and arrays have one memory."""
    device = opened().device
    backend, sharing = device.backend, device.capabilities.shares_memory
    if sharing is None:
        raise NotMeasuredError("the backend does not share the host's memory")
    array = np.arange(5, dtype=np.float32)
    buffer = sharing.share_from_host(array)
    array[2] = 77
    if not same_bits(np.asarray(backend.to_host(buffer)), array):
        raise CheckFailedError("share_from_host made a copy: a later write is not seen")
    if not np.shares_memory(sharing.share_to_host(buffer), array):
        raise CheckFailedError("share_to_host returns other memory than share_from_host was given")


class _Exported:
    """A tensor of another library: it passes on a capsule."""

    def __init__(self, device: tuple[int, int], capsule: Any) -> None:
        self._device = device
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **_request: Any) -> Any:
        return self._capsule


def _exchanges(_target: Target, opened: Callable[[], Session]) -> None:
    """What leaves by DLPack comes back as it was; copies are copies, and memory is kept alive."""
    device = opened().device
    backend, exchanges = device.backend, device.capabilities.exchanges
    if exchanges is None:
        raise NotMeasuredError("the backend does not exchange device memory")
    place = exchanges.dlpack_device()
    if place[0] == _HOST_TYPE or place != exchanges.dlpack_device():
        raise CheckFailedError(f"dlpack_device must be one device, not the host's, got {place}")
    for array in (np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((), np.int32)):
        for copy in (None, True):
            buffer = backend.from_host(array)
            expected = backend.describe(buffer)
            capsule = exchanges.to_dlpack(buffer, stream=None, max_version=(1, 0), copy=copy)
            del buffer  # the capsule keeps the memory
            backend.from_host(np.full_like(array, 77))
            taken = exchanges.from_dlpack(_Exported(place, capsule), copy=None)
            del capsule
            backend.from_host(np.full_like(array, 78))
            if backend.describe(taken) != expected:
                raise CheckFailedError(f"{expected} came back as {backend.describe(taken)}")
            if not same_bits(np.asarray(backend.to_host(taken)), array):
                raise CheckFailedError(f"{expected} came back with other elements")
    buffer = backend.from_host(np.zeros(3, np.float32))
    memory, _ = backend.allocation(buffer)
    capsule = exchanges.to_dlpack(buffer, stream=None, max_version=(1, 0), copy=True)
    taken = exchanges.from_dlpack(_Exported(place, capsule), copy=None)
    if backend.allocation(taken)[0] == memory:
        raise CheckFailedError("to_dlpack shares the memory although a copy was asked for")


def _reuses(_target: Target, opened: Callable[[], Session]) -> None:
    """Memory that something else shares is not said to belong to a buffer."""
    session = opened()
    if session.device.capabilities.reuses is None:
        raise NotMeasuredError("the backend does not offer owns_memory")
    for side in _SIDES:
        _reuses_square(side, session)


def _reuses_square(side: int, session: Session) -> None:
    device = session.device
    backend, reuses = device.backend, device.capabilities.reuses
    assert reuses is not None
    array = np.arange(side * side, dtype=np.float32)
    shared: dict[str, Any] = {}
    original = session.upload(array)
    (view,) = session.call(specs.RESHAPE, [original], {"shape": (side, side)})
    memory, _ = backend.allocation(original._buffer)
    if backend.allocation(view._buffer)[0] == memory:
        shared["a reshaped view"] = view._buffer
    if device.capabilities.shares_memory is not None:
        shared["a buffer in the caller's array"] = (
            device.capabilities.shares_memory.share_from_host(array)
        )
    lender = device.capabilities.exclusive and device.capabilities.exclusive(original._buffer)
    if lender is not None:
        shared["a buffer on loan"] = lender.lend()
    for what, buffer in shared.items():
        if reuses.owns_memory(buffer):
            raise CheckFailedError(f"owns_memory is True for {what} of {array.nbytes} bytes")


def _measures(_target: Target, opened: Callable[[], Session]) -> None:
    """``measure`` gives the time of the work in between: some, and not more than went by."""
    session = opened()
    measure = session.device.capabilities.measure
    if measure is None:
        raise NotMeasuredError("the backend does not measure")
    a = session.upload(np.ones(_LARGE, np.float32))
    session.call(specs.ADD, [a, a], {})  # what happens at a first call is not the kernel's time
    session.device.backend.synchronize()
    begun = time.perf_counter_ns()
    outer, inner = measure(), measure()
    session.call(specs.ADD, [a, a], {})
    short, long = inner(), outer()
    gone = time.perf_counter_ns() - begun
    if not 0 < short <= long <= gone:
        raise CheckFailedError(
            f"one addition took {short} ns by the inner and {long} ns by the outer measurement, "
            f"while {gone} ns went by"
        )


def _trims(_target: Target, opened: Callable[[], Session]) -> None:
    """``trim`` gives back what is held for reuse, once, and nothing that is in use."""
    session = opened()
    backend, trim = session.device.backend, session.device.capabilities.trim
    if trim is None:
        raise NotMeasuredError("the backend has nothing to trim")
    array = np.arange(_LARGE, dtype=np.float32)
    kept, dropped = backend.from_host(array), backend.from_host(array)
    del dropped
    backend.synchronize()
    first, second = trim(), trim()
    if first < 0 or second != 0:
        raise CheckFailedError(f"trim gave back {first} bytes, and then {second}")
    if not same_bits(np.asarray(backend.to_host(kept)), array):
        raise CheckFailedError("trim freed a buffer that is in use")


def _reports_loss(_target: Target, opened: Callable[[], Session]) -> None:
    """A device that computes is not said to be lost."""
    session = opened()
    explain = session.device.capabilities.explain_loss
    if explain is None:
        raise NotMeasuredError("the backend does not report lost devices")
    a = session.upload(np.ones(_SIZE, np.float32))
    session.call(specs.ADD, [a, a], {})
    session.device.backend.synchronize()
    cause = explain()
    if cause != "":
        raise CheckFailedError(f"a device that computes is lost, says explain_loss: {cause!r}")


def _on_device(_target: Target, opened: Callable[[], Session]) -> None:
    """Kernels do not fetch their inputs to the host."""
    session = opened()
    backend: Any = session.device.backend
    if session.device.capabilities.shares_memory is not None:
        raise NotMeasuredError("its buffers lie in the host's memory")
    fetched: list[Any] = []
    clean = backend.to_host

    def to_host(buffer: Any) -> Any:
        fetched.append(backend.describe(buffer))
        return clean(buffer)

    own = {specs.ADD: 2, specs.SUM: 1}
    own = {spec: count for spec, count in own.items() if session.registration(spec.name)}
    if not own:
        raise NotMeasuredError("the backend has neither of the kernels that are watched")
    a = session.upload(np.ones(_SIZE, np.float32))
    try:
        backend.to_host = to_host
    except AttributeError:
        raise NotMeasuredError("the backend's methods cannot be watched") from None
    try:
        for spec, count in own.items():
            session.call(spec, [a] * count, {})
            if fetched:
                raise CheckFailedError(
                    f"{spec.name} fetched {fetched[0]} to the host while it ran: it is computed "
                    "there, not on the device"
                )
    finally:
        del backend.to_host


def _device_works(_target: Target, opened: Callable[[], Session]) -> None:
    """While the device computes, by its own clock, the host's processors do not do its work."""
    session = opened()
    measure = session.device.capabilities.measure
    if measure is None:
        raise NotMeasuredError("the backend does not measure")
    if session.registration(specs.BATCH_MAT_MUL.name) is None:
        raise NotMeasuredError("the backend has no kernel for products of matrices")
    side = _SIDE
    while True:
        a = session.upload(np.ones((side, side), np.float32))
        times = [_times(session, measure, a) for _ in range(_TIMES)]
        if times[-1][0] > _LONG or side >= _SIDE_MOST:
            break
        side *= 2
    # Other programs take processors away, so the host's part may be small at times.
    idle = [device < gone / 4 and busy > gone / 8 for gone, device, busy in times]
    if all(idle[1:]):  # the first call may compile
        gone, device, busy = (nanoseconds / 1e6 for nanoseconds in times[-1])
        raise CheckFailedError(
            f"a product of {side} x {side} matrices took {gone:.1f} ms, of which the device was "
            f"busy for {device:.1f} ms by its own clock, and the host's processors for "
            f"{busy:.1f} ms: it is computed on the host"
        )


def _times(
    session: Session, measure: Callable[[], Callable[[], int]], a: Tensor
) -> tuple[int, int, int]:
    """Return how long a product takes in nanoseconds: by the clock, the device's, the host's."""
    busy, begun, end = time.process_time_ns(), time.perf_counter_ns(), measure()
    session.call(specs.BATCH_MAT_MUL, [a, a], {})
    device = end()
    session.device.backend.synchronize()
    return time.perf_counter_ns() - begun, device, time.process_time_ns() - busy


CHECKS: Final = (
    Check(1, "overwrites", _overwrites),
    Check(1, "counts buffers", _counts),
    Check(1, "shares host memory", _shares),
    Check(1, "exchanges device memory", _exchanges),
    Check(1, "reuses memory", _reuses),
    Check(1, "measures", _measures),
    Check(1, "trims", _trims),
    Check(1, "reports loss", _reports_loss),
    Check(1, "kernels run on the device", _on_device),
    Check(1, "the device is busy", _device_works),
)
