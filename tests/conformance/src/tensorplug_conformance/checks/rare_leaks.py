"""Level 1: ten thousand transfers and kernel calls, of which none may leave anything behind."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.comparing.compare import bits
from tensorplug_conformance.trying.leftovers import Leftovers, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


# Bytes of an array, and how many calls a part has; there are at least four parts.
_TRANSFERS: Final = ((64, 1000), (4096, 800), (1 << 16, 500), (1 << 20, 250), (1 << 22, 110))
_KERNELS: Final = ((64, 800), (1 << 14, 600), (1 << 18, 250))
_LENGTHS: Final = (64, 4096)  # elements, of every dtype
_EACH: Final = 70  # calls for each of them
_REFUSED: Final = 4096  # bytes
_SETS: Final = 3  # of elements, in turn


def _arrays(size: int) -> list[Any]:
    return [np.arange(size // 4, dtype=np.float32) + number for number in range(_SETS)]


def _transfers(size: int, calls: int, _target: Target, opened: Callable[[], Session]) -> None:
    """Each transfer brings its own elements, and leaves neither buffer, array nor memory."""
    backend = opened().device.backend
    arrays = [(array, bits(array)) for array in _arrays(size)]
    leftovers = Leftovers(backend, size * calls)
    made = 0

    def part() -> int:
        nonlocal made
        for call in range(calls):
            array, meant = arrays[call * call % 7 % _SETS]
            sent = array.copy()
            buffer = backend.from_host(sent)
            received = backend.to_host(buffer)
            made += 1
            if bits(received) != meant or received.dtype != array.dtype:
                raise CheckFailedError(f"transfer {made} of {size} bytes brought other elements")
            leftovers.watch("buffers", (buffer,))
            leftovers.watch("arrays of the caller", (sent,))
            leftovers.watch("arrays read back", (received,))
        backend.synchronize()
        return calls

    _settle(leftovers, part)


def _dtypes(_target: Target, opened: Callable[[], Session]) -> None:
    """Transfers of every dtype, of rank 1, and backwards of rank 3, leave nothing behind."""
    backend = opened().device.backend
    dtypes = sorted(backend.dtypes & dt.ANY, key=str)
    arrays = [
        np.ones((length, 1, 1)[: 1 + 2 * (length % 128 == 0)], dtype.numpy)
        for dtype in dtypes
        for length in _LENGTHS
    ]
    passed = _EACH * sum(array.nbytes for array in arrays)
    leftovers = Leftovers(backend, passed // len(dtypes))

    def part() -> int:
        for _ in range(_EACH):
            for array in arrays:
                sent = array.copy()[:: 1 - 2 * (array.ndim > 1)]  # forwards or backwards
                buffer = backend.from_host(sent)
                received = backend.to_host(buffer)
                leftovers.watch("buffers", (buffer,))
                leftovers.watch("arrays of the caller", (sent,))
                leftovers.watch("arrays read back", (received,))
        backend.synchronize()
        return _EACH * len(arrays)

    _settle(leftovers, part)


def _refused(_target: Target, opened: Callable[[], Session]) -> None:
    """Calls that raise leave nothing of their inputs."""
    session = opened()
    backend = session.device.backend
    array = np.ones(_REFUSED // 4, np.float32)
    outside = np.array([array.size], np.int32)
    calls = 500
    leftovers = Leftovers(backend, _REFUSED * calls)

    def part() -> int:
        for _ in range(calls):
            inputs = [session.upload(array), session.upload(outside)]
            # Whether it raises is for its row to judge.
            session.attempt(specs.GATHER_V2, inputs, {"axis": 0, "batch_dims": 0})
            leftovers.watch("inputs", [tensor._buffer for tensor in inputs])
            inputs.clear()
        session.settle()
        return calls

    _settle(leftovers, part)


def _settle(leftovers: Leftovers, part: Callable[[], int]) -> None:
    gc.collect()
    gc.freeze()  # the collector runs after each part: it need not look at all there is
    try:
        fault = settled(leftovers, part)
    finally:
        gc.unfreeze()
    if fault:
        raise CheckFailedError(fault)


def _kernels(
    size: int,
    calls: int,
    _target: Target,
    opened: Callable[[], Session],
    *,
    in_threads: bool = False,
) -> None:
    """Additions, sums and transposed copies leave neither results nor memory.

    ``in_threads``: each part is done by a thread of its own.
    """
    session = opened()
    backend = session.device.backend
    rows = [session.upload(array.reshape(2, -1)) for array in _arrays(size)]
    leftovers = Leftovers(backend, size * calls)
    meant: dict[tuple[str, int], bytes] = {}
    kinds: list[tuple[Any, int, dict[str, Any]]] = [
        (specs.ADD, 2, {}),
        (specs.SUM, 1, {"axis": (0,)}),
        (specs.TRANSPOSE, 1, {"perm": (1, 0)}),
    ]

    def part() -> int:
        for call in range(calls):
            spec, inputs, attributes = kinds[call % len(kinds)]
            at = call * call % 7 % _SETS
            (result,) = session.call(spec, [rows[at]] * inputs, attributes)
            result_bits = bits(backend.to_host(result._buffer))
            if meant.setdefault((spec.name, at), result_bits) != result_bits:
                raise CheckFailedError(f"{spec.name} of {size} bytes gave other elements later")
            leftovers.watch("results", (result._buffer,))
        backend.synchronize()
        return calls

    _settle(leftovers, partial(_in_a_thread, part) if in_threads else part)


def _in_a_thread(part: Callable[[], int]) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(part).result()


def _named(size: int) -> str:
    return f"{size} bytes" if size < 1024 else f"{size >> 10} KiB"


CHECKS: Final = (
    *(
        Check(1, f"no rare leaks: transfers of {_named(size)}", partial(_transfers, size, calls))
        for size, calls in _TRANSFERS
    ),
    *(
        Check(1, f"no rare leaks: kernels on {_named(size)}", partial(_kernels, size, calls))
        for size, calls in _KERNELS
    ),
    Check(
        1, "no rare leaks: kernels in other threads", partial(_kernels, 4096, 300, in_threads=True)
    ),
    Check(1, "no rare leaks: transfers of every dtype", _dtypes),
    Check(1, "no rare leaks: calls that are refused", _refused),
)
