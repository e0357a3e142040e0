"""Kernels that are wrong now and then, or late, or keep something by a few, tried by soaking."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance import cases
from tensorplug_conformance.checks import CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.soaking import soak_all
from tensorplug_conformance.selftest.kinds.kind import Kind
from tensorplug_conformance.selftest.kinds.memory import takes_inputs
from tensorplug_conformance.selftest.kinds.results import changed
from tensorplug_conformance.selftest.sabotage import install, is_installable
from tensorplug_conformance.selftest.trials import Trial
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.soak import Soak

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call, Saboteur


_PATIENT: Final = Soak(seconds=120.0)  # a wrapped kernel is slower


def _one_in(calls: int, act: Callable[[Call, list[Any]], list[Any]]) -> Callable[[Call], Any]:
    """Return what computes correctly, and does ``act`` to one result in so many."""

    def wrong(call: Call) -> Any:
        number = call.lasting["calls"] = call.lasting.get("calls", 0) + 1
        outcome = call.run(call.buffers, call.attributes)
        return outcome if number % calls else act(call, outcome)

    return wrong


def _other_elements(call: Call, results: list[Any]) -> list[Any]:
    arrays = [np.array(call.backend.to_host(buffer)) for buffer in results]
    return [call.backend.from_host(changed(array, -1)) for array in arrays]


def _other_shape(call: Call, results: list[Any]) -> list[Any]:
    return [call.backend.from_host(np.array(call.backend.to_host(item))[None]) for item in results]


def _print(_call: Call, results: list[Any]) -> list[Any]:
    sys.stdout.write("still here\n")
    return results


def _write(_call: Call, results: list[Any]) -> list[Any]:
    os.write(2, b"still here\n")
    return results


def _keep_results(call: Call, results: list[Any]) -> list[Any]:
    call.lasting.setdefault("kept", []).append(results)
    return results


def _keep_copies(call: Call, results: list[Any]) -> list[Any]:
    copies = [np.array(call.backend.to_host(item)) for item in results]
    call.lasting.setdefault("kept", []).append(copies)
    return results


def _keep_inputs(call: Call, results: list[Any]) -> list[Any]:
    call.lasting.setdefault("kept", []).append(list(call.buffers))
    return results


def _after(calls: int) -> Callable[[Call], Any]:
    def wrong(call: Call) -> Any:
        number = call.lasting["calls"] = call.lasting.get("calls", 0) + 1
        outcome = call.run(call.buffers, call.attributes)
        return outcome if number <= calls else _other_elements(call, outcome)

    return wrong


def _loses_a_race(call: Call) -> Any:
    """Return what lies in a place that threads share, now and then after another one's turn."""
    number = call.lasting["calls"] = call.lasting.get("calls", 0) + 1
    mine: list[Any] = call.run(call.buffers, call.attributes)
    call.lasting["place"] = mine
    if number % 200:
        return call.run(call.buffers, call.attributes)
    end = time.monotonic() + 0.02
    while call.lasting["place"] is mine and time.monotonic() < end:
        time.sleep(0.001)  # another thread may come in between, as it may on real hardware
    results: list[Any] = call.lasting["place"]
    return results


KINDS: Final = (
    Kind("wrong in 1 of 50 calls", _one_in(50, _other_elements), raw=True),
    Kind("wrong in 1 of 200 calls", _one_in(200, _other_elements), raw=True),
    Kind("wrong in 1 of 1000 calls", _one_in(1000, _other_elements), raw=True),
    Kind("wrong after 3000 calls", _after(3000), raw=True),
    Kind("loses a race in 1 of 200 calls", _loses_a_race, raw=True),
    Kind("another shape in 1 of 100 calls", _one_in(100, _other_shape), raw=True),
    Kind("prints in 1 of 500 calls", _one_in(500, _print), raw=True),
    Kind("writes to a descriptor in 1 of 500 calls", _one_in(500, _write), raw=True),
    Kind("keeps 1 of 100 results", _one_in(100, _keep_results), raw=True),
    Kind("keeps 1 of 100 scratch buffers", _one_in(100, _keep_copies), raw=True),
    Kind(
        "keeps inputs of 1 of 100 calls", _one_in(100, _keep_inputs), fits=takes_inputs, raw=True
    ),
)


def rare_saboteurs(thin: int = 0, offset: int = 0) -> list[Saboteur]:
    """Return one for each family, the kinds in rotation, and one in ``thin`` of all others."""
    saboteurs: list[Saboteur] = []
    number = 0
    for at, table in enumerate(cases.by_family().values()):
        family = [(entry, kind) for entry in table for kind in KINDS]
        chosen = at * (len(KINDS) + 1) % len(family)
        for index, (entry, kind) in enumerate(family):
            number += 1
            if index == chosen or (thin and number % thin == offset % thin):
                saboteurs += kind.saboteurs(entry)
    return saboteurs


def try_rare(backend: str, saboteur: Saboteur, entry: CaseEntry) -> Trial:
    """Soak one sabotaged kernel on an engine of its own; it must be caught."""
    session = Session(engine_factory(None), backend)
    try:
        if not is_installable(session, saboteur):
            return Trial(saboteur.name, True, f"{backend} has no such kernel")
        install(session, saboteur)
        soak_all(session, [entry], _PATIENT)
    except CheckFailedError as fault:
        return Trial(saboteur.name, True, str(fault))
    except NotMeasuredError as reason:
        return Trial(saboteur.name, False, f"not measured: {reason}")
    finally:
        session.close()
    return Trial(saboteur.name, False, "soaking passed")
