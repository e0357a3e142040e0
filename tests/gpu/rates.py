"""The rates of ops: bytes and floating-point operations per second, on large tensors.

``device_ms`` is by the device's own clock, ``wall_ms`` from the call until the device is done. A
first run chooses sizes that take the device some milliseconds.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from ceilings import ceilings
from telling import tell

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], object]

LARGEST: Final = 26  # 2^26 elements, 256 MiB of float32
SMALLEST: Final = 18
SECONDS: Final = 0.02  # that an elementwise op may take
MATRIX_SECONDS: Final = 0.4
SIDES: Final = (8192, 4096, 2048, 1024, 512)
ROW: Final = 1024
DTYPES: Final = ("float32", "float64", "float16")


def _add(x: Any) -> Call:
    y = tp.full(x.shape, 2.0, dtype=x.dtype)
    return lambda: tp.add(x, y)


def _copy(x: Any) -> Call:
    """Join two halves: each element is read and written once."""
    half = x.shape[0] // 2
    first, second = tp.full((half,), 1.0, dtype=x.dtype), tp.full((half,), 2.0, dtype=x.dtype)
    return lambda: tp.concat([first, second])


def _rows(x: Any, op: Callable[[Any], object]) -> Call:
    matrix = tp.reshape(x, (-1, ROW))
    return lambda: op(matrix)


def _uniform(x: Any) -> Call:
    key = tp.random.key(0)
    return lambda: tp.random.uniform(key, x.shape)


# By name: dtypes, bytes moved for each byte of the operand, and the op, prepared on a tensor.
OPS: Final[dict[str, tuple[tuple[str, ...], float, Callable[[Any], Call]]]] = {
    "fill": (("float32",), 1, lambda x: lambda: tp.full(x.shape, 3.0, dtype=x.dtype)),
    "copy": (("float32",), 2, _copy),
    "add": (DTYPES, 3, _add),
    "exp": (("float32",), 2, lambda x: lambda: tp.exp(x)),
    "sum": (DTYPES, 1, lambda x: lambda: tp.sum(x)),
    "sum of columns": (("float32",), 1, lambda x: _rows(x, lambda m: tp.sum(m, axis=0))),
    "softmax of rows": (("float32",), 2, lambda x: _rows(x, tp.nn.softmax)),
    "cumsum of rows": (("float32",), 2, lambda x: _rows(x, lambda m: tp.cumsum(m, axis=1))),
    "transpose": (("float32",), 2, lambda x: _rows(x, lambda m: tp.permute_dims(m, (1, 0)))),
    "uniform": (("float32",), 1, _uniform),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl")
    options = parser.parse_args()
    from tensorplug_opencl import device as devices

    chosen = devices.choose(options.device.partition(":")[2] or None).device
    tp.set_backend(options.device)
    has = {dtype.name for dtype in tp.devices("opencl")[options.device].dtypes}
    memory = _trying("simple kernels", lambda: _ceilings(chosen)) or 10.0
    most = min(chosen.max_mem_alloc_size, chosen.global_mem_size // 8)
    for name, (dtypes, moved, prepare) in OPS.items():
        for dtype in dtypes:
            if dtype in has:
                log = _logarithm(moved * np.dtype(dtype).itemsize, memory, most)
                _trying(
                    f"{name} {dtype}",
                    lambda name=name, dtype=dtype, moved=moved, prepare=prepare, log=log: (
                        _streamed(name, dtype, moved, prepare, log)
                    ),
                )
    for dtype in DTYPES:
        if dtype in has:
            _trying(f"matmul {dtype}", lambda dtype=dtype: _matmul(dtype, most))
    _trying("matrix times vector", lambda: _vector(memory))
    _trying("convolution", _convolution)
    _trying("transfers", _transfers)
    return 1 if _failed else 0


_failed: list[str] = []


def _trying(what: str, run: Callable[[], Any]) -> Any:
    """Return the result of ``run``; report an error, and continue."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001  # the other rates can still be had
        _failed.append(what)
        tell("error", what=what, why=f"{type(error).__name__}: {error}")
        print(f"{what}: {type(error).__name__}: {error}", flush=True)
        return None


def _ceilings(device: Any) -> float:
    """Report the rates of simple kernels; return GB/s of a copy."""
    copied = 0.0
    for ceiling in ceilings(device):
        tell("ceiling", **ceiling._asdict())
        print(
            f"{ceiling.what:32}{ceiling.dtype:10}{ceiling.rate:12.1f} {ceiling.unit}", flush=True
        )
        copied = copied or ceiling.rate
    return copied


def _logarithm(moved: float, memory: float, most: int) -> int:
    """Return how many elements, as a power of 2, move in the allowed time at ``memory`` GB/s."""
    count = min(SECONDS * memory * 1e9 / moved, most / 8)
    return max(SMALLEST, min(LARGEST, int(count).bit_length() - 1))


def _streamed(
    name: str, dtype: str, moved: float, prepare: Callable[[Any], Call], log: int
) -> None:
    x = tp.full((1 << log,), 0.5, dtype=dtype)
    work = moved * (1 << log) * np.dtype(dtype).itemsize
    _measured(name, dtype, f"2^{log}", prepare(x), work, "GB/s")


def _measured(
    what: str, dtype: str, size: str, call: Call, work: float, unit: str, **more: Any
) -> None:
    slow = _seconds(call) > SECONDS * 4
    timing = tp.time(call, repeat=3 if slow else 9)
    taken = {"device_ms": timing.device_ms or None, "wall_ms": timing.wall_ms}
    tell("rate", what=what, dtype=dtype, size=size, work=work, unit=unit, **taken, **more)
    print(f"{what:20}{dtype:10}{size:20}{timing}", flush=True)


def _seconds(call: Call) -> float:
    """Return the seconds of a second call: the first one may compile."""
    call()
    tp.synchronize()
    began = time.perf_counter()
    call()
    tp.synchronize()
    return time.perf_counter() - began


def _matmul(dtype: str, most: int) -> None:
    """Measure the largest product that fits the time, judged by a run of the smallest one."""
    rate = 2 * SIDES[-1] ** 3 / _seconds(_product(SIDES[-1], dtype))
    fitting = (
        side
        for side in SIDES
        if 2 * side**3 / rate < MATRIX_SECONDS and side**2 * np.dtype(dtype).itemsize < most
    )
    side = next(fitting, SIDES[-1])
    size = f"{side} x {side} x {side}"
    _measured("matmul", dtype, size, _product(side, dtype), 2 * side**3, "GFLOP/s")


def _product(side: int, dtype: str) -> Call:
    rng = np.random.default_rng(0)
    a, b = (tp.asarray(rng.random((side, side), dtype=np.float32).astype(dtype)) for _ in range(2))
    return lambda: tp.matmul(a, b)


def _vector(memory: float) -> None:
    side = 16384 if memory > 200 else 4096
    a, v = tp.full((side, side), 0.5), tp.full((side,), 0.5)
    size = f"{side} x {side}"
    _measured("matrix x vector", "float32", size, lambda: a @ v, 4 * side**2, "GB/s")


def _convolution() -> None:
    """Measure 3 x 3 taps on 56 x 56 images of 64 channels, as many as the time allows."""

    def prepared(count: int) -> Call:
        x, taps = tp.full((count, 56, 56, 64), 0.5), tp.full((3, 3, 64, 64), 0.5)
        return lambda: tp.nn.conv2d(x, taps, 1, "same")

    one_image = _seconds(prepared(1))
    count = max(1, min(64, 1 << int(MATRIX_SECONDS / 4 / one_image).bit_length() - 1))
    work = 2 * count * 56 * 56 * 64 * 64 * 9
    _measured("conv2d 3 x 3", "float32", f"{count}x56x56x64", prepared(count), work, "GFLOP/s")


def _transfers() -> None:
    """Measure copies of 64 MiB between host and device, by the wall clock."""
    array = np.random.default_rng(0).random(1 << 24, dtype=np.float32)
    there = tp.asarray(array)

    def upload() -> None:
        tp.asarray(array)
        tp.synchronize()

    for what, call in (("upload", upload), ("read", there.numpy)):
        call()
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
        wall = float(np.median(taken)) * 1e3
        tell(
            "rate", what=what, dtype="float32", size="2^24", work=array.nbytes, unit="GB/s",
            device_ms=None, wall_ms=wall, bus=True,
        )  # fmt: skip
        print(f"{what:20}{'float32':10}{'2^24':20}{wall:.3f} ms", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
