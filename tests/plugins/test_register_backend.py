"""Backends that the running program registers, beside the installed ones."""

from __future__ import annotations

import types

import pytest
from tests.core.support.engines import MemoryBackend

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendWarning,
    PluginLoadError,
    RegistrationError,
)
from tensorplug.ops.elementwise import unary
from tensorplug.plugin import DeviceInfo, KernelTable, hookimpl
from tensorplug.testing import isolated_engine


def kernels() -> KernelTable:
    table = KernelTable()

    @table.register(unary.NEG)
    def negative(x):
        return -x

    return table


@pytest.fixture(autouse=True)
def engine():
    with isolated_engine() as engine:
        yield engine


def listed(name: str):
    return [backend for backend in tp.backends() if backend.name == name]


def test_function_as_a_backend():
    made = []

    def create():
        made.append(MemoryBackend("mine"))
        return made[-1]

    tp.register_backend("mine", create, kernels=[kernels()])
    assert made == []  # opened at first use
    (info,) = listed("mine")
    assert (info.distribution, info.state) == ("the running program", "available")
    tp.set_backend("mine")
    assert (tp.get_backend(), tp.describe_device()) == ("mine", "memory of mine")
    x = -tp.asarray([1.0])
    assert (x.device, x.tolist()) == ("mine", [-1.0])
    assert tp.find_backend("mine") is made[0]
    assert listed("mine")[0].state == "loaded"
    assert "the running program" in str(tp.explain("Neg"))
    tp.remove_backend("mine")
    assert made[0].closed
    assert (x.device, x.tolist()) == ("host", [-1.0])
    assert listed("mine") == []
    with pytest.raises(BackendNotInstalledError):
        tp.set_backend("mine")
    tp.register_backend("mine", create)
    tp.set_backend("mine")
    assert tp.kernels_for("mine") == []


def test_devices():
    asked = []

    def create(device):
        asked.append(device)
        return MemoryBackend("mine")

    tp.register_backend("mine", create)
    for name in ("mine", "mine:0", "mine:3"):
        tp.set_backend(name)
    assert asked == [None, "3"]


def test_an_object_with_hooks():
    class Plugin:
        @hookimpl
        def tensorplug_create_backend(self):
            return MemoryBackend("mine")

        @hookimpl
        def tensorplug_kernels(self, backend):
            return [kernels()] if backend.name == "mine" else ()

        @hookimpl
        def tensorplug_devices(self):
            return [DeviceInfo("left half"), DeviceInfo("right half")]

    tp.register_backend("mine", Plugin())
    assert list(tp.devices("mine")) == ["mine", "mine:1"]
    with tp.use_backend("mine:right") as name:
        assert name == "mine:1"
        assert tp.kernels_for("mine") == ["Neg"]


def test_module_with_hooks():
    module = types.ModuleType("hooks_of_a_notebook")

    @hookimpl
    def tensorplug_create_backend(device):
        return MemoryBackend("mine")

    module.tensorplug_create_backend = tensorplug_create_backend
    tp.register_backend("mine", module)
    tp.set_backend("mine")
    with pytest.raises(ArgumentError, match="tensorplug_kernels"):
        tp.register_backend("other", module, kernels=[kernels()])


def creating(name: str):
    return lambda: MemoryBackend(name)


def refuse():
    raise BackendUnavailableError("unplugged")


@pytest.mark.parametrize(
    ("priorities", "broken", "chosen"),
    [
        ({"low": -1, "mine": 0}, (), "cpu"),
        ({"mine": 1}, (), "mine"),
        ({"mine": 1, "best": 2}, (), "best"),
        ({"mine": 1, "best": 2}, ("best",), "mine"),
        ({"best": 2}, ("best",), "cpu"),
    ],
)
def test_priorities(priorities, broken, chosen):
    """The best that opens is active where none is set, and one that fails is warned of."""
    for name, priority in priorities.items():
        create = refuse if name in broken else creating(name)
        tp.register_backend(name, create, priority=priority)
    if broken:
        with pytest.warns(BackendWarning, match="'best'.*unplugged"):
            assert tp.get_backend() == chosen
    else:
        assert tp.get_backend() == chosen


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("cpu", refuse), RegistrationError, "taken by backend 'cpu' of tensorplug-cpu"),
        (("a:b", refuse), ArgumentError, "'a:b' cannot be the name"),
        ((3, refuse), ArgumentError, "3 cannot be the name"),
        (("host", refuse), ArgumentError, "'host' is reserved"),
        (("auto", refuse), ArgumentError, "'auto' is reserved"),
        (("mine", creating), RegistrationError, "unknown parameters name; .* device"),
        (("mine", object()), RegistrationError, "the hook tensorplug_create_backend is missing"),
    ],
)
def test_invalid_registrations(arguments, error, message):
    with pytest.raises(error, match=message):
        tp.register_backend(*arguments)
    assert listed("mine") == []


def test_name_is_registered_once():
    tp.register_backend("mine", refuse)
    with pytest.raises(RegistrationError, match="taken by backend 'mine' of the running program"):
        tp.register_backend("mine", refuse)
    tp.remove_backend("mine")
    tp.register_backend("mine", refuse)


@pytest.mark.parametrize(
    ("create", "error", "message"),
    [
        (refuse, BackendUnavailableError, "unplugged"),
        (lambda: None, BackendUnavailableError, "found no device"),
        (lambda: 3, RegistrationError, "lacks"),
        (lambda: MemoryBackend("other"), RegistrationError, "has the name 'other'"),
        (lambda: 1 / 0, PluginLoadError, r"ZeroDivisionError: division by zero in tensorplug_c"),
    ],
)
def test_backends_that_cannot_be_opened(create, error, message):
    tp.register_backend("mine", create)
    for _ in range(2):
        with pytest.raises(error, match=message) as caught:
            tp.set_backend("mine")
        assert "TENSORPLUG_DISABLE_PLUGINS" not in str(caught.value)  # that would not help
    assert listed("mine")[0].state == "failed"


def test_settings_do_not_concern_it(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_PLUGINS", "cpu")
    with isolated_engine():
        tp.register_backend("mine", lambda: MemoryBackend("mine"))
        tp.set_backend("mine")
        assert tp.get_backend() == "mine"


def test_each_engine_has_its_own():
    tp.register_backend("mine", lambda: MemoryBackend("mine"))
    with isolated_engine(), pytest.raises(BackendNotInstalledError):
        tp.set_backend("mine")
    tp.set_backend("mine")


def test_copies_of_the_cpu():
    """Two clones of the CPU backend, as somebody has who compares two sets of kernels."""
    from tensorplug_cpu.backend import CpuBackend

    class Clone(CpuBackend):
        def __init__(self, name):
            self._name = name

        @property
        def name(self):
            return self._name

    tp.register_backend("cpu1", lambda: Clone("cpu1"))
    tp.register_backend("cpu2", lambda: Clone("cpu2"))
    for name in ("cpu1", "cpu2"):
        tp.copy_registered_kernels("cpu", name)
    with tp.use_backend("cpu1"):
        five = tp.asarray(5.0)
        alias = tp.reshape(five, (1,))
    with tp.use_backend("cpu2"):
        eight = five + tp.asarray(3.0)
    assert (five.device, alias.device, eight.device) == ("cpu1", "cpu1", "cpu2")
    assert (eight.item(), alias.tolist()) == (8.0, [5.0])
