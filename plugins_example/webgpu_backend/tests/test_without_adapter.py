"""What needs no adapter: waits, messages, choosing among adapters that are not there."""

from __future__ import annotations

import json
import logging
import os
import threading
from contextlib import nullcontext
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import wgpu

import tensorplug as tp
from tensorplug_webgpu import adapters, faults, plugin, trial

NAMES = (
    ("llvmpipe (LLVM 15.0.6, 256 bits)", "Vulkan", "CPU"),
    ("AMD Radeon RX 7600", "Vulkan", "DiscreteGPU"),
    ("Intel(R) Iris(R) Xe Graphics", "Vulkan", "IntegratedGPU"),
    ("SwiftShader Device (Subzero)", "Vulkan", "CPU"),
    ("NVIDIA GeForce", "OpenGL", "DiscreteGPU"),
)


@pytest.fixture(autouse=True, scope="module")
def engine():
    """Take the place of the fixture that opens an adapter."""


@pytest.fixture
def pretended(monkeypatch):
    """Return adapters that only have names."""
    found = [
        SimpleNamespace(
            info={
                "device": name,
                "description": "Acme 1.0",
                "backend_type": api,
                "adapter_type": kind,
            },
            features={adapters.HALF} if "AMD" in name else set(),
        )
        for name, api, kind in NAMES
    ]
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", lambda: list(found))
    return found


def guard(monkeypatch, seconds="0.05", poller=None):
    monkeypatch.setenv(faults.TIMEOUT, seconds)
    device = SimpleNamespace(_poller=poller or threading.current_thread())
    return faults.Guard(device, "Acme One (Vulkan)")


def promise(*, kept, error=None):
    event = threading.Event()
    if kept:
        event.set()

    def sync_wait():
        if error:
            raise error

    return SimpleNamespace(_thread_event=event, sync_wait=sync_wait)


def test_a_wait_that_is_not_kept_says_what_waited_and_is_the_last(monkeypatch):
    watched = guard(monkeypatch)
    with pytest.raises(tp.errors.DeviceLostError) as caught, watched.using("a test"):
        watched.wait(promise(kept=False), "a download of float32[3]")
    for text in ("Acme One", "did not end a download of float32[3]", "0.05", faults.TIMEOUT):
        assert text in str(caught.value)
    asked = []
    with (
        pytest.raises(tp.errors.DeviceLostError, match="found during an upload"),
        watched.using("an upload"),
    ):
        asked.append("a lost device")
    assert not asked


def test_a_wait_that_is_kept_returns(monkeypatch):
    watched = guard(monkeypatch)
    with watched.using("a test"):
        watched.wait(promise(kept=True), "a test")
    assert not watched.lost


def test_a_wait_that_fails_is_a_loss(monkeypatch):
    watched = guard(monkeypatch)
    with pytest.raises(tp.errors.DeviceLostError, match="Could not map"):
        watched.wait(promise(kept=True, error=RuntimeError("Could not map")), "a test")
    assert watched.lost


def test_nobody_waits_for_a_thread_that_has_ended(monkeypatch):
    ended = threading.Thread(target=int)
    ended.start()
    ended.join()
    watched = guard(monkeypatch, "1000", ended)
    monkeypatch.setattr(faults, "_GLANCE", 0.01)
    with pytest.raises(tp.errors.DeviceLostError, match="the thread that waits for it has ended"):
        watched.wait(promise(kept=False), "a test")


def test_compiling_has_a_limit_and_says_what_was_compiled(monkeypatch):
    watched, ends = guard(monkeypatch), threading.Event()
    with pytest.raises(tp.errors.DeviceLostError) as caught:
        watched.compile("softmax", ends.wait)
    ends.set()
    for text in ("Acme One", "did not end compiling 'softmax'", "0.05", faults.TIMEOUT):
        assert text in str(caught.value)
    assert guard(monkeypatch, "100").compile("softmax", lambda: 3) == 3


def test_the_next_use_waits_for_what_an_interrupt_has_left(monkeypatch):
    watched = guard(monkeypatch)
    late = promise(kept=False)
    late._thread_event.wait = lambda _seconds: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        watched.wait(late, "a test")
    late._thread_event = threading.Event()
    watched._pending = late._thread_event
    asked = []
    with (
        pytest.raises(tp.errors.DeviceTimeoutError, match="did not end an upload"),
        watched.using("an upload"),
    ):
        asked.append("a busy device")
    assert not asked


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_limit_that_is_none_is_refused(text, monkeypatch):
    with pytest.raises(tp.errors.SettingsError, match=faults.TIMEOUT):
        guard(monkeypatch, text)


def test_messages_of_webgpu_are_errors_and_others_stay_in_the_log(monkeypatch, caplog):
    watched = guard(monkeypatch)
    log = logging.getLogger("wgpu")

    def complain():
        log.error("invalid binding")
        log.warning("a warning")

    def report(message):
        thread = threading.Thread(target=log.error, args=(message,))
        thread.start()
        thread.join()

    with pytest.raises(faults.UsageError, match="invalid binding"), watched.using("a launch"):
        complain()
    assert [record.message for record in caplog.records] == ["a warning"]
    report("of another thread")
    assert caplog.records[-1].message == "of another thread"
    with watched.using("a launch"):
        pass


def test_a_loss_in_the_log_is_a_loss(monkeypatch, caplog):
    watched = guard(monkeypatch)
    messages = "DEVICE LOST!", "The WGPU device was lost (Unknown):\ndriver reset"
    with (
        pytest.raises(tp.errors.DeviceLostError, match=r"\(Unknown\): driver reset"),
        watched.using("a launch"),
    ):
        list(map(logging.getLogger("wgpu").error, messages))
    assert not caplog.records


CHOICES = {
    None: "AMD",
    "0": "AMD",
    "1": "Intel",
    "radeon": "AMD",
    "XE GRAPHICS": "Intel",
    "llvmpipe": "llvmpipe",
    "swiftshader": "SwiftShader",
    "3": "SwiftShader",
}


@pytest.mark.parametrize(("asked", "begins"), CHOICES.items())
@pytest.mark.usefixtures("pretended")
def test_adapters_are_chosen_by_number_or_name(asked, begins):
    assert adapters.name_of(adapters.choose(asked)).startswith(begins)


@pytest.mark.parametrize("asked", ["4", "geforce"])
@pytest.mark.usefixtures("pretended")
def test_what_is_not_there_is_refused_with_those_found(asked):
    with pytest.raises(tp.errors.BackendUnavailableError, match=r"0 is AMD.*3 is SwiftShader"):
        adapters.choose(asked)


@pytest.mark.usefixtures("pretended")
def test_adapters_are_listed_the_best_first():
    infos = adapters.list_infos()
    assert [info.hardware.split()[0] for info in infos] == [
        "AMD",
        "Intel(R)",
        "llvmpipe",
        "SwiftShader",
    ]
    assert tp.float16 in infos[0].dtypes
    assert tp.float16 not in infos[1].dtypes


@pytest.mark.usefixtures("pretended")
def test_diagnostics_name_versions():
    found = plugin.tensorplug_diagnostics()
    assert found["wgpu"] == version("wgpu")
    assert found["AMD Radeon RX 7600 (Vulkan)"] == "Acme 1.0"


def test_without_adapters_the_error_says_what_to_install(pretended):
    pretended.clear()
    assert "mesa-vulkan-drivers" in plugin.tensorplug_diagnostics()["adapters"]
    with pytest.raises(tp.errors.BackendUnavailableError, match="mesa-vulkan-drivers"):
        adapters.find()


def test_nothing_of_the_environment_changes(monkeypatch):
    for name in adapters._ASKED:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with adapters._without_screen():
        assert os.environ[adapters._QUIET] == "1"
    assert dict(os.environ) == before
    monkeypatch.setenv("DRI_PRIME", "1")
    with adapters._without_screen():
        assert adapters._QUIET not in os.environ


BEGIN = "import os, signal, time; print('@@ floats', flush=True); "


def says(wrong, exchanged):
    return f"print('@@ done', {json.dumps(json.dumps({'wrong': wrong, 'exchanged': exchanged}))})"


ENDS = {  # what the process of a trial does; what opening says, if anything; whether it is kept
    "sound": (says("", 8), "", True),
    "computes nonsense": (says("floats: number 3 is 1", 0), "floats: number 3 is 1", True),
    "says nothing more": ("pass", "could not be made.*exit status 0", False),
    "crashes": ("os.abort()", "died of SIGABRT during floats", True),
    "hangs": ("time.sleep(60)", "did not end within 2 seconds", True),
    "is killed": ("os.kill(os.getpid(), signal.SIGKILL)", "could not be made.*SIGKILL", False),
    "finds nothing": ("raise SystemExit('no such adapter')", "be made.*no such adapter", False),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_driver_is_tried_in_another_process_once(end, pretended, monkeypatch, tmp_path):
    code, message, kept = ENDS[end]
    monkeypatch.setenv(trial.CACHE, str(tmp_path))
    monkeypatch.delenv(trial.TRIAL, raising=False)
    monkeypatch.setattr(trial, "_CODE", BEGIN + code)
    if end == "hangs":
        monkeypatch.setattr(trial, "SECONDS", 2)
    expected = (
        pytest.raises(tp.errors.BackendUnavailableError, match=message)
        if message
        else nullcontext()
    )
    for _ in range(2):  # the second time from the disk
        monkeypatch.setattr(trial, "_known", {})
        with expected:
            assert trial.check(pretended[0]) == 8
        if kept:
            monkeypatch.setattr(trial, "_CODE", "raise SystemExit('it was tried again')")
    assert len([*tmp_path.glob("*.verdict.json")]) == kept
    monkeypatch.setattr(trial, "_known", {})
    monkeypatch.setenv(trial.TRIAL, "0")
    assert trial.check(pretended[0]) == 0
    monkeypatch.setenv(trial.TRIAL, "again")
    monkeypatch.setattr(trial, "_CODE", BEGIN + says("", 4))
    assert trial.check(pretended[0]) == 4


@pytest.mark.parametrize("which", range(len(trial._FILES)))
def test_a_verdict_is_that_of_what_was_executed(which, pretended, monkeypatch, tmp_path):
    monkeypatch.setenv(trial.CACHE, str(tmp_path))
    monkeypatch.delenv(trial.TRIAL, raising=False)
    monkeypatch.setattr(trial, "_known", {})
    files = [tmp_path / str(at) for at in range(len(trial._FILES))]
    for file in files:
        file.touch()
    monkeypatch.setattr(trial, "_FILES", files)
    for exchanged in (4, 8):
        monkeypatch.setattr(trial, "_CODE", BEGIN + says("", exchanged))
        assert trial.check(pretended[0]) == exchanged
        files[which].write_text("changed", "utf-8")


def test_the_variable_of_the_trial_is_read(pretended, monkeypatch):
    monkeypatch.setenv(trial.TRIAL, "often")
    with pytest.raises(tp.errors.SettingsError, match="'often'"):
        trial.check(pretended[0])
