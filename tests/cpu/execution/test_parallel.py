"""Kernels that share long loops out among threads give the same bits as alone."""

from __future__ import annotations

import weakref
from functools import partial
from threading import Barrier, Event, current_thread, main_thread

import numpy as np
import pytest

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution import parallel, rowwise
from tensorplug_cpu.kernels.nn import (
    activation,
    gaussian_error,
    layer_normalization,
)
from tensorplug_cpu.numerics import special_functions

ROWS = np.random.default_rng(4).standard_normal((1000, 130), dtype=np.float32)
OUT = TensorType(dt.float32, ROWS.shape)
NUMBER = TensorType(dt.float32, ())

SHARED = {
    "gelu": (
        gaussian_error,
        lambda: gaussian_error.gelu(OUT, approximate=False, out=OUT)(ROWS),
    ),
    "gelu_grad": (
        gaussian_error,
        lambda: gaussian_error.gelu_grad(OUT, OUT, approximate=True, out=OUT)(ROWS, ROWS),
    ),
    "layer_norm": (
        rowwise,
        lambda: layer_normalization.layer_norm(
            OUT, None, NUMBER, axis=(1,), epsilon=1e-5, out=OUT
        )(ROWS, None, np.float32(2).reshape(())),
    ),
    "layer_norm_grad": (
        rowwise,
        lambda: layer_normalization.layer_norm_grad(OUT, OUT, axis=(1,), epsilon=1e-5, out=OUT)(
            ROWS, ROWS[::-1]
        ),
    ),
    "softmax": (rowwise, lambda: activation.softmax(OUT, dim=1, out=OUT)(ROWS)),
    "erf": (special_functions, lambda: special_functions.erf(ROWS)),
}


@pytest.mark.parametrize("name", SHARED)
def test_in_several_threads(name, monkeypatch):
    module, compute = SHARED[name]
    monkeypatch.setattr(module, "_SHARED", 1 << 40)
    alone = compute()  # kept alive, so that its memory is not reused for the other result
    shared = []
    share_out = parallel.share_out

    def counted(*args, **more):
        shared.append(more.get("parts"))
        share_out(*args, **more)

    monkeypatch.setattr(module, "_SHARED", 1)
    monkeypatch.setattr(parallel._workers, "_count", 2)
    for holder in (module, parallel):
        if hasattr(holder, "share_out"):
            monkeypatch.setattr(holder, "share_out", counted)
    np.testing.assert_array_equal(compute(), alone)
    assert shared == [None]


def test_a_call_that_is_not_started_holds_no_arrays(monkeypatch):
    workers = parallel._Workers()
    workers._count = 1
    monkeypatch.setattr(parallel, "_workers", workers)
    going_on = Event()
    busy = workers.submit(going_on.wait)  # the only thread
    array = np.ones(3)
    alive = weakref.ref(array)
    try:
        parallel.together(array.sum)
        del array
        assert alive() is None
    finally:
        going_on.set()
    assert busy.wait() is None


def test_a_call_that_has_ended_holds_no_arrays(monkeypatch):
    workers = parallel._Workers()
    workers._count = 1
    monkeypatch.setattr(parallel, "_workers", workers)
    seen = []
    for _ in range(50):
        array, going_on = np.ones(3), Event()
        alive = weakref.ref(array)
        task = workers.submit(partial(_sum_later, array, going_on))
        task._end = _Watched(task._end, lambda alive=alive: seen.append(alive() is None))
        del array
        going_on.set()
        assert task.wait() is None
    assert seen == [True] * 50


class _Watched:
    """A lock, before whose release something is looked at."""

    def __init__(self, lock, look):
        self._lock, self._look = lock, look

    def release(self):
        self._look()
        self._lock.release()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_error):
        self._lock.release()


def _sum_later(array, going_on):
    going_on.wait()
    array.sum()


def test_errors_of_threads_are_raised_after_all_have_ended(monkeypatch):
    workers = parallel._Workers()
    workers._count = 2
    monkeypatch.setattr(parallel, "_workers", workers)
    started, ended = Barrier(3), []

    def work():
        started.wait()
        if current_thread() is not main_thread():
            ended.append(True)
            raise ZeroDivisionError("in a thread")

    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="in a thread"):
            parallel.together(work)
        assert len(ended) == 2
        ended.clear()
