"""Set-up and tear-down functions of kernels: each once per device."""

from __future__ import annotations

from itertools import starmap

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, using

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.errors import RegistrationError
from tensorplug.ops.elementwise import unary


def sine(x):
    return np.sin(x)


class Life:
    """A kernel's table, and what happened to it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []
        self.fails = ""
        self.table = KernelTable()
        self.table.register(unary.SIN, setup=self.setup, teardown=self.teardown)(sine)

    def _event(self, what: str, backend: object) -> None:
        self.events.append((what, backend))
        if self.fails == what:
            raise OSError(f"{what} failed")

    def setup(self, backend: object) -> None:
        self._event("setup", backend)

    def teardown(self, backend: object) -> None:
        self._event("teardown", backend)

    @property
    def names(self) -> list[str]:
        return [what for what, _ in self.events]


@pytest.fixture
def life():
    return Life()


@pytest.fixture
def engine(life):
    engine = engines.make({"memory": [engines.basic_kernels(), life.table], "other": []})
    with using(engine):
        yield engine


def test_once_per_device(engine, life):
    for _ in range(3):
        tp.set_backend("memory")
        with tp.use_backend("memory"):
            tp.sin(tp.asarray([0.0]))
    assert life.events == [("setup", engine.devices.source.backends["memory"])]
    tp.set_backend("memory:1")
    assert life.events[1:] == [("setup", engine.devices.source.backends["memory:1"])]
    tp.remove_backend("memory")
    assert sorted(life.names) == ["setup", "setup", "teardown", "teardown"]
    tp.set_backend("memory")
    assert life.names[4:] == ["setup"]


def test_not_for_other_backends(engine, life):
    tp.set_backend("other")
    assert life.events == []


def test_a_kernel_registered_while_the_device_is_open(engine):
    events = []
    tp.set_backend("memory")

    def setup(backend):
        events.append(("setup", backend))

    def teardown(backend):
        events.append(("teardown", backend))

    backend = tp.find_backend("memory")
    handle = tp.register_kernel("Cos", "memory", np_cos, setup=setup, teardown=teardown)
    assert events == [("setup", backend)]
    expect(tp.cos(tp.asarray([0.0])), "float32", (1,), [1])
    handle.remove()
    handle.remove()
    assert events == [("setup", backend), ("teardown", backend)]


def np_cos(x):
    return np.cos(x)


def test_an_overridden_kernel_stays_set_up(engine, life):
    tp.set_backend("memory")
    with tp.register_kernel("Sin", "memory", sine, override=True):
        assert life.names == ["setup"]
    assert life.names == ["setup"]
    tp.unregister_kernel("Sin", "memory")
    assert life.names == ["setup", "teardown"]


def test_a_set_up_that_fails_refuses_the_backend(engine, life):
    other = Life()
    engine.devices.source.tables = {"memory": [other.table, engines.basic_kernels()]}
    other.fails = "setup"
    with pytest.raises(OSError, match="setup failed") as caught:
        tp.set_backend("memory")
    assert "in the set-up of kernel 'Sin' on 'memory'" in caught.value.__notes__
    assert engine.devices.listed() == []
    assert engine.devices.source.backends["memory"].closed
    other.fails = ""
    tp.set_backend("memory")
    assert other.names == ["setup", "setup"]
    assert "Sin" in tp.kernels_for("memory")


def test_a_set_up_that_fails_refuses_the_registration(engine):
    tp.set_backend("memory")
    tp.set_backend("memory:1")
    events = []

    def setup(backend):
        events.append("setup")
        if len(events) == 2:
            raise OSError("no more")

    def teardown(backend):
        events.append("teardown")

    before = tp.kernels_for("memory")
    with pytest.raises(OSError, match="no more"):
        tp.register_kernel("Cos", "memory", np_cos, setup=setup, teardown=teardown)
    assert tp.kernels_for("memory") == before
    assert events == ["setup", "setup", "teardown"]  # the first device's was undone


def test_all_are_torn_down_when_one_fails(engine):
    lives = [Life() for _ in range(3)]
    specs = (unary.SIN, unary.COS, unary.SQRT)
    tables = [KernelTable() for _ in specs]
    for table, spec, live in zip(tables, specs, lives, strict=True):
        table.register(spec, setup=live.setup, teardown=live.teardown)(sine)
    engine.devices.source.tables = {"memory": tables}
    tp.set_backend("memory")
    lives[1].fails = lives[2].fails = "teardown"
    with pytest.raises(OSError, match="teardown failed") as caught:
        engine.devices.close("memory")
    assert [live.names for live in lives] == [["setup", "teardown"]] * 3
    assert any("and then OSError" in note for note in caught.value.__notes__)
    assert engine.devices.source.backends["memory"].closed
    assert engine.devices.listed() == []


@pytest.mark.parametrize("role", ["setup", "teardown"])
def test_the_functions_take_the_backend(engine, role):
    with pytest.raises(RegistrationError, match=f"{role} of kernel 'Cos'.*backend"):
        tp.register_kernel("Cos", "memory", np_cos, **{role: np_cos})


def test_copied_kernels_bring_theirs(engine, life):
    tp.set_backend("other")
    handle = tp.copy_registered_kernels("memory", "other")
    assert tp.kernels_for("other") == tp.kernels_for("memory")
    assert sorted(starmap(lambda what, backend: (what, backend.name), life.events)) == [
        ("setup", "memory"),
        ("setup", "other"),
    ]
    with tp.use_backend("other"):
        expect(tp.sin(tp.asarray([0.0])), "float32", (1,), [0])
    with pytest.raises(RegistrationError, match="already registered"):
        tp.copy_registered_kernels("memory", "other")
    handle.remove()
    assert tp.kernels_for("other") == []
