"""What calls of a program cost beside kernels: ``python tests/benchmarks/program_overhead.py``.

On a backend that runs programs kernel by kernel; they are chains of binary ops on 16 elements.
Processor microseconds, medians of rounds; in each round, the same kernels are also called by a
function that has nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.plugin import specs

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], Any]

LENGTHS = (1, 8, 64)


def kernel(spec: Any, x: Any) -> Callable[..., Any]:
    """Return what the backend runs for a call, without the core around it."""
    engine: Any = engine_of(current_context())
    plan, _ = engine.explain(spec, engine.devices.active, [x.type, x.type], {})
    return plan.call


def contenders(count: int, x: Any, y: Any) -> tuple[Call, Call, Call]:
    """Return a chain of so many calls: of kernels, compiled, and of ops."""
    names = {"add": kernel(specs.ADD, x), "multiply": kernel(specs.MULTIPLY, x)}
    steps = [("multiply", "add")[at % 2] for at in range(count)]
    lines = [f"    z = {name}({'x' if at == 0 else 'z'}, y)" for at, name in enumerate(steps)]
    text = "\n".join(["def chain(x, y):", *lines, "    return z"])
    bare, ops = dict(names), {"add": tp.add, "multiply": tp.multiply}
    exec(text, bare)
    exec(text, ops)
    function, kernels = ops["chain"], bare["chain"]
    program = tp.compile(function)
    assert len(program.program(x, y).calls) == count
    buffers = x._buffer, y._buffer
    return lambda: kernels(*buffers), lambda: program(x, y), lambda: function(x, y)


def spent(call: Call, count: int) -> float:
    """Return the processor microseconds of one run."""
    runs = max(1, 2000 // count)
    began = time.process_time()
    for _ in range(runs):
        call()
    return 1e6 * (time.process_time() - began) / runs


def main() -> None:
    """Print a row for each length: medians over the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--backend", default="minimal")
    options = parser.parse_args()
    tp.set_backend(options.backend)
    x, y = (tp.asarray(np.full(16, value, np.float32)) for value in (1, 0.5))
    print("             us of a run            us above the kernels, a call")
    print("calls   kernels compiled    eager   compiled    eager")
    for count in LENGTHS:
        calls = contenders(count, x, y)
        rounds = [[spent(call, count) for call in calls] for _ in range(options.rounds)]
        kernels, compiled, eager = map(statistics.median, zip(*rounds, strict=True))
        above = [statistics.median((row[at] - row[0]) / count for row in rounds) for at in (1, 2)]
        print(
            f"{count:5} {kernels:9.2f}{compiled:9.2f}{eager:9.2f}{above[0]:11.3f}{above[1]:9.3f}"
        )


if __name__ == "__main__":
    main()
