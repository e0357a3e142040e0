"""The time of a function: wall and kernels, waited for, medians of repeated calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.support import clocks, engines

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError
from tensorplug.observers.timing import Timing


def test_wall_and_kernels(clock):
    x = tp.asarray([1.0])

    def work():
        clock.now += 3 * clocks.MS
        return tp.square(tp.exp(x))  # a kernel of 20 ms, a decomposition with one of 5 ms

    assert tp.time(work) == Timing(wall_ms=28.0, kernel_ms=25.0, repeat=5)


def test_work_submitted_before_is_not_counted(clock):
    x = tp.asarray([1.0])
    clock.submit(500)
    timing = tp.time(tp.exp, x, repeat=1)
    assert (timing.wall_ms, timing.kernel_ms) == (20.0, 20.0)


@pytest.mark.parametrize(
    ("durations", "repeat", "median"),
    [
        ([90, 1, 50, 2, 3, 0, 0, 0, 0], 4, 2.5),  # the first call prepares, and is not counted
        ([90, 1, 50, 2, 0, 0, 0], 3, 2.0),
        ([90, 7, 0], 1, 7.0),
    ],
)
def test_medians_of_calls_after_a_first_one(clock, durations, repeat, median):
    left = iter(durations)

    def work():
        clock.now += next(left) * clocks.MS

    timing = tp.time(work, repeat=repeat)
    assert (timing.wall_ms, timing.kernel_ms, timing.repeat) == (median, 0.0, repeat)
    assert list(left) == []  # as often as the documentation says


def test_the_wall_time_is_taken_without_an_observer(clock):
    seen = []
    tp.time(lambda: seen.append(len(current_context().observers)), repeat=2)
    assert seen == [0, 0, 0, 1, 1]


def test_arguments_are_handed_on_and_errors_come_through(clock):
    before = current_context()
    calls = []
    tp.time(lambda a, *, b: calls.append((a, b)), 1, b=2, repeat=1)
    assert calls == [(1, 2)] * 3
    counts = iter(range(3))
    with pytest.raises(ZeroDivisionError):
        tp.time(lambda: 1 / (1 - next(counts)), repeat=1)
    with pytest.raises(ZeroDivisionError):
        tp.time(lambda: 1 / (0 if current_context().observers else 1), repeat=1)
    assert current_context() is before


def test_a_timing_as_text():
    assert str(Timing(1.25, 1.0, 3)) == "1.250 ms, 1.000 ms in kernels (median of 3)"
    text = "1.250 ms, 1.000 ms in kernels, 0.500 ms on the device (median of 3)"
    assert str(Timing(1.25, 1.0, 3, 0.5)) == text


@pytest.fixture
def measuring(clock):
    """Let the device say that it worked for half of the time that passed; return open ones."""
    opened = []

    def measure():
        begun = clock.now
        opened.append(begun)

        def end():
            opened.remove(begun)
            return (clock.now - begun) // 2

        return end

    device = current_context().engine.open("memory")
    device.capabilities = replace(device.capabilities, measure=measure)
    return opened


def test_work_that_the_device_reports(clock, measuring):
    x = tp.asarray([1.0])
    timing = tp.time(lambda: tp.square(tp.exp(x)))
    assert (timing.kernel_ms, timing.device_ms) == (25.0, 12.5)
    with tp.profile() as p:
        tp.square(tp.exp(x))
    assert [kernel.device_seconds for kernel in p.kernels] == [0.010, 0.0025, 0.0025]
    assert p.device_seconds == pytest.approx(0.0125)
    assert "the device worked 12.500 ms" in str(p)
    assert not measuring


def test_a_kernel_that_fails_ends_its_measurement(clock, measuring):
    def broken(x):
        raise ZeroDivisionError

    with (
        tp.register_kernel("Exp", "memory", broken, override=True),
        pytest.raises(ZeroDivisionError),
        tp.profile(),
    ):
        tp.exp(tp.asarray([1.0]))
    assert not measuring


def test_a_device_without_a_clock(clock):
    with tp.profile() as p:
        tp.exp(tp.asarray([1.0]))
    assert p.kernels[0].device_seconds is None
    assert p.device_seconds is None
    assert "worked" not in str(p)


@pytest.mark.parametrize(
    ("arguments", "repeat", "message"),
    [
        ((3,), 1, "time: function must be callable, got int"),
        ((abs, 1), 0, "time: repeat must be positive, got 0"),
        ((abs, 1), 1.5, "time: repeat must be an integer, got 1.5"),
        ((abs, 1), True, "time: repeat must be an integer, got True"),
    ],
)
def test_bad_arguments(arguments, repeat, message):
    with engines.using(engines.make()), pytest.raises(ArgumentError) as caught:
        tp.time(*arguments, repeat=repeat)
    assert str(caught.value) == message
