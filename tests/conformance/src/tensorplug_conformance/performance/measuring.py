"""Times calls on one backend, beside the cpu backend, in interleaved rounds."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import specs
from tensorplug_conformance.case import Case, mapped
from tensorplug_conformance.performance.calls import dtypes_of, timed_calls
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.reporting.roofline import ROUNDS, SIZES
from tensorplug_conformance.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.performance.calls import TimedCall


REFERENCE: Final = "cpu"
_ROUND: Final = 0.01  # seconds of one contender in one round, at least one call
_CALL: Final = 0.08  # seconds at most for all rounds of a call, for each contender
_LONG: Final = 2.0  # seconds of a call that is not repeated
_TOO_LONG: Final = 5.0  # seconds of a call that is not made
_SHORT: Final = 0.1  # seconds of a call from which nothing is foreseen: it may be overhead
_LARGEST: Final = 2048  # rows of the matrices that are multiplied
_MATRIX: Final = 0.25  # seconds of a product that is followed by no larger one
_PLAIN: Final = {"transpose_a": False, "transpose_b": False}

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

    def limits(self) -> dict[str, dict[str, Any]]:
        """Return what devices can do: seconds a call, bytes a second, operations a second.

        That of this backend is "native", that of the other one "cpu"; they take turns. The cost
        of a call is that of Neg of one element. The bandwidth is that of Neg, which reads and
        writes each byte once, of as many elements as calls of each size have: caches are faster
        than memory. The peak is that of a product of two square matrices.
        """
        names = [name for name in ("native", "cpu") if name in self._sessions]
        rates: dict[str, dict[str, Any]] = {
            name: {"overhead": seconds, "bandwidth": {}, "peak": 0.0}
            for name, seconds in self._together(names, specs.NEG, [np.ones(1, np.float32)]).items()
        }
        for size, elements in SIZES.items():
            array = np.ones(elements, np.float32)
            for name, seconds in self._together(names, specs.NEG, [array]).items():
                rates[name]["bandwidth"][size] = 2 * array.nbytes / seconds
        n = 256
        while n <= _LARGEST and names:
            matrix = np.ones((n, n), np.float32)
            taken = self._together(names, specs.BATCH_MAT_MUL, [matrix, matrix], **_PLAIN)
            for name, seconds in taken.items():
                rates[name]["peak"] = max(rates[name]["peak"], 2 * n**3 / seconds)
            names = [name for name in names if taken[name] <= _MATRIX]
            n *= 2
        return rates

    def _together(
        self, names: Sequence[str], spec: KernelSpec, operands: list[Any], **attributes: Any
    ) -> dict[str, float]:
        racing = {name: self._contender(name, spec, operands, attributes) for name in names}
        return _raced(racing, _CALL * len(names))[0]

    def kernel(self, entry: CaseEntry, seconds: float) -> list[dict[str, Any]]:
        """Return the rows of one kernel: one for each size.

        They take about so many seconds, unless two calls of each size take more. A size that
        would take far too long, judged by the one before, is left out; its row says so.
        """
        backend = self._sessions["native"].device.backend
        ended = time.perf_counter() + seconds
        rows: list[dict[str, Any]] = []
        for number, call in enumerate(timed_calls(entry, backend.dtypes)):
            share = (ended - time.perf_counter()) / max(len(SIZES) - number, 1)
            before = next((row for row in reversed(rows) if row["seconds"]), None)
            rows.append(self._row(entry.spec, call, share, before))
        return rows

    def _row(
        self, spec: KernelSpec, call: TimedCall, share: float, before: dict[str, Any] | None
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "kernel": call.kernel,
            "dtype": call.dtype,
            "size": call.size,
            "call": call.text,
            "moved": call.moved,
            "work": call.work,
            "how": "",
            "beside_how": "",
            "seconds": {},
            "rounds": 0,
            "error": "",
        }
        foreseen = _foreseen(call, before)
        if foreseen > _TOO_LONG:
            row["error"] = f"left out: the {call.size} call would take about {foreseen:.2g} s"
            return row
        case = Case("", tuple(call.operands), call.attributes)
        try:
            row["how"], _ = self._sessions["native"].how(spec, case)
            racing = {
                name: self._contender(name, spec, call.operands, call.attributes)
                for name in self._sessions
                if self._runs(name, spec, case)
            }
            if "cpu" in racing:
                row["beside_how"], _ = self._sessions["cpu"].how(spec, case)
            seconds, row["rounds"] = _raced(racing, share)
        except Exception as error:  # noqa: BLE001  # of any backend: it is shown, and no verdict
            row["error"] = f"{type(error).__name__}: {error}"
            return row
        if row["how"] not in ("native", "widened"):  # then what runs is the decomposition
            seconds["decomposed"] = seconds.pop("native")
        row["seconds"] = seconds
        return row

    def _runs(self, name: str, spec: KernelSpec, case: Case) -> bool:
        """Return whether a contender has a time of its own for this call."""
        session = self._sessions[name]
        if name == "cpu":
            return dtypes_of(spec, case) <= session.device.backend.dtypes
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
            tensors = mapped(session.upload, list(operands))
        return session, spec, tensors, dict(attributes)


def _raced(contenders: Mapping[str, Contender], share: float) -> tuple[dict[str, float], int]:
    """Return the seconds per call of the best round of each contender, and how many rounds.

    Each round runs every contender, so that what disturbs one disturbs them all. They end after
    ``share`` seconds, or earlier if there were enough. One that takes long is called once or
    twice, before the rounds.
    """
    latest = time.perf_counter() + share
    best = {name: _timed(one, 1) for name, one in contenders.items()}
    for name, one in contenders.items():  # the first call prepared what later ones need
        if best[name] < _LONG:
            best[name] = min(best[name], _timed(one, 1))
    counts = {name: max(1, int(_ROUND / max(best[name], 1e-7))) for name in contenders}
    enough = min(latest, time.perf_counter() + _CALL * len(contenders))
    rounds = 0
    one_round = sum(count * best[name] for name, count in counts.items())
    while time.perf_counter() + one_round < (latest if rounds < ROUNDS else enough):
        for name, one in contenders.items():
            best[name] = min(best[name], _timed(one, counts[name]))
        rounds += 1
    return best, rounds


def _foreseen(call: TimedCall, before: Mapping[str, Any] | None) -> float:
    """Return the seconds that the slowest contender will take, judged by a smaller call.

    0 where nothing is known: there is none, or it was short.
    """
    if before is None:
        return 0.0
    slowest: float = max(before["seconds"].values())
    if slowest < _SHORT:
        return 0.0
    larger: float = call.moved / max(before["moved"], 1)
    if call.work and before["work"]:
        larger = call.work / before["work"]
    return slowest * larger


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
