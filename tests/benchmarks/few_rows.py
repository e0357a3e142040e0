"""Products of few rows: bytes of weights per second, as a share of what copying memory takes.

``python tests/benchmarks/few_rows.py [--backends cpu opencl] [--rows 1 2 4 8] [--vectors 32]``.
Calls take turns, and the fastest of each counts; so does the least processor time, for a busy
machine. PyTorch, where it is installed, multiplies by the transpose in float32 and bfloat16; its
float32 is what all rows are compared with.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], object]

SHAPES: Final = ((4096, 4096), (49152, 576))  # columns, inner elements
THREADS: Final = os.cpu_count() or 1
COPIED: Final = 1 << 26  # elements
BLOCK: Final = 32


def seconds(calls: dict[str, Call], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least wall time and processor time (of a thread) of each call."""
    best = dict.fromkeys(calls, (float("inf"), float("inf")))
    for number in range(rounds + 1):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - wall, (time.process_time() - cpu) / THREADS
            if number:  # the first one compiles
                best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    return best


def copy_bandwidth() -> tuple[float, float]:
    """Return bytes read and written per second by all threads: of wall and processor time."""
    source, target = np.ones(COPIED, np.float32), np.zeros(COPIED, np.float32)
    parts = np.array_split(np.arange(COPIED), THREADS)
    bounds = [(int(part[0]), int(part[-1]) + 1) for part in parts]

    def run() -> None:
        threads = [
            threading.Thread(target=lambda a=a, b=b: np.copyto(target[a:b], source[a:b]))
            for a, b in bounds
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    wall, cpu = seconds({"copy": run}, 8)["copy"]
    return 2 * source.nbytes / wall, 2 * source.nbytes / cpu


def contenders(tp: Any, rows: int, columns: int, inner: int) -> dict[str, tuple[int, Call]]:
    """Return calls by name, and how many bytes of weights each reads."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((n, inner), np.float32) for n in (rows, columns))
    a, e = tp.asarray(x), tp.asarray(w)
    narrow = tp.astype(a, "bfloat16"), tp.astype(e, "bfloat16")
    scale = tp.max(tp.abs(e), axis=1, keepdims=True) / 127
    q, quantized = tp.quantize(e, scale), tp.quantize(a, 0.03)
    blocks = tp.max(tp.abs(tp.reshape(e, (columns, -1, BLOCK))), axis=2) / 7
    few = tp.quantize(e, blocks, dtype="int4")
    packed = tp.bitcast(tp.reshape(few, (columns, -1, 2)), "uint8")
    plain = tp.asarray(w.T.copy())
    size = columns * inner
    turned = {"transpose_b": True}
    int4 = {**turned, "b_packed": "int4"}
    compiled = tp.compile(lambda a, e: a @ e.T)
    return {
        "float32, x @ e.T compiled": (4 * size, lambda: compiled(a, e).numpy()),
        "float32, transpose_b": (4 * size, lambda: tp.matmul(a, e, **turned).numpy()),
        "float32, x @ w": (4 * size, lambda: tp.matmul(a, plain).numpy()),
        "bfloat16": (2 * size, lambda: tp.matmul(*narrow, **turned).numpy()),
        "int8 weights": (
            size,
            lambda: tp.quantized_matmul(a, q, None, scale, **turned).numpy(),
        ),
        "int8 x int8": (
            size,
            lambda: tp.quantized_matmul(quantized, q, 0.03, scale, **turned).numpy(),
        ),
        "int4 blocks of 32": (
            packed.nbytes + blocks.nbytes,
            lambda: tp.quantized_matmul(a, packed, None, blocks, **int4).numpy(),
        ),
    }


def peers(rows: int, columns: int, inner: int) -> dict[str, tuple[int, Call]]:
    """Return PyTorch's calls."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(THREADS)
    x, e = torch.randn(rows, inner), torch.randn(columns, inner)
    narrow = x.bfloat16(), e.bfloat16()
    size = columns * inner
    return {
        "PyTorch float32": (4 * size, lambda: x @ e.T),
        "PyTorch bfloat16": (2 * size, lambda: narrow[0] @ narrow[1].T),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backends", nargs="*", default=["cpu", "opencl"])
    parser.add_argument("--rows", nargs="*", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--vectors", default="", choices=["32"], help="as with AVX2 alone")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.vectors:
        os.environ["TENSORPLUG_CPU_VECTORS"] = given.vectors
        os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
    import tensorplug as tp

    copied = copy_bandwidth()
    print(f"copy: {copied[0] / 1e9:.1f} GB/s ({copied[1] / 1e9:.1f} of processor time)")
    for columns, inner in SHAPES:
        for rows in given.rows:
            calls = peers(rows, columns, inner)
            for backend in given.backends:
                with tp.use_backend(backend):
                    made = contenders(tp, rows, columns, inner)
                calls |= {f"{backend} {name}": each for name, each in made.items()}
            found = seconds({name: call for name, (_, call) in calls.items()}, given.rounds)
            for name, (size, _) in calls.items():
                shares = [
                    f"{size / t / by:6.2f}" for t, by in zip(found[name], copied, strict=True)
                ]
                ratio = found[name][0] / found.get("PyTorch float32", (float("nan"),))[0]
                print(
                    f"{rows} x {inner} by {columns}, {name:35} {found[name][0] * 1e3:8.2f} ms, "
                    f"of copying {shares[0]}, by processor time {shares[1]}, "
                    f"of PyTorch {ratio:5.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
