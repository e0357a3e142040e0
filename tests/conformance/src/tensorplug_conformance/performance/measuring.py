"""Times calls on one backend, beside the cpu backend, in interleaved rounds."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.performance.calls import SIZES, timed_calls
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.performance.calls import TimedCall

__all__ = ["REFERENCE", "Stopwatch"]

REFERENCE: Final = "cpu"
_ROUND: Final = 0.01  # seconds of one contender in one round, at least one call
_CALL: Final = 0.08  # seconds for all rounds of a call, for each contender
_ROUNDS: Final = 3  # at least, unless one call takes long
_LONG: Final = 1.0  # seconds of a call that is not repeated
_LARGEST: Final = 2048  # rows of the matrices that are multiplied

Contender = tuple[Session, "KernelSpec", list[Any], dict[str, Any]]


class Stopwatch:
    """A backend, its primitives alone, and the cpu backend if that is another one."""

    def __init__(
        self, backend: str, factory: Callable[[], Engine], cpu: Callable[[], Engine] | None
    ) -> None:
        self._sessions = {
            "native": Session(factory, backend),
            "decomposed": Session(factory, backend, primitives_only=True),
        }
        if cpu is not None:
            self._sessions["cpu"] = Session(cpu, REFERENCE)

    @property
    def device(self) -> Device:
        """The device that is measured."""
        return self._sessions["native"].device

    def limits(self) -> dict[str, Any]:
        """Return what the device can do: seconds a call, bytes a second, operations a second.

        The cost of a call is that of Neg of one element. The bandwidth is that of Neg, which
        reads and writes each byte once, of as many elements as calls of each size have: caches
        are faster than memory. The peak is that of a product of two square matrices.
        """
        overhead = self._alone(specs.NEG, [np.ones(1, np.float32)], {})
        bandwidth = {}
        for size, elements in SIZES.items():
            array = np.ones(elements, np.float32)
            bandwidth[size] = 2 * array.nbytes / self._alone(specs.NEG, [array], {})
        peak, n = 0.0, 256
        while n <= _LARGEST:
            matrix = np.ones((n, n), np.float32)
            kept = {"transpose_a": False, "transpose_b": False}
            seconds = self._alone(specs.BATCH_MAT_MUL, [matrix, matrix], kept)
            peak = max(peak, 2 * n**3 / seconds)
            if seconds > _LONG / 4:
                break
            n *= 2
        return {"overhead": overhead, "bandwidth": bandwidth, "peak": peak}

    def _alone(self, spec: KernelSpec, operands: list[Any], attributes: dict[str, Any]) -> float:
        return self._raced({"native": self._contender("native", spec, operands, attributes)})[
            "native"
        ]

    def kernel(self, entry: CaseEntry) -> list[dict[str, Any]]:
        """Return the rows of one kernel: one for each size."""
        backend = self._sessions["native"].device.backend
        return [self._row(entry.spec, call) for call in timed_calls(entry, backend.dtypes)]

    def _row(self, spec: KernelSpec, call: TimedCall) -> dict[str, Any]:
        row: dict[str, Any] = {
            "kernel": call.kernel,
            "dtype": call.dtype,
            "size": call.size,
            "call": call.text,
            "moved": call.moved,
            "work": call.work,
            "how": "",
            "seconds": {},
            "error": "",
        }
        case = Case("", tuple(call.operands), call.attributes)
        try:
            row["how"], _ = self._sessions["native"].how(spec, case)
            racing = {
                name: self._contender(name, spec, call.operands, call.attributes)
                for name in self._sessions
                if self._runs(name, spec, case)
            }
            found = self._raced(racing)
        except Exception as error:  # noqa: BLE001  # of any backend: it is shown, and no verdict
            row["error"] = f"{type(error).__name__}: {error}"
            return row
        if row["how"] not in ("native", "widened"):  # then what runs is the decomposition
            found["decomposed"] = found.pop("native")
        row["seconds"] = found
        return row

    def _runs(self, name: str, spec: KernelSpec, case: Case) -> bool:
        """Return whether a contender has a time of its own for this call."""
        session = self._sessions[name]
        if name == "cpu":
            return _dtypes(spec, case) <= session.device.backend.dtypes
        if name == "native":
            return True
        native = self._sessions["native"].how(spec, case)[0] in ("native", "widened")
        if spec.name in PRIMITIVES or not native:
            return False
        try:
            return session.how(spec, case)[0] == "decomposed"
        except Exception:  # noqa: BLE001  # some kernels have no decomposition
            return False

    def _contender(
        self, name: str, spec: KernelSpec, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Contender:
        session = self._sessions[name]
        with session.entered():
            tensors = [_uploaded(session, operand) for operand in operands]
        return session, spec, tensors, dict(attributes)

    @staticmethod
    def _raced(contenders: Mapping[str, Contender]) -> dict[str, float]:
        """Return the seconds per call of the best round of each contender.

        Each round runs every contender, so that what disturbs one disturbs them all.
        """
        best = {name: _timed(one, 1) for name, one in contenders.items()}
        again = {name: one for name, one in contenders.items() if best[name] < _LONG}
        for name, one in again.items():  # the first call prepared what later ones need
            best[name] = min(best[name], _timed(one, 1))
        counts = {name: max(1, int(_ROUND / max(best[name], 1e-7))) for name in again}
        ended = time.perf_counter() + _CALL * len(again)
        turn = 0
        while again and (turn < _ROUNDS or time.perf_counter() < ended):
            for name, one in again.items():
                best[name] = min(best[name], _timed(one, counts[name]))
            turn += 1
        return best


def _timed(contender: Contender, calls: int) -> float:
    session, spec, tensors, attributes = contender
    backend = session.device.backend
    collecting = gc.isenabled()
    gc.disable()
    try:
        backend.synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            session.call(spec, tensors, attributes)
        backend.synchronize()
        return (time.perf_counter() - began) / calls
    finally:
        if collecting:
            gc.enable()


def _dtypes(spec: KernelSpec, case: Case) -> set[Any]:
    """Return the dtypes of a call's inputs and outputs."""
    outputs = spec.resolve(case.types, case.attributes)[1]
    types = [*outputs]
    for one in case.types:
        types += one if isinstance(one, list) else [] if one is None else [one]
    return {dt.of(type_.dtype) for type_ in types}


def _uploaded(session: Session, operand: Any) -> Any:
    if operand is None:
        return None
    if isinstance(operand, list):
        return [session.upload(array) for array in operand]
    return session.upload(operand)
