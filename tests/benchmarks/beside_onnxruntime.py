"""Compiled ONNX models beside onnxruntime: ``python tests/benchmarks/beside_onnxruntime.py``.

Each network runs in a process of its own for each number of threads. Rounds alternate between the
two; a ratio is that of the least processor times of a call, summed over threads, and of the least
wall times. On a busy machine the former means more. onnxruntime's threads do not spin.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from onnx_networks import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Callable


def _least(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least processor and wall seconds of each call, in rounds of one call of each."""
    found = dict.fromkeys(calls, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, call in calls.items():
            start, wall = time.process_time(), time.perf_counter()
            call()
            spent = time.process_time() - start, time.perf_counter() - wall
            found[name] = (min(found[name][0], spent[0]), min(found[name][1], spent[1]))
    return found


def _measure(name: str, threads: int, rounds: int, backend: str) -> dict[str, Any]:
    """Return what there is to say of a network, in a process that began with so many threads."""
    import numpy as np
    import onnxruntime

    import tensorplug as tp
    import tensorplug_onnx
    from tensorplug_onnx.inspecting import example_inputs

    tp.set_backend(backend)
    model = NETWORKS[name]()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    loaded = tensorplug_onnx.load(model)
    inputs = example_inputs(loaded)
    tensors = {key: tp.asarray(array) for key, array in inputs.items()}
    compiled = loaded.compile()
    right = session.run(None, inputs)
    ours = [value.numpy() for value in compiled(tensors).values()]
    error = max(
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, right, strict=True)
    )
    calls = {
        "tensorplug": lambda: [value.numpy() for value in compiled(tensors).values()],
        "onnxruntime": lambda: session.run(None, inputs),
    }
    _least(calls, 2)
    return {"error": error, **_least(calls, rounds)}


def main() -> None:
    """Print a table, one row for each network and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        found = _measure(given.networks[0], given.threads[0], given.rounds, given.backend)
        print(json.dumps(found))
        return
    unknown = set(given.networks) - NETWORKS.keys()
    if unknown:
        parser.error(f"there is no network {min(unknown)!r}")
    print("| network | threads | onnxruntime, ms | ratio, processor | ratio, wall | difference |")
    print("|---|---|---|---|---|---|")
    for name in given.networks or NETWORKS:
        for threads in given.threads:
            one = [__file__, name, "--measure", "--threads", str(threads)]
            more = ["--rounds", str(given.rounds), "--backend", given.backend]
            limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
            text = subprocess.run(
                [sys.executable, *one, *more],
                env={**os.environ, **limits},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
            found = json.loads(text.splitlines()[-1])
            ours, theirs = found["tensorplug"], found["onnxruntime"]
            ratios = (f"{own / other:.2f}" for own, other in zip(ours, theirs, strict=True))
            row = [name, threads, f"{theirs[1] * 1e3:.2f}", *ratios, f"{found['error']:.0e}"]
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
