"""Level 1: a backend's optional capabilities, and where its kernels really run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import CountsBuffers, OverwritesBuffers, SharesHostMemory, specs
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session

__all__ = ["CHECKS"]

_SIZE: Final = 1 << 12
_BUFFERS: Final = 5


def _overwrites(_target: Target, opened: Callable[[], Session]) -> None:
    """``overwrite`` writes what it says, or nothing; never where an older loan sees it."""
    backend = opened().device.backend
    if not isinstance(backend, OverwritesBuffers):
        raise NotMeasuredError("the backend does not offer exclusive")
    before = np.arange(12, dtype=np.float32).reshape(3, 4)
    changed = before.copy()
    changed[1:, ::2] = 99
    key = (slice(1, None), slice(None, None, 2))
    original = backend.from_host(before)
    memory = backend.exclusive(original)
    if memory is None:
        raise NotMeasuredError("exclusive returned None for float32")
    loan = memory.lend()
    done = memory.overwrite(key, backend.from_host(np.full((2, 2), 99, np.float32)))
    current = changed if done else before
    del loan
    older, newer = memory.lend(), memory.lend()
    found = np.asarray(backend.to_host(newer))
    if not same_bits(found, current):
        raise CheckFailedError(f"overwrite returned {done}, and the memory holds {found.tolist()}")
    if not same_bits(np.asarray(backend.to_host(original)), before):
        raise CheckFailedError("overwrite changed the buffer that exclusive copied")
    if memory.overwrite(key, backend.from_host(np.zeros((2, 2), np.float32))):
        raise CheckFailedError("overwrite returned True while an older loan lived")
    if not same_bits(np.asarray(backend.to_host(older)), current):
        raise CheckFailedError("overwrite changed an older loan")


def _counts(_target: Target, opened: Callable[[], Session]) -> None:
    """``live_buffers`` grows with each buffer, and falls when buffers are released."""
    backend = opened().device.backend
    if not isinstance(backend, CountsBuffers):
        raise NotMeasuredError("the backend does not count its buffers")
    array = np.ones(7, np.float32)
    try:
        before = backend.live_buffers()
        held = [backend.from_host(array) for _ in range(_BUFFERS)]
        during = backend.live_buffers() - before
        if during != _BUFFERS or not all(map(backend.counts, held)):
            raise CheckFailedError(f"{_BUFFERS} more buffers are counted as {during}")
        held.clear()
        after = backend.live_buffers() - before
        if after:
            raise CheckFailedError(f"{after} released buffers are counted")
    finally:
        backend.stop_counting()


def _shares(_target: Target, opened: Callable[[], Session]) -> None:
    """Shared buffers and arrays have one memory."""
    backend = opened().device.backend
    if not isinstance(backend, SharesHostMemory):
        raise NotMeasuredError("the backend does not share the host's memory")
    sharing: SharesHostMemory = backend
    array = np.arange(5, dtype=np.float32)
    buffer = sharing.share_from_host(array)
    array[2] = 77
    if not same_bits(np.asarray(backend.to_host(buffer)), array):
        raise CheckFailedError("share_from_host made a copy: a later write is not seen")
    if not np.shares_memory(sharing.share_to_host(buffer), array):
        raise CheckFailedError("share_to_host returns other memory than share_from_host was given")


def _on_device(_target: Target, opened: Callable[[], Session]) -> None:
    """Kernels do not fetch their inputs to the host."""
    session = opened()
    backend: Any = session.device.backend
    if isinstance(backend, SharesHostMemory):
        raise NotMeasuredError("its buffers lie in the host's memory")
    fetched: list[Any] = []
    clean = backend.to_host

    def to_host(buffer: Any) -> Any:
        fetched.append(backend.describe(buffer))
        return clean(buffer)

    a = session.upload(np.ones(_SIZE, np.float32))
    try:
        backend.to_host = to_host
    except AttributeError:
        raise NotMeasuredError("the backend's methods cannot be watched") from None
    try:
        for spec, inputs in ((specs.ADD, [a, a]), (specs.SUM, [a])):
            session.call(spec, inputs, {})
            if fetched:
                raise CheckFailedError(
                    f"{spec.name} fetched {fetched[0]} to the host while it ran: it is computed "
                    "there, not on the device"
                )
    finally:
        del backend.to_host


CHECKS: Final = (
    Check(1, "overwrites", _overwrites),
    Check(1, "counts buffers", _counts),
    Check(1, "shares host memory", _shares),
    Check(1, "kernels run on the device", _on_device),
)
