"""Calls every kernel of the backend on a few of the suite's own cases, one after another.

It runs on a device that watches each access to memory and writes errors to the standard error.
Before a call this program writes the call's name there, so that later messages belong to that
call. Two kernels of this program are wrong on purpose: without messages on these, the device does
not watch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from tensorplug.errors import TensorplugError
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.tables import Case, CaseEntry

DTYPES = ("float32", "int8")  # of the cases, or the first that a kernel has
LARGEST = 4096  # elements of all inputs: a simulator is slow
CONTROLS = {
    "beyond its end": "kernel void run(global int *x) { x[get_global_id(0) + 1] = 1; }",
    "a data race": "kernel void run(global int *x) { x[0] = get_global_id(0); }",
}


def main() -> None:
    """Make the calls; an exception counts as a message."""
    session = Session(engine_factory(None), "opencl")
    _controls(session.device.backend.runtime.device)
    for entry in entries().values():
        if session.registration(entry.spec.name) is not None:
            for row, case in _chosen(session, entry):
                _say(f"call {row.kernel} {row.dtype}, case {case.id!r}")
                _call(session, entry, case)
                _say("done")
    _say("end")


def _say(text: str) -> None:
    print(f"@@ {text}", file=sys.stderr, flush=True)


def _controls(device: cl.Device) -> None:
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    for name, source in CONTROLS.items():
        kernel = cl.Program(context, source).build().run
        memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16 * np.dtype("i4").itemsize)
        _say(f"control {name}")
        kernel(queue, (16,), (16,), memory)
        queue.finish()
        _say("done")


def _chosen(session: Session, entry: CaseEntry) -> Iterator[tuple[Row, Case]]:
    """Yield, for one or two dtypes, the largest case of each layout that is not too large."""
    has = [dtype.name for dtype in entry.dtypes if dtype in session.device.backend.dtypes]
    for dtype in [dtype for dtype in DTYPES if dtype in has] or has[:1]:
        row = Row(entry.spec.name, dtype, "native")
        largest: dict[str, Case] = {}
        for case in cases_of(entry, row, 0):
            best = largest.get(case.layout)
            if _native(session, entry, case) and (best is None or _size(case) > _size(best)):
                largest[case.layout] = case
        yield from ((row, case) for case in largest.values())


def _native(session: Session, entry: CaseEntry, case: Case) -> bool:
    if case.refused or _size(case) > LARGEST:
        return False
    try:
        return session.how(entry.spec, case)[0] == "native"
    except TensorplugError:  # no such dtype, or no kernel: the suite's business
        return False


def _arrays(case: Case) -> list[np.ndarray]:
    operands = [operand if isinstance(operand, list) else [operand] for operand in case.inputs]
    return [array for arrays in operands for array in arrays if array is not None]


def _size(case: Case) -> int:
    return sum(array.size for array in _arrays(case))


def _call(session: Session, entry: CaseEntry, case: Case) -> None:
    try:
        for output in session.call(entry.spec, session.operands(case), case.attributes):
            session.read(output)
    except Exception as error:  # noqa: BLE001  # it is told like all else
        print(f"{type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
