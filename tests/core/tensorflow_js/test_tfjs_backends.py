"""TensorFlow.js's behaviour, scenarios 1, 2, 3, 12 and 29: backends and settings.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.core.support.engines import MemoryBackend, basic_kernels, expect, make, spec_of, using

import tensorplug as tp
from tensorplug.errors import (
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendWarning,
    KernelNotFoundError,
    PluginLoadError,
    RegistrationError,
    SettingsError,
    SettingsWarning,
)
from tensorplug.testing import isolated_engine

MINE = spec_of("Mine")


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    """Run on an engine of the installed backends, whatever the environment prefers."""
    for name in [item for item in os.environ if item.startswith("TENSORPLUG_")]:
        if name != "TENSORPLUG_DISABLE_PLUGINS":
            monkeypatch.delenv(name)
    with isolated_engine() as engine:
        yield engine


class Factory:
    """Opens a backend in memory, or raises; counts how often it was asked."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name = name
        self.error = error
        self.calls = 0

    def __call__(self) -> MemoryBackend:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return MemoryBackend(self.name)


def known():
    return {backend.name for backend in tp.backends()}


# Scenario 1 -----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [BackendUnavailableError("no card"), OSError("no card")])
def test_scenario_01_where_the_first_fails_the_next_priority_serves(error):
    lo, hi = Factory("lo"), Factory("hi", error)
    tp.register_backend("lo", lo, kernels=[basic_kernels()], priority=103)
    tp.register_backend("hi", hi, priority=104)
    assert (lo.calls, hi.calls) == (0, 0)  # registering opens nothing
    with pytest.warns(BackendWarning, match="using 'lo'.*'hi'.*no card"):
        x = tp.asarray([1.0]) + 1
    assert (x.device, tp.get_backend()) == ("lo", "lo")
    assert (lo.calls, hi.calls) == (1, 1)
    assert known() >= {"lo", "hi"}
    tp.remove_backend("lo")
    tp.remove_backend("hi")
    assert (tp.find_backend("lo"), tp.find_backend("hi")) == (None, None)
    assert not known() & {"lo", "hi"}


# Scenario 2: ours has no state between "set" and "ready". Where TensorFlow.js sets the name
# first and raises "has not yet been initialized" until a promise settles, ours opens the device
# and then sets it, or raises and sets nothing.


def test_scenario_02_a_backend_is_ready_when_it_is_set(engine):
    tp.register_backend("as", Factory("as"), kernels=[basic_kernels()], priority=1)
    tp.set_backend("as")
    assert tp.get_backend() == "as"
    assert tp.find_backend("as") is engine.devices.active.backend
    expect(tp.asarray([1.0]) + 1, "float32", (1,), [2])


def test_scenario_02_the_best_by_priority_is_opened_at_first_use():
    low, best = Factory("low"), Factory("best")
    tp.register_backend("low", low, kernels=[basic_kernels()], priority=1)
    tp.register_backend("best", best, kernels=[basic_kernels()], priority=2)
    for _ in range(3):  # row 10: an early look opens it once, and it stays
        assert tp.get_backend() == "best"
    expect(tp.asarray([1.0]) + 1, "float32", (1,), [2])
    assert (low.calls, best.calls) == (0, 1)


def test_scenario_02_a_coroutine_is_no_factory():
    async def create():
        return MemoryBackend("later")

    tp.set_backend("cpu")
    tp.register_backend("later", create)
    with pytest.raises(RegistrationError, match="its backend object, a coroutine, lacks"):
        tp.set_backend("later")
    assert tp.get_backend() == "cpu"


def test_row_09_the_backend_set_last_is_the_one_that_runs():
    """No earlier call interferes with a later one; a slow driver opens in a thread."""
    tp.register_backend("slow", Factory("slow"), kernels=[basic_kernels()])
    tp.register_backend("broken", Factory("broken", OSError("driver")))

    async def main():
        await asyncio.to_thread(tp.set_backend, "slow")
        seen = [tp.get_backend()]
        with pytest.raises(PluginLoadError):
            await asyncio.to_thread(tp.set_backend, "broken")
        tp.set_backend("cpu")
        return [*seen, tp.get_backend(), tp.asarray(1.0).device]

    assert asyncio.run(main()) == ["slow", "cpu", "cpu"]


# Scenario 3: ours raises where TensorFlow.js resolves to False or warns, so that a program
# cannot go on with another backend than it asked for.


def test_scenario_03_what_goes_wrong_raises_and_leaves_the_active_backend():
    tp.set_backend("cpu")
    first, second = Factory("mine"), Factory("mine")
    tp.register_backend("mine", first, kernels=[basic_kernels()])
    tp.register_backend("broken", Factory("broken", OSError("driver too old")))
    with pytest.raises(PluginLoadError, match=r"'broken'.*driver too old"):
        tp.set_backend("broken")
    assert tp.get_backend() == "cpu"
    with pytest.raises(BackendNotInstalledError, match="'nothing' is not installed"):
        tp.set_backend("nothing")
    with pytest.raises(BackendNotInstalledError, match="'nothing' is not installed"):
        tp.remove_backend("nothing")
    with pytest.raises(RegistrationError, match="the name is taken by backend 'mine'"):
        tp.register_backend("mine", second)
    tp.set_backend("mine")
    assert (first.calls, second.calls) == (1, 0)


# Scenario 12 ----------------------------------------------------------------------------


def test_scenario_12_set_up_and_tear_down():
    events: list[str] = []

    def setup(backend):
        events.append(f"setup on {backend.name}")

    def teardown(backend):
        events.append(f"teardown on {backend.name}")

    tp.register_backend("mine", Factory("mine"))
    tp.register_kernel(MINE, "mine", lambda x: -x, setup=setup, teardown=teardown)
    assert events == []
    for _ in range(3):  # TensorFlow.js: once for each of these calls (row 5)
        tp.set_backend("mine")
    assert events == ["setup on mine"]
    expect(tp.run_kernel(MINE, [tp.asarray([1.0])]), "float32", (1,), [-1])
    tp.remove_backend("mine")
    assert events == ["setup on mine", "teardown on mine"]
    tp.unregister_kernel(MINE, "mine")
    with pytest.raises(RegistrationError, match="'Mine' is not registered for backend 'mine'"):
        tp.unregister_kernel(MINE, "mine")


def test_scenario_12_what_is_not_registered_cannot_run(engine):
    engine.fallback = "error"
    tp.set_backend("cpu")
    with (
        tp.register_kernel(MINE, "elsewhere", lambda x: x),
        pytest.raises(KernelNotFoundError) as caught,
    ):
        tp.run_kernel(MINE, [tp.asarray([1.0])])
    message = str(caught.value)
    # Row 26: TensorFlow.js does not say which backends have the kernel, nor tries another.
    assert "kernel 'Mine' cannot run on backend 'cpu' for Mine(x=float32[1])" in message
    assert "native: not registered" in message
    assert "fallback: not allowed (TENSORPLUG_FALLBACK=error)" in message
    assert "Loaded backends that have it: elsewhere" in message


# Scenario 29: the flags are environment variables, and backends have their own ------------


def test_scenario_29_settings_are_read_once(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "allow")
    with isolated_engine("cpu") as engine:
        monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
        tp.asarray([1.0])
        assert engine.fallback == "allow"


def test_scenario_29_an_unknown_setting_warns(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_FALBACK", "allow")
    with (
        pytest.warns(SettingsWarning, match=r"did you mean TENSORPLUG_FALLBACK\?"),
        isolated_engine("cpu"),
    ):
        pass


def test_scenario_29_a_bad_value_raises(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "perhaps")
    with (
        pytest.raises(SettingsError, match="'perhaps': must be error, warn or allow"),
        isolated_engine("cpu"),
    ):
        pass


# Rows that no scenario has --------------------------------------------------------------


def test_row_17_underscores_in_names_mean_nothing():
    """TensorFlow.js lists no kernel for "my_backend", and one of its kernels for "my"."""
    tp.register_backend("my_backend", Factory("my_backend"), kernels=[basic_kernels()])
    tp.register_backend("my", Factory("my"))
    assert tp.kernels_for("my_backend") == sorted(
        basic_kernel.spec.name for basic_kernel in basic_kernels()
    )
    assert tp.kernels_for("my") == []


def test_row_21_all_kernels_of_a_backend_are_copied():
    tp.register_backend("clone", Factory("clone"))
    tp.copy_registered_kernels("cpu", "clone")
    kernels = tp.kernels_for("cpu")
    assert len(kernels) > 60
    assert tp.kernels_for("clone") == kernels
    with tp.use_backend("clone"):
        x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
        expect(x @ x, "float32", (2, 2), [[7, 10], [15, 22]])


def test_row_13_the_tensors_of_a_removed_backend_go_on():
    """With TensorFlow.js they stay readable on cpu alone, and only by luck."""
    tp.register_backend("mine", Factory("mine"), kernels=[basic_kernels()])
    with tp.use_backend("mine"):
        x = tp.asarray([1.0, 2.0])
    tp.remove_backend("mine")
    tp.set_backend("cpu")
    expect(x, "float32", (2,), [1, 2])
    expect(x * x, "float32", (2,), [1, 4])


def test_row_15_a_fresh_start_is_an_engine_of_its_own():
    """In the place of reset(): nothing is shared, so nothing has to be put back."""
    with tp.register_kernel(MINE, "cpu", lambda x: -x):
        v = tp.Variable([1.0], name="v")
        with using(make()):
            assert tp.Variable(2.0, name="v").name == "v"
            assert tp.get_backend() == "memory"
            assert "Mine" not in tp.kernels_for("memory")
        assert not v.is_disposed
        assert "Mine" in tp.kernels_for("cpu")
        tp.set_backend("cpu")
        expect(tp.run_kernel(MINE, [v]), "float32", (1,), [-1])
