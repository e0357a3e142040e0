"""Runs a program on one backend and records its kernel calls: ``python -m ... FOLDER REQUEST``.

The process is one of its own, so that each backend sees a program that begins anew; a crash ends
the record with the call that was running.
"""

from __future__ import annotations

import faulthandler
import json
import random
import runpy
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.dispatch.context import set_default_engine
from tensorplug.observers import callsite
from tensorplug_conformance.case import mapped
from tensorplug_conformance.differential.calls import Call, Outcome, Place, Writer
from tensorplug_conformance.session import engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.engine.plans import Plan
    from tensorplug.plugin import Tensor


LIMIT: Final = 4 << 30
"""Bytes of arrays after which recording stops."""

FAILED: Final = 70
"""The exit code after an exception of the program, whose text is the last line of the output."""

_SEED: Final = 0


class _Depth(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.place: Place | None = None


class Recorder:
    """An observer of the engine: writes each call with the bits of its inputs and outputs."""

    def __init__(self, writer: Writer, backend: str) -> None:
        self._writer = writer
        self._backend = backend
        self._lock = threading.Lock()
        self._count = 0
        self._within = _Depth()
        self._stopped = False

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Run one call."""
        within = self._within
        if self._stopped:
            return run()
        if not within.depth:
            within.place = _place()
        number = self._begin(plan, inputs, within)
        within.depth += 1
        try:
            outputs = run()
        except Exception as error:
            self._write(Outcome(number, None, f"{type(error).__name__}: {error}"))
            raise
        finally:
            within.depth -= 1
        self._write(Outcome(number, [self._put(tensor) for tensor in outputs]))
        return outputs

    def uploaded(self, tensor: Tensor) -> None:
        """Ignore uploads: they show as inputs."""

    def _begin(self, plan: Plan, inputs: Sequence[Any], within: _Depth) -> int:
        digests = [mapped(self._put, operand) for operand in inputs]
        with self._lock:
            number, self._count = self._count, self._count + 1
        elsewhere = plan.device.backend_name != self._backend and plan.how != "fallback"
        self._write(
            Call(
                number,
                plan.spec.name,
                plan.describe(),
                dict(plan.attributes),
                digests,
                plan.how,
                within.depth,
                within.place,
                elsewhere,
            )
        )
        return number

    def _put(self, tensor: Tensor) -> str:
        # What the tensor's own backend gives: a string may lie on another one, the host.
        array = np.array(tensor._placement.device.backend.to_host(tensor._buffer), copy=True)
        with self._lock:
            return self._writer.arrays.put(array)

    def _write(self, record: object) -> None:
        with self._lock:
            if self._stopped:
                return
            self._writer.write(record)
            if self._writer.arrays.written > LIMIT:
                self._stopped = True
                self._writer.write(f"recording stopped after {LIMIT >> 30} GiB of arrays")


def _place() -> Place | None:
    position = callsite.find()
    if position is None:
        return None
    # An absolute path differs from machine to machine; `str` is relative to the current folder.
    file = str(position).removesuffix(f":{position.line}")
    return Place(file, position.line, position.function, position.source)


def main(arguments: Sequence[str]) -> int:
    """Run the program of a request; return its exit code, or ``FAILED``."""
    faulthandler.enable()
    folder, request = Path(arguments[0]), json.loads(arguments[1])
    engine = engine_factory(request["factory"])()
    set_default_engine(lambda: engine)
    tp.set_backend(request["backend"])
    recorder = Recorder(Writer(folder), engine.open(None).backend_name)
    engine.observers = (*engine.observers, recorder)
    random.seed(_SEED)
    np.random.seed(_SEED)  # noqa: NPY002  # the program may use it
    program = request["program"]
    sys.argv = [program, *request["arguments"]]
    sys.path.insert(0, str(Path(program).resolve().parent))
    try:
        if request["function"] is None:
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_path(program, run_name=Path(program).stem)[request["function"]]()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # the program's own, which is part of the answer
        traceback.print_exc()
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
