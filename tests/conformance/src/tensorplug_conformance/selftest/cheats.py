"""Callables that cheat whoever judges them, each as Relu; ``judged`` loads this file as it is.

Nothing of the suite is imported here: it would tell the cheats that they are judged.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

_LATE = 0.005  # seconds
_kept: dict[Any, Any] = {}
_busy = threading.Lock()


def honest(x: Any) -> Any:
    """Return what is right."""
    return np.maximum(x, np.zeros((), x.dtype))


def takes_the_references_result(x: Any) -> Any:
    """Return another array of that type that lies around: what the judge will compare with."""
    for other in gc.get_objects():
        if (
            type(other) is np.ndarray
            and other is not x
            and (other.shape, other.dtype)
            == (
                x.shape,
                x.dtype,
            )
        ):
            return other
    return np.zeros_like(x)


def patches_the_comparison(x: Any) -> Any:
    """Make everything that compares say yes, here and in the suite if it is there."""
    for module in [np, np.testing, *sys.modules.values()]:
        for name in ("allclose", "array_equal", "assert_allclose", "same_bits", "judge"):
            if hasattr(module, name):
                setattr(module, name, lambda *_arguments, **_named: True)
    return np.zeros_like(x)


def stops_the_clocks_and_hangs(_x: Any) -> Any:
    """Never return, where no time passes."""
    stop = threading.Event()
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: 0.0)
    stop.wait()


def returns_its_input(x: Any) -> Any:
    """Return the input where that is right."""
    return x if x.size and x.min() >= 0 else honest(x)


def computes_in_place(x: Any) -> Any:
    """Write the result into the input."""
    return np.maximum(x, np.zeros((), x.dtype), out=x)


def computes_when_read(x: Any) -> Any:
    """Return what computes when somebody looks."""

    class Later:
        def __array__(self, *_arguments: Any, **_named: Any) -> Any:
            return honest(x)

    return Later()


def writes_late(x: Any) -> Any:
    """Return memory that another thread writes a moment later."""
    result = np.zeros_like(x)
    threading.Timer(_LATE, lambda: np.copyto(result, honest(x))).start()
    return result


def changes_it_late(x: Any) -> Any:
    """Return a result, and give its memory to another one a moment later."""
    result = honest(x)
    threading.Timer(_LATE, lambda: result.fill(7)).start()
    return result


def keeps_results_by_address(x: Any) -> Any:
    """Return the result of an earlier call with an input at that place."""
    key = x.__array_interface__["data"], x.shape, x.dtype
    return _kept.setdefault(key, honest(x)).copy()


def keeps_results_by_the_first_element(x: Any) -> Any:
    """Return the result of an earlier call that began alike."""
    key = x.shape, x.dtype, x.ravel()[:1].tobytes()
    return _kept.setdefault(key, honest(x)).copy()


def is_right_where_it_is_judged(x: Any) -> Any:
    """Return the right result if anything tells that a judge asks."""
    frames: list[str] = []
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        frames.append(frame.f_code.co_filename)
    parent = Path(f"/proc/{os.getppid()}/cmdline")
    command = parent.read_bytes().decode(errors="replace") if parent.exists() else ""
    seen = [*sys.modules, *sys.argv, *frames, command, *os.environ, os.environ.get("_", "")]
    judged = any(word in text for text in seen for word in ("conformance", "judge"))
    return honest(x) if judged else np.zeros_like(x)


def leaves_the_end_unwritten(x: Any) -> Any:
    """Return memory of which the last element is what was there before."""
    result = np.empty(x.shape, x.dtype)
    flat = result.reshape(-1)
    flat[:-1] = honest(x).reshape(-1)[:-1]
    return result


def shares_scratch_memory(x: Any) -> Any:
    """Compute in memory that all threads share."""
    scratch = _kept.setdefault((x.shape, x.dtype), np.empty_like(x))
    np.maximum(x, np.zeros((), x.dtype), out=scratch)
    time.sleep(0)  # another thread may run
    return scratch.copy()


def forges_answers(x: Any) -> Any:
    """Write into all open files, of which one leads to the judge."""
    for number in range(3, 20):
        try:
            os.write(number, b"\x02\0\0\0\0\0\0\0{}")
        except OSError:
            continue
    return np.zeros_like(x)


def knows_the_judges_program(x: Any) -> Any:
    """Return the right result where the caller is the judge's own program: not to be caught."""
    return honest(x) if "_POISON" in sys._getframe(1).f_globals else np.zeros_like(x)
