"""Tries one backend in a separate process: ``python -m tensorplug.command_line.probe NAME``.

Without a name it loads the extensions only, as it does first for every backend. Prints a line of
JSON per step, so that the steps before a crash are known.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug.engine.current import current_engine
from tensorplug.errors import TensorplugError
from tensorplug.plugins import loader
from tensorplug.system.foreign_text import cause_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugins.metadata import Candidate


def main(name: str = "", patience: str = "20") -> int:
    """Load a backend, list its devices, and run a computation on each.

    ``patience``: seconds in which an extension must be loaded. One that needs longer ends this
    process; its stack goes to standard error.
    """
    faulthandler.enable()
    say = _speaker()
    said: list[str] = []
    warnings.showwarning = lambda message, *_args, **_more: said.append(str(message))
    loader.listeners.append(partial(_announce, say, float(patience)))
    say(step="extensions")
    try:
        current_engine()
        say(step="load")
        devices = tp.devices(name) if name else {}
    except (TensorplugError, ImportError, OSError) as error:
        say(failed="load", error=cause_of(error))
        say(done="backend", warnings=said)
        return 1
    wrong = 0
    for device, info in devices.items():
        say(step="device", device=device, hardware=info.hardware, driver=info.driver)
        if info.refused:
            say(done="device", device=device, refused=info.refused)
            continue
        began = time.perf_counter()
        try:
            computed = _compute(device)
        except Exception as error:  # noqa: BLE001  # the error is the finding
            say(failed="device", device=device, error=cause_of(error))
            wrong += 1
            continue
        seconds = time.perf_counter() - began
        say(done="device", device=device, seconds=round(seconds, 3), **computed)
        wrong += not computed["right"]
    say(done="backend", warnings=said)
    return 1 if wrong else 0


def _announce(
    say: Callable[..., None], patience: float, candidate: Candidate | None, when: str
) -> None:
    """Say which plugin's code runs from now on, and when it has run; watch extensions."""
    if candidate is None:
        faulthandler.cancel_dump_traceback_later()
        say(running="")
        return
    qualified = f"{candidate.distribution}:{candidate.name}"
    say(running=qualified, kind=candidate.kind, when=when)
    if candidate.kind == "extension":
        faulthandler.dump_traceback_later(patience, exit=True)  # even if it holds the GIL


def _speaker() -> Callable[..., None]:
    """Return a function that prints an event; all that others print goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a driver in C does not ask for sys.stdout
    sys.stdout = sys.stderr

    def say(**event: Any) -> None:
        stream.write(json.dumps(event) + "\n")
        stream.flush()

    return say


def _compute(device: str) -> dict[str, Any]:
    """Take a step of gradient descent, and compare it with NumPy's."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 33, 17)).astype(np.float32)
    w = w[:17]
    with tp.use_backend(device):
        tensors = tp.asarray(x), tp.asarray(w)
        slope = tp.grad(lambda w: tp.sum(tp.tanh(tensors[0] @ w)))(tensors[1])
        moved = np.asarray(tensors[1] - 0.5 * slope)
    y = np.tanh(x.astype(np.float64) @ w)
    expected = w - 0.5 * (x.T.astype(np.float64) @ (1 - y * y))
    error = float(np.max(np.abs(moved - expected)))
    return {"right": bool(error < 1e-3), "error": error}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
