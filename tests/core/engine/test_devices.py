"""Choosing devices: order of preference, names, numbers, patterns."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from tests.core.support import engines
from tests.core.support.engines import Source, expect, together, using

import tensorplug as tp
from tensorplug.contract.backend import DeviceInfo
from tensorplug.engine.engine import Engine
from tensorplug.engine.registry import Registry
from tensorplug.errors import ArgumentError, BackendUnavailableError, BackendWarning
from tensorplug.plugins import catalogue


def preferring(prefer: tuple[str, ...], names=("first", "second", "third"), refused=()) -> Engine:
    source = Source({name: [engines.basic_kernels()] for name in names})
    source.refusals = {
        name: BackendUnavailableError(f"{name} has no hardware") for name in refused
    }
    return Engine(source, Registry(catalogue.catalogue()), prefer=prefer)


@pytest.mark.parametrize(
    ("prefer", "refused", "chosen"),
    [
        ((), (), "first"),
        (("auto",), (), "first"),
        (("third", "second"), (), "third"),
        (("third", "second"), ("third",), "second"),
        (("third", "auto"), ("third",), "first"),
        (("auto", "third"), ("first", "second"), "third"),
        (("second:1", "first"), (), "second:1"),
        (("nothing", "second"), (), "second"),
    ],
)
def test_the_first_that_opens_is_active(prefer, refused, chosen, recwarn):
    engine = preferring(prefer, refused=refused)
    skipped = [name for name in prefer if name in (*refused, "nothing")]
    if refused or skipped:
        with pytest.warns(BackendWarning, match=f"using '{chosen}', because a preferred"):
            assert engine.devices.active.name == chosen
    else:
        assert engine.devices.active.name == chosen
        assert not recwarn.list


def test_every_backend_that_was_passed_over_is_named():
    engine = preferring((), refused=("first", "second"))
    with pytest.warns(BackendWarning) as caught:
        assert engine.devices.active.name == "third"
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert "first has no hardware" in texts[0]
    assert "second has no hardware" in texts[1]


CARDS = [DeviceInfo("Big Radeon"), DeviceInfo("Old Radeon", "driver 3"), DeviceInfo("Xe")]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("card", "card"),
        ("card:0", "card"),
        ("card:00", "card"),
        ("card:1", "card:1"),
        ("card:01", "card:1"),
        ("card:radeon", "card"),
        ("card:OLD", "card:1"),
        ("card:driver 3", "card:1"),
        ("card:xe", "card:2"),
        ("plain:0", "plain"),
        ("plain:left", "plain:left"),  # a plugin that lists nothing gets the text
    ],
)
def test_one_device_has_one_name(asked, name):
    engine = preferring((), names=("card", "plain"))
    engine.devices.source.listed = {"card": CARDS}
    with using(engine):
        device = engine.open(asked)
        assert device.name == name
        assert device is engine.open(name)
        assert engine.devices.source.opened == [name]
        tp.set_backend(asked)
        assert tp.get_backend() == name
        x = tp.asarray([1.0])
        assert x.device == name
        placed = x.to(asked)
        assert placed.to(name) is placed
        with tp.use_backend(asked) as used:
            assert used == name


@pytest.mark.parametrize("asked", ["card:1", "card:01", "card:OLD", "card:driver 3"])
def test_a_device_is_removed_by_the_names_that_open_it(asked):
    engine = preferring((), names=("card",))
    engine.devices.source.listed = {"card": CARDS}
    with using(engine):
        tp.set_backend("card")
        x = tp.asarray([1.0]).to("card:1")
        tp.remove_backend(asked)
        assert (x.device, tp.get_backend()) == ("host", "card")


def test_no_device_matches():
    engine = preferring((), names=("card",))
    engine.devices.source.listed = {"card": CARDS}
    with pytest.raises(BackendUnavailableError, match=r"'nvidia'.*0: Big Radeon; 1: Old Radeon"):
        engine.open("card:nvidia")
    with pytest.raises(ArgumentError, match="after the colon"):
        engine.open("card:")
    assert engine.devices.source.opened == []


def test_devices_are_listed_by_the_names_that_open_them():
    engine = preferring((), names=("card", "plain"), refused=())
    engine.devices.source.listed = {"card": CARDS}
    with using(engine):
        result = tp.devices("card")
        assert list(result) == ["card", "card:1", "card:2"]
        assert list(result.values()) == CARDS
        assert engine.devices.source.opened == []
        both = tp.devices()
        assert list(both) == ["card", "card:1", "card:2", "plain"]
        assert both["plain"].hardware == "memory of plain"
        engine.devices.source.refusals["absent"] = BackendUnavailableError("no such hardware")
        engine.devices.source.tables["absent"] = []
        assert "absent" not in tp.devices()
        with pytest.raises(BackendUnavailableError, match="no such hardware"):
            tp.devices("absent")


def test_the_choice_may_be_left_to_the_engine():
    engine = preferring(("second", "first"))
    with using(engine):
        tp.set_backend("third")
        tp.set_backend("auto")
        assert tp.get_backend() == "second"


def test_find_backend():
    engine = preferring((), names=("first", "second"), refused=("second",))
    with using(engine):
        result = tp.find_backend("first")
        assert result is engine.devices.source.backends["first"]
        assert tp.find_backend("first") is result
        assert tp.find_backend("first:0") is result
        assert tp.find_backend("second") is None
        assert tp.find_backend("nothing") is None
        with pytest.raises(ArgumentError):
            tp.find_backend("first:")


# Switching ------------------------------------------------------------------------------


def test_switching_in_the_middle_of_a_computation():
    with using(engines.make(("first", "second"))) as _:
        tp.set_backend("first")
        x = tp.asarray([1.0, 2.0])
        y = x + 1
        tp.set_backend("second")
        z = y * x  # both are copied over
        assert (x.device, y.device, z.device) == ("first", "first", "second")
        expect(z, "float32", (2,), [2, 6])


def test_switching_in_the_middle_of_a_scope():
    engine = engines.make(("first", "second"))
    with using(engine):
        tp.set_backend("first")
        with tp.tidy():
            x = tp.asarray([1.0])
            tp.set_backend("second")
            y = x + 1
            kept = tp.keep(y * 2)
        assert x.is_disposed
        assert y.is_disposed
        expect(kept, "float32", (1,), [4])
        assert tp.memory()["first"].buffers == 0
        assert tp.memory()["second"].buffers == 1


# Side by side ---------------------------------------------------------------------------


def test_two_engines_side_by_side():
    one, two = engines.make(("memory",)), engines.make(("memory",))
    with using(one):
        x = tp.asarray([1.0, 2.0])
        with using(two):
            assert two.devices.listed() == []
            y = x + 1  # a tensor of another engine is foreign: it is copied
            assert y._placement.device is two.devices.active
            assert tp.memory()["memory"].transfers == 1
            with tp.register_kernel("Neg", "memory", lambda x: x, override=True):
                expect(-y, "float32", (2,), [2, 3])
        expect(-x, "float32", (2,), [-1, -2])
        assert x._placement.device is one.devices.active
        gradient = tp.grad(lambda v: tp.sum(v * y))(x)
        expect(gradient, "float32", (2,), [2, 3])


def test_threads_that_each_use_another_backend():
    engine = engines.make(("memory", "other"))
    engine.open("memory")
    seen: dict[int, set[str]] = {}

    def work(number: int) -> None:
        name = ("memory", "other", "memory:1", "other:1")[number % 4]
        with using(engine), tp.use_backend(name):
            devices = set()
            for step in range(30):
                x = tp.asarray([float(number), float(step)])
                gradient = tp.grad(lambda v: tp.sum(v * v))(x)
                expect(gradient, "float32", (2,), [2 * number, 2 * step])
                devices |= {x.device, gradient.device, tp.get_backend()}
            seen[number] = devices

    together(8, work)
    names = ("memory", "other", "memory:1", "other:1")
    assert seen == {number: {names[number % 4]} for number in range(8)}


def test_a_thread_starts_with_the_process_wide_backend():
    engine = engines.make(("memory", "other"))
    result: list[str] = []
    with using(engine):
        tp.set_backend("other")
        with tp.use_backend("memory"):
            # A plain thread has no context of ours, and so not this engine either.
            thread = threading.Thread(
                target=lambda: result.append(engine.devices.active.name), name="outsider"
            )
            thread.start()
            thread.join()
    assert result == ["other"]


THREADS = """
import asyncio, contextvars, sys, threading
import tensorplug as tp

tp.set_backend("cpu")
found = []

def work():
    found.append((tp.ones(2) + 1).device)

def in_thread(target):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()

with tp.use_backend("minimal"):
    in_thread(work)
    in_thread(lambda: contextvars.Context().run(work))
    context = contextvars.copy_context()
    in_thread(lambda: context.run(work))
    asyncio.run(asyncio.to_thread(work))
    x = tp.asarray([1.0], device="minimal")
in_thread(lambda: found.append((x + 1).device))
print(*found, getattr(sys.flags, "thread_inherit_context", 0))
"""


def test_what_a_new_thread_has_of_the_block_around_it():
    result = subprocess.run(
        [sys.executable, "-c", THREADS], check=True, capture_output=True, text=True, timeout=120
    ).stdout.split()
    plain, empty, copied, of_asyncio, committed, inherits = result
    assert plain == ("minimal" if inherits == "1" else "cpu")  # Python 3.14 may inherit
    assert [empty, copied, of_asyncio, committed] == ["cpu", "minimal", "minimal", "minimal"]


def test_tasks_that_each_use_another_backend():
    engine = engines.make(("memory", "other"))

    async def task(name: str) -> list[str]:
        result = []
        with tp.use_backend(name):
            x = tp.asarray([2.0])
            for _ in range(5):
                await asyncio.sleep(0)
                x = x * 1
                result.append(x.device)
            in_thread = await asyncio.to_thread(lambda: (x + 1).device)
        return [*result, in_thread]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*(task(name) for name in ("memory", "other", "memory:1")))

    with using(engine):
        assert asyncio.run(main()) == [["memory"] * 6, ["other"] * 6, ["memory:1"] * 6]
