"""Kernel objects: a program has few, which its launches take from one another."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pyopencl as cl
import pytest
from tests.opencl.device.test_runtime import ADD_CONSTANT

from tensorplug_opencl.programs import kernel_objects, program
from tensorplug_opencl.programs.kernel_objects import KernelObjects
from tensorplug_opencl.programs.program import Programs


@pytest.fixture
def made(monkeypatch):
    """Return the list of the kernel objects that the driver makes, by source."""
    sources = []
    kernel = Programs.kernel

    def noted(self, source):
        sources.append(source)
        return kernel(self, source)

    monkeypatch.setattr(Programs, "kernel", noted)
    return sources


def launches(runtime, count, source=ADD_CONSTANT):
    return [
        runtime.launch(source, 2, [np.int32(4), np.int32(number)], 4) for number in range(count)
    ]


def run(backend, launch):
    x = backend.from_host(np.arange(4, dtype=np.int32))
    y = backend.runtime.empty(x.type)
    launch(x, y)
    return backend.to_host(y)


def test_many_launches_share_few_objects(backend, monkeypatch, made):
    monkeypatch.setattr(kernel_objects, "MOST", 3)
    all_ = launches(backend.runtime, 20)
    for order in (range(20), reversed(range(20)), [0, 19] * 3):
        for number in order:
            np.testing.assert_array_equal(run(backend, all_[number]), np.arange(4) + number)
    assert len(made) == 3


def test_threads_that_share_few_objects(backend, monkeypatch, made):
    monkeypatch.setattr(kernel_objects, "MOST", 2)
    all_ = launches(backend.runtime, 24)
    wrong = []

    def work(first):
        for step in range(60):
            number = (first + step) % len(all_)
            actual = run(backend, all_[number])
            if not np.array_equal(actual, np.arange(4) + number):
                wrong.append((number, actual))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(made) <= 2 + len(threads)  # one more for each call that found all in use


def test_launches_that_died_leave_room(backend, monkeypatch, made):
    monkeypatch.setattr(kernel_objects, "MOST", 4)
    for _ in range(5):
        every = launches(backend.runtime, 4)
        for number, launch in enumerate(every):
            np.testing.assert_array_equal(run(backend, launch), np.arange(4) + number)
        del every, launch
        gc.collect()
    (built,) = backend.runtime.programs._built.values()
    assert len(built.objects._holders) == 4


def test_a_program_that_makes_room_frees_its_objects(backend, monkeypatch, made):
    monkeypatch.setattr(program, "MOST_KEPT", 2)
    texts = [ADD_CONSTANT.replace("+ constant_term", f"- {n} + constant_term") for n in range(4)]
    launched = [launches(backend.runtime, 2, text) for text in texts]
    idle = [len(launch._free) for two in launched for launch in two]
    assert idle == [0, 0, 0, 0, 1, 1, 1, 1]
    for at, two in enumerate(launched):  # and yet all of them run
        for number, launch in enumerate(two):
            np.testing.assert_array_equal(run(backend, launch), np.arange(4) - at + number)
    assert backend.memory()["programs"] == 2


class Holder:
    """A launch with so many idle kernel objects."""

    def __init__(self, *idle):
        self.idle = list(idle)

    def give_up(self):
        return self.idle.pop() if self.idle else None


@pytest.mark.parametrize(
    ("idle", "given"),
    [
        ([], [None, None]),  # there is room for two
        ([["a"]], [None, "a"]),  # for one more; then it is the oldest's
        ([["a"], ["b"]], ["a", "b"]),
        ([[], ["b"]], ["b", None]),  # the oldest is in use, and stays counted
        ([[], []], [None, None]),
    ],
)
def test_the_oldest_idle_object_is_given(monkeypatch, idle, given):
    monkeypatch.setattr(kernel_objects, "MOST", 2)
    objects = KernelObjects()
    holders = [Holder(*each) for each in idle]
    objects._holders.extend(map(weakref.ref, holders))
    borrowers = [Holder() for _ in given]
    assert [objects.reclaim(each) for each in borrowers] == given
    expected = len(holders) + sum(kernel is None for kernel in given)
    assert len(objects._holders) == expected


def test_what_a_call_looks_at_makes_no_room(monkeypatch):
    """While one call takes an object from its holder, another one takes the other."""
    monkeypatch.setattr(kernel_objects, "MOST", 2)
    objects = KernelObjects()
    within = []

    class Interrupted(Holder):
        def give_up(self):
            if not within:
                within.append(None)
                within[0] = objects.reclaim(borrower)
            return super().give_up()

    borrower, holders = Holder(), [Interrupted("a"), Holder("b")]
    objects._holders.extend(map(weakref.ref, holders))
    assert (objects.reclaim(borrower), within) == ("a", ["b"])


def test_an_object_that_is_not_made_is_not_counted(backend, monkeypatch):
    launches(backend.runtime, 1)
    (built,) = backend.runtime.programs._built.values()
    holder = Holder()

    def refuse(_programs, _source):
        raise MemoryError

    monkeypatch.setattr(Programs, "kernel", refuse)
    with pytest.raises(MemoryError):
        backend.runtime.programs.lend(holder, built.source)
    assert holder not in [known() for known in built.objects._holders]


def test_launches_of_a_program_keep_one_text(backend):
    copies = [f"{ADD_CONSTANT} " for _ in range(2)]
    assert copies[0] is not copies[1]
    first, second = (launches(backend.runtime, 1, text)[0] for text in copies)
    assert first._source is second._source


def test_the_driver_counts_what_the_objects_count(backend):
    """An object that a launch gives up is the driver's only reference but one."""
    (launch,) = launches(backend.runtime, 1)
    kernel = launch.give_up()
    assert kernel.get_info(cl.kernel_info.REFERENCE_COUNT) == 1
    np.testing.assert_array_equal(run(backend, launch), np.arange(4))
