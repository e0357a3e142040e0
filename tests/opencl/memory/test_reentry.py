"""Ops that a signal handler or a finalizer runs in the middle of an op, at every point of it."""

from __future__ import annotations

import gc
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import interrupts, reentry
from tests.core.support.reentry import points_of
from tests.opencl.conftest import require_device

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.testing import isolated_engine
from tensorplug_opencl.machine import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Values = list[float]

FEW = 12  # points of a run that builds programs
OURS, THEIRS = [1.0, 2.0, 5.0, 3.0], [10.0, 40.0, 20.0, 80.0]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Keep programs in a folder of the test's own, and return it."""
    require_device()  # its verdict is remembered elsewhere
    monkeypatch.setenv(cache_folder.CACHE, str(tmp_path / "programs"))
    return tmp_path / "programs"


@pytest.fixture
def opened(folder) -> Iterator[None]:
    with isolated_engine():
        tp.set_backend("opencl")
        yield


@pytest.fixture(params=reentry.OCCASIONS)
def during(request) -> Callable[..., bool]:
    """Return a function that calls ``act`` at one point of ``program``."""
    return lambda program, point, act: reentry.call_during(program, point, request.param, act)


def compute_sum(values: Values) -> Any:
    return tp.asarray(values, dtype="float32") * 2 + 1


def compute_parts(values: Values) -> Any:
    """Use one kernel on views that begin at different elements."""
    x = tp.asarray(values, dtype="float32")
    return (x[:2] + x[2:]) * (x[1:3] + x[:2])


def compute_filled(values: Values) -> Any:
    return tp.full((3,), values[1], dtype="float32") - values[0]


def compute_reduced(values: Values) -> Any:
    x = tp.asarray(values, dtype="float32")
    return tp.cumsum(x)[::-1] @ tp.sort(x)


# By name: a program, and the same in NumPy.
PROGRAMS: dict[str, tuple[Callable[[Values], Any], Callable[[Any], Any]]] = {
    "sum": (compute_sum, lambda x: x * 2 + 1),
    "parts": (compute_parts, lambda x: (x[:2] + x[2:]) * (x[1:3] + x[:2])),
    "filled": (compute_filled, lambda x: np.full(3, x[1]) - x[0]),
    "reduced": (compute_reduced, lambda x: np.dot(np.cumsum(x)[::-1], np.sort(x))),
}
NAMES = list(PROGRAMS)


def check(name: str, values: Values, actual: Any) -> None:
    expected = np.asarray(PROGRAMS[name][1](np.array(values, np.float32)), np.float32)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", NAMES)
def test_ops_in_between(opened, during, name):
    program = PROGRAMS[name][0]
    for point in points_of(lambda: program(OURS).numpy()):
        ours, theirs = [], []
        assert during(
            lambda ours=ours: ours.append(program(OURS).numpy()),
            point,
            lambda theirs=theirs: theirs.append(program(THEIRS).numpy()),
        )
        check(name, OURS, *ours)
        check(name, THEIRS, *theirs)


@pytest.mark.parametrize("kept", [True, False], ids=["loaded", "built"])
def test_ops_in_between_on_a_device_that_was_just_opened(during, monkeypatch, kept):
    """All programs and plans are new: at first built, then loaded from disk."""
    program = PROGRAMS["sum"][0]
    if not kept:
        monkeypatch.setenv(cache_folder.CACHE, "0")

    def run(values: Values) -> Any:
        return program(values).numpy()

    with isolated_engine():
        tp.set_backend("opencl")
        run(OURS)
    with isolated_engine():
        tp.set_backend("opencl")
        points = interrupts.count_points(lambda: run(OURS))
    for point in sorted(Random(0).sample(range(1, points + 1), FEW)):
        ours, theirs = [], []
        with isolated_engine():
            tp.set_backend("opencl")
            assert during(
                lambda ours=ours: ours.append(run(OURS)),
                point,
                lambda theirs=theirs: theirs.append(run(THEIRS)),
            )
            check("sum", OURS, *ours)
            check("sum", THEIRS, *theirs)
            check("sum", THEIRS, run(THEIRS))


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_freed_and_given_back_in_between(opened, during, name):
    program = PROGRAMS[name][0]
    for point in points_of(lambda: program(OURS).numpy())[::3]:
        ours, other = [], [program(THEIRS)]

        def free(other=other) -> None:
            other.clear()
            gc.collect()
            tp.trim_memory("opencl")
            other.append(program(THEIRS).numpy())

        assert during(lambda ours=ours: ours.append(program(OURS).numpy()), point, free)
        check(name, OURS, *ours)
        check(name, THEIRS, *other)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_that_begins_or_ends_in_between(opened, during, name):
    """Measuring moves all work to another queue and back."""
    program = PROGRAMS[name][0]
    backend = current_context().engine.open("opencl").backend
    for point in points_of(lambda: program(OURS).numpy())[::2]:
        ends: list[Callable[[], int]] = []

        def toggle(ends=ends) -> None:
            if ends:
                assert ends.pop()() >= 0
            else:
                ends.append(backend.measure())

        for _ in range(2):
            ours: list[Any] = []
            assert during(lambda ours=ours: ours.append(program(OURS).numpy()), point, toggle)
            check(name, OURS, *ours)
        assert not ends


def test_uploads_in_between(backend, during, monkeypatch):
    """Uploads to a busy device go through pinned memory, which each of them has to itself."""
    runtime, staging = backend.runtime, backend.runtime.staging
    monkeypatch.setattr(runtime, "_is_idle", lambda: False)
    staging.pins = True

    def upload(values: Values, length: int) -> Values:
        hosts = [np.full(length, value, np.float32) for value in values]
        buffers = [backend.from_host(host) for host in hosts]
        return [float(backend.to_host(buffer)[-1]) for buffer in buffers]

    for point in points_of(lambda: upload(OURS, 1)):
        ours, theirs = [], []
        arrived = during(
            lambda ours=ours: ours.append(upload(OURS, 1)),
            point,
            lambda theirs=theirs: theirs.append(upload(THEIRS, 1 << 15)),
        )
        if not arrived:
            break  # the number of points depends on how many copies are done
        assert [*ours, *theirs] == [OURS, THEIRS]
        backend.synchronize()
        blocks = [block for free in staging._free.values() for block in free]
        assert len(staging) == staging._bytes == 0
        assert len({id(block) for block in blocks}) == len(blocks)
    assert blocks, "nothing was pinned"


def test_an_interrupted_launch_leaves_no_argument_behind(opened):
    """The next launch reads its own elements, wherever the interrupted one began."""
    x = tp.asarray(OURS, dtype="float32")

    def run(start: int) -> list[float]:
        return (x[start : start + 2] * x[1:3]).tolist()

    with interrupts.interruptible():
        for point in points_of(lambda: run(2)):
            assert run(0) == [2.0, 10.0]
            interrupts.interrupt(lambda: run(2), point)
            assert run(0) == [2.0, 10.0]
            assert run(2) == [10.0, 15.0]
