from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pyopencl as cl
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.backend import DeviceInfo
from tensorplug.errors import BackendUnavailableError
from tensorplug_opencl import device, plugin
from tensorplug_opencl.machine import features, loader
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.settings import TRIAL
from tensorplug_opencl.trial import parent
from tensorplug_opencl.trial.verdict import UNTRIED, Verdict

GPU, CPU, ACCELERATOR, CUSTOM = (
    cl.device_type.GPU,
    cl.device_type.CPU,
    cl.device_type.ACCELERATOR,
    cl.device_type.CUSTOM,
)


def fake(name, kind, platform="Vendor", extensions="", double=0):
    return SimpleNamespace(
        name=name,
        type=kind,
        platform=SimpleNamespace(name=platform, version="OpenCL 3.0"),
        extensions=extensions,
        double_fp_config=double,
        version="OpenCL 3.0",
        driver_version="1.2",
        available=True,
        compiler_available=True,
        global_mem_size=1 << 30,
    )


SLOW, FAST = fake("Old CPU", CPU, "Portable"), fake("Big GPU", GPU)
CARD = fake("Card", ACCELERATOR)
OTHER, ODD = fake("Other GPU", GPU), fake("Odd", CUSTOM)
# What every device has.
ALWAYS = dt.BOOL | dt.INTEGER | dt.STORAGE | {dt.bfloat16, dt.float32, dt.complex64}


SOUND = Verdict("sound")
LIMITED = Verdict("limited", NO_LIMITS._replace(vector_bytes=32), ("vectors of 64 bytes: wrong",))
UNSOUND = Verdict("unsound", findings=("scalars: 2 + 2 is 5",))


@pytest.fixture(autouse=True)
def untried(monkeypatch):
    """Skip the trial, for invented devices."""
    monkeypatch.setattr(parent, "find_verdicts", lambda devices: [UNTRIED] * len(devices))


def installed(monkeypatch, *found):
    """Make these the devices of one platform, in the loader's order."""
    monkeypatch.setattr(loader, "list_platforms", lambda: [platform("any", devices=found)])
    monkeypatch.setattr(parent, "begin", lambda: None)


def judged(monkeypatch, **verdicts):
    """Give devices these verdicts, by the first word of their names."""
    monkeypatch.setattr(
        parent,
        "find_verdicts",
        lambda devices: [verdicts[device.name.split()[0]] for device in devices],
    )


def listed():
    return [actual.device for actual in device.available()]


@pytest.mark.parametrize(
    ("found", "ordered"),
    [
        ([SLOW, CARD, FAST], [FAST, CARD, SLOW]),
        ([SLOW, CARD], [CARD, SLOW]),
        ([FAST, SLOW, OTHER], [FAST, OTHER, SLOW]),
        ([OTHER, FAST], [OTHER, FAST]),
        ([ODD, SLOW], [SLOW, ODD]),
    ],
)
def test_the_best_device_is_number_0(monkeypatch, found, ordered):
    installed(monkeypatch, *found)
    assert listed() == ordered
    assert device.choose(None).device is ordered[0]
    assert device.choose("1").device is ordered[1]


@pytest.mark.parametrize(
    ("verdicts", "ordered"),
    [
        ({"Old": SOUND, "New": SOUND}, ["New", "Old"]),  # the newest OpenCL
        ({"Old": SOUND, "New": LIMITED}, ["Old", "New"]),
        ({"Old": UNTRIED, "New": LIMITED}, ["Old", "New"]),
        ({"Old": LIMITED, "New": UNSOUND}, ["Old", "New"]),
        ({"Old": UNSOUND, "New": SOUND}, ["New", "Old"]),
    ],
)
def test_the_soundest_cpu_comes_first(monkeypatch, verdicts, ordered):
    new = fake("New CPU", CPU)
    new.version = "OpenCL 3.1"
    installed(monkeypatch, SLOW, new)
    judged(monkeypatch, **verdicts)
    assert [device.name.split()[0] for device in listed()] == ordered


def test_an_unsound_device_is_not_opened_and_the_next_one_is(monkeypatch):
    installed(monkeypatch, FAST, SLOW)
    judged(monkeypatch, Big=UNSOUND, Old=LIMITED)
    assert device.choose(None) == (SLOW, LIMITED)
    with pytest.raises(BackendUnavailableError, match=r"Big GPU .* 1\.2,.* 2 \+ 2 is 5") as e:
        device.choose("1")
    assert f"{TRIAL}=again" in str(e.value)
    old, big = plugin.tensorplug_devices()
    assert (old.hardware, old.refused) == ("Old CPU (Portable)", "")
    assert "sound with limits: vectors of at most 32 bytes (vectors of 64" in old.driver
    assert f"{TRIAL}=again" in old.driver
    assert big.driver.endswith("unsound")
    assert "2 + 2 is 5" in big.refused
    assert "2 + 2 is 5" in device.collect_diagnostics()["OpenCL device 1"]


@pytest.mark.parametrize(
    ("machine", "system", "cure"),
    [
        ("x86_64", "linux", r'pip install "tensorplug-opencl\[cpu\]"'),
        ("AMD64", "win32", r'pip install "tensorplug-opencl\[cpu\]"'),
        ("aarch64", "linux", "pocl-opencl-icd"),
        ("x86_64", "darwin", "PoCL"),
    ],
)
def test_where_no_device_is_sound_all_are_named_and_what_helps(monkeypatch, machine, system, cure):
    installed(monkeypatch, FAST, SLOW)
    judged(monkeypatch, Big=UNSOUND, Old=UNSOUND)
    monkeypatch.setattr(device.platform, "machine", lambda: machine)
    monkeypatch.setattr(device.sys, "platform", system)
    with pytest.raises(BackendUnavailableError, match=cure) as caught:
        plugin.tensorplug_create_backend(None)
    assert "Big GPU" in str(caught.value)
    assert "Old CPU" in str(caught.value)


def test_facts_of_a_device_that_is_not_open(monkeypatch):
    installed(monkeypatch, SLOW, FAST)
    assert plugin.tensorplug_devices() == [
        DeviceInfo("Big GPU (Vendor)", "OpenCL 3.0, driver 1.2, not tried", 1 << 30, ALWAYS),
        DeviceInfo("Old CPU (Portable)", "OpenCL 3.0, driver 1.2, not tried", 1 << 30, ALWAYS),
    ]


@pytest.mark.parametrize(
    ("found", "wanted", "message"),
    [
        ([], None, "no OpenCL device was found"),
        ([], "0", "no OpenCL device was found"),
        ([SLOW, FAST], "2", "no OpenCL device 2.*0: Big GPU.*1: Old CPU"),
    ],
)
def test_no_such_device(monkeypatch, found, wanted, message):
    installed(monkeypatch, *found)
    with pytest.raises(BackendUnavailableError, match=message):
        plugin.tensorplug_create_backend(wanted)


def failing(code):
    def get_platforms():
        raise cl.LogicError(cl._cl._ErrorRecord("clGetPlatformIDs", code, ""))

    return get_platforms


def test_without_platforms_there_are_no_devices(monkeypatch):
    monkeypatch.setattr(loader, "list_platforms", failing(device.NO_PLATFORM))
    assert device.available() == []
    assert device.collect_diagnostics()["OpenCL"] == "no device"


def test_a_broken_loader_says_so(monkeypatch):
    monkeypatch.setattr(loader, "list_platforms", failing(cl.status_code.OUT_OF_HOST_MEMORY))
    with pytest.raises(BackendUnavailableError, match=r"loader failed.*OUT_OF_HOST_MEMORY"):
        device.choose(None)
    assert "OUT_OF_HOST_MEMORY" in device.collect_diagnostics()["OpenCL"]


def platform(name, code=None, devices=()):
    def get_devices():
        if code is not None:
            raise cl.RuntimeError(cl._cl._ErrorRecord("clGetDeviceIDs", code, ""))
        return list(devices)

    return SimpleNamespace(name=name, get_devices=get_devices)


def test_platforms_without_devices_are_passed_over(monkeypatch):
    empty = platform("empty", cl.status_code.DEVICE_NOT_FOUND)
    monkeypatch.setattr(
        loader, "list_platforms", lambda: [empty, platform("full", devices=[FAST])]
    )
    assert listed() == [FAST]


def test_a_platform_that_fails_is_named(monkeypatch):
    broken = platform("broken", cl.status_code.OUT_OF_RESOURCES)
    monkeypatch.setattr(loader, "list_platforms", lambda: [broken])
    with pytest.raises(BackendUnavailableError, match="'broken' cannot list"):
        device.available()
    assert "'broken' cannot list" in device.collect_diagnostics()["OpenCL"]


def test_a_platform_that_fails_does_not_hide_the_others(monkeypatch):
    broken = platform("broken", cl.status_code.OUT_OF_RESOURCES)
    full = platform("full", devices=[FAST])
    monkeypatch.setattr(loader, "list_platforms", lambda: [broken, full])
    assert listed() == [FAST]
    assert device.choose(None).device is FAST
    actual = device.collect_diagnostics()
    assert "'broken' cannot list" in actual["OpenCL"]
    assert "OpenCL device 0" in actual


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"version": "OpenCL 1.1 old"}, r"'OpenCL 1.1 old', and OpenCL 1\.2 is needed"),
        ({"version": "Ancient"}, r"'Ancient', and OpenCL 1\.2 is needed"),
        ({"compiler_available": False}, "no compiler"),
        ({"available": False}, "not available"),
    ],
)
def test_a_driver_that_cannot_be_used(monkeypatch, wrong, message):
    poor = fake("Poor GPU", GPU)
    vars(poor).update(wrong)
    installed(monkeypatch, poor, SLOW)
    assert device.choose(None).device is SLOW
    with pytest.raises(BackendUnavailableError, match=message) as caught:
        plugin.tensorplug_create_backend("1")
    assert "Poor GPU (Vendor), driver 1.2" in str(caught.value)


@pytest.mark.parametrize(
    ("extensions", "double", "optional"),
    [
        ("", 0, set()),
        ("cl_khr_fp64 cl_khr_fp16", 63, {dt.float64, dt.complex128, dt.float16}),
        ("cl_khr_fp64", 0, set()),
        ("cl_khr_fp16", 0, {dt.float16}),
    ],
)
def test_dtypes(extensions, double, optional):
    has = features.dtypes_of(fake("any", GPU, extensions=extensions, double=double))
    assert has == ALWAYS | optional


@pytest.mark.parametrize(
    ("extensions", "single", "half", "flushed"),
    [
        ("", 63, 0, {dt.float16}),  # which the device does not have
        ("cl_khr_fp16", 63, 63, set()),
        ("cl_khr_fp16", 63, 62, {dt.float16}),
        ("cl_khr_fp16", 62, 63, {dt.bfloat16, dt.float32}),
    ],
)
def test_subnormal_numbers_are_kept_where_the_device_says_so(extensions, single, half, flushed):
    assert cl.device_fp_config.DENORM == 1
    operand = fake("any", GPU, extensions=extensions)
    vars(operand).update(single_fp_config=single, half_fp_config=half)
    assert features.flushed_by(operand) == flushed


def test_diagnostics(monkeypatch):
    installed(monkeypatch, SLOW)
    assert device.collect_diagnostics() == {
        "pyopencl": cl.VERSION_TEXT,
        "OpenCL platform Portable": "OpenCL 3.0",
        "OpenCL device 0": "Old CPU, OpenCL 3.0, driver 1.2, not tried",
    }


def test_importing_the_plugin_loads_no_driver():
    code = "import sys, tensorplug_opencl.plugin; sys.exit('pyopencl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_pyopencl_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorplug_opencl.backend", None)
    monkeypatch.setitem(sys.modules, "tensorplug_opencl.device", None)
    with pytest.raises(BackendUnavailableError, match="pyopencl does not load"):
        plugin.tensorplug_create_backend(None)
    assert "does not load" in plugin.tensorplug_diagnostics()["pyopencl"]


def test_kernels_are_for_this_backend_only():
    assert list(plugin.tensorplug_kernels(SimpleNamespace(name="cpu"))) == []
    tables = plugin.tensorplug_kernels(SimpleNamespace(name="opencl"))
    assert sum(len(table) for table in tables) >= 64
