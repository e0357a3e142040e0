"""``python -m tensorplug``: listing without imports, explaining, and finding what is wrong."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.command_line import doctor, listings
from tensorplug.command_line.commands import main

from .conftest import GOOD, GOOD_SOURCE, Site, backend, extension
from .terminals import answer

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER = "raise RuntimeError('imported')"  # listing must not do this


def test_listing_imports_no_plugin(site: Site) -> None:
    site.install(GOOD, backend("never", NEVER))
    code, lines = answer(site, "backends")
    states = {line["name"]: line["state"] for line in lines if line["kind"] == "backend"}
    assert code == 0
    # The environment may hold more backends, installed for other tests.
    assert {
        "cpu": "available",
        "good": "available",
        "minimal": "available",
        "never": "available",
        "opencl": "disabled",
    }.items() <= states.items()
    extensions = {line["name"] for line in lines if line["kind"] == "extension"}
    assert {"attention", "example_swish"} <= extensions


@pytest.mark.usefixtures("core_from_an_index")
def test_nothing_installed(site: Site, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(listings, "installed", list)
    assert main(["backends"]) == 0
    assert capsys.readouterr().out == "nothing is installed. Try: pip install tensorplug-cpu\n"


CRASHES = """
import ctypes

@hookimpl
def tensorplug_create_backend(device):
    ctypes.string_at(0)
"""
LIES = """
class Wrong(Numpy):
    def to_host(self, buffer):
        return buffer + 1

@hookimpl
def tensorplug_create_backend(device):
    return Wrong("wrong")
"""
ABSENT = """
from tensorplug.plugin import BackendUnavailableError

@hookimpl
def tensorplug_create_backend(device):
    raise BackendUnavailableError("no such card in this machine")
"""
HANGS = """
import time

@hookimpl
def tensorplug_create_backend(device):
    time.sleep(600)
"""

# What follows the working backend, what the doctor finds of it, and what it advises.
BROKEN: dict[str, tuple[str, str, str]] = {
    "segfault": (CRASHES, "it died of SIGSEGV", "report it"),
    "wrong": (LIES, "wrong numbers, off by", "tensorplug-conformance run --backend wrong"),
    "absent": (ABSENT, "no such card in this machine", "hardware or driver"),
    "hanging": (HANGS, "it did not end within 20 s", "hanging driver"),
}


def full_backend(name: str, more: str) -> Any:
    """Return a backend with the kernels that the doctor's computation needs."""
    tables = "from tensorplug_cpu import plugin\n    return plugin.TABLES"
    return backend(name, GOOD_SOURCE.replace("return [kernels]", tables) + more)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_doctor_on_broken_backends(site: Site, name: str) -> None:
    more, finding, advice = BROKEN[name]
    site.install(full_backend(name, more))
    code, lines = answer(site, "doctor", name, "--timeout", "20")
    assert code == 1
    failed = [line for line in lines if line["state"] == "failed"]
    assert len(failed) == 1, lines
    assert finding in failed[0]["finding"]
    assert advice in failed[0]["advice"]


REFUSES = """
from tensorplug.plugin import DeviceInfo

@hookimpl
def tensorplug_create_backend(device):
    assert device is None, "a device that is refused was opened"
    return Numpy("picky")

@hookimpl
def tensorplug_devices():
    sound, unsound = DeviceInfo("Good card"), DeviceInfo("Bad card", refused="2 + 2 is 5 there")
    return {devices}
"""


@pytest.mark.parametrize(
    ("devices", "expected", "code"),
    [
        ("[sound, unsound]", {"picky": "ok", "picky:1": "refused"}, 0),
        ("[unsound]", {"picky": "failed"}, 1),
    ],
)
def test_the_doctor_shows_devices_that_are_refused(
    site: Site, devices: str, expected: dict[str, str], code: int
) -> None:
    site.install(full_backend("picky", REFUSES.replace("{devices}", devices)))
    ended, lines = answer(site, "doctor", "picky")
    assert {line["device"]: line["state"] for line in lines} == expected
    assert ended == code
    assert [line["finding"] for line in lines][-1] == "Bad card: 2 + 2 is 5 there"


# How an extension ends the process that imports it, and what the doctor says of that.
ENDS = {
    "exit": ("import os; os._exit(7)", "it ended with exit status 7"),
    "crash": ("import ctypes; ctypes.string_at(0)", "it died of SIGSEGV"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_doctor_blames_the_extension_that_ends_the_process(site: Site, how: str) -> None:
    source, finding = ENDS[how]
    site.install(extension("acme_ops", source))
    code, lines = answer(site, "doctor", "cpu")
    assert code == 1
    blamed, sound = lines
    assert (blamed["backend"], blamed["state"]) == ("", "failed")
    assert blamed["finding"].startswith(f"extension 'acme_ops' of acme-ops 4.5.6: {finding}")
    assert blamed["advice"].endswith("to skip it: TENSORPLUG_DISABLE_PLUGINS=acme-ops:acme_ops")
    assert (sound["backend"], sound["device"], sound["state"]) == ("cpu", "cpu", "ok")


HANGING = "import time\n\ntime.sleep(600)\n"
HANGING_HOOK = """
import time

from tensorplug.plugin import hookimpl

@hookimpl
def tensorplug_kernels():
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        (HANGING, r"while it was imported, in \".*acme_slow.py\", line 3"),
        (HANGING_HOOK, r"in tensorplug_kernels, in \".*acme_slow.py\", line 8"),
    ],
)
def test_the_doctor_names_the_extension_that_hangs(site: Site, source: str, finding: str) -> None:
    site.install(extension("acme_slow", source), extension("acme_ops", ""))
    code, lines = answer(site, "doctor", "cpu", "--timeout", "30")
    assert code == 1
    blamed, sound = lines
    pattern = rf"extension 'acme_slow' of acme-slow 4.5.6: it did not end within 15 s {finding}"
    assert re.fullmatch(pattern, blamed["finding"]), blamed
    assert blamed["advice"].endswith("to skip it: TENSORPLUG_DISABLE_PLUGINS=acme-slow:acme_slow")
    assert (sound["backend"], sound["device"], sound["state"]) == ("cpu", "cpu", "ok")


def test_extensions_that_end_the_process_together(site: Site) -> None:
    """Each alone is sound: the doctor blames neither them nor the backend."""
    ends = "import os, sys; 'acme_one' in sys.modules and os._exit(7)"
    site.install(extension("acme_one", ""), extension("acme_two", ends))
    code, (line,) = answer(site, "doctor", "cpu")
    assert code == 1
    assert line["finding"] == "while the extensions were loaded: it ended with exit status 7"
    assert line["advice"].endswith("TENSORPLUG_PLUGINS=tensorplug-cpu:cpu")


PRINTS = """
import os

@hookimpl
def tensorplug_create_backend(device):
    os.write(1, b"{\\xff\\n")
    print("{")
    return Numpy("noisy")
"""


def test_what_a_driver_prints_is_no_answer(site: Site) -> None:
    site.install(full_backend("noisy", PRINTS))
    code, (line,) = answer(site, "doctor", "noisy")
    assert (code, line["state"]) == (0, "ok"), line


def test_the_doctor_finds_nothing_wrong_with_the_cpu(site: Site) -> None:
    site.install()
    code, lines = answer(site, "doctor", "cpu")
    assert code == 0
    (line,) = lines
    assert (line["backend"], line["device"], line["state"]) == ("cpu", "cpu", "ok")
    assert "a step of gradient descent" in line["finding"]


@pytest.mark.parametrize(
    ("source", "finding", "advice"),
    [
        ("import not_there", "PluginLoadError", "--force-reinstall tensorplug-odd"),
        (
            f"print('hello')\n{GOOD_SOURCE.replace('good', 'odd')}",
            "DTypeError",
            "conformance run --backend odd",
        ),
    ],
)
def test_advice_of_the_doctor(site: Site, source: str, finding: str, advice: str) -> None:
    site.install(backend("odd", source))
    code, lines = answer(site, "doctor", "odd")
    assert code == 1
    (failed,) = [line for line in lines if line["state"] == "failed"]
    assert finding in failed["finding"]
    assert advice in failed["advice"]


def test_incompatible_backend_is_not_tried(site: Site) -> None:
    site.install(backend("old", NEVER, requires=("tensorplug<0.1",)))
    code, lines = answer(site, "doctor", "old")
    assert code == 1
    assert lines[0]["finding"].startswith("incompatible")
    assert "pip install --upgrade tensorplug tensorplug-old" in lines[0]["advice"]


def test_no_such_backend(site: Site) -> None:
    site.install()
    code, lines = answer(site, "doctor", "nowhere")
    assert code == 1
    assert lines[0]["finding"] == "backend 'nowhere' is not installed"
    assert "pip" not in lines[0]["advice"]
    assert "the entry-point group 'tensorplug.backends'" in lines[0]["advice"]
    assert "minimal" in lines[0]["advice"].rpartition("Installed: ")[2].split(", ")
    _, lines = answer(site, "doctor", "CPU")
    assert lines[0]["advice"].startswith("Did you mean 'cpu'?")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (None, "Try: pip install tensorplug-cpu"),
        ("opencl", 'Try: pip install "tensorplug-opencl[cpu]".'),
    ],
)
@pytest.mark.usefixtures("core_from_an_index")
def test_nothing_to_examine(
    name: str | None, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "installed", list)
    (line,) = doctor.examine(name, 1.0)
    assert line["state"] == "failed"
    assert line["advice"].startswith(advice)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        return code, capsys.readouterr().out

    return call


def test_kernels(run: Callable[..., tuple[int, str]]) -> None:
    code, text = run("kernels", "soft*", "--backend", "minimal", "--json")
    lines = json.loads(text)
    assert code == 0
    assert [line["kernel"] for line in lines] == sorted(line["kernel"] for line in lines)
    assert {line["kernel"]: line["how"] for line in lines}["Softplus"] == "decomposed"
    code, text = run("kernels", "add", "--backend", "minimal", "--dtype", "complex64", "--json")
    assert json.loads(text)[0]["how"] is None


def test_explaining_a_call(run: Callable[..., tuple[int, str]]) -> None:
    code, text = run("explain", "Sum", "float32[2, 3]", "--set", "axis=[-1]", "--backend", "cpu")
    assert (code, text.splitlines()[0]) == (0, "Sum(x=float32[2,3]) on backend 'cpu': native")
    code, text = run("explain", "Concat", "int8[2]+int8[3]", "--backend", "cpu", "--json")
    assert json.loads(text)["how"] == "native"
    code, text = run("explain", "LayerNorm", "float32[4]", "-", "-", "--backend", "minimal")
    assert text.splitlines()[0].endswith("on backend 'minimal': decomposed")


def test_explaining_a_function(run: Callable[..., tuple[int, str]]) -> None:
    code, text = run("explain", "matmul", "float32[2,3]", "float32[3,4]", "--backend", "cpu")
    assert code == 0
    assert text.splitlines() == [
        "matmul(float32[2,3], float32[3,4]) on backend 'cpu': calls",
        "    BatchMatMul(a=float32[2,3], b=float32[3,4]): native",
    ]
    code, text = run("explain", "tp.nn.conv2d", "--backend", "minimal")
    assert code == 0
    assert (
        "    Conv2D(x=float32[1,3,3,1], filter=float32[2,2,1,1]): decomposed" in text.splitlines()
    )
    code, text = run(
        "explain", "sum", "int8[3]", "--set", "dtype=int64", "--backend", "cpu", "--json"
    )
    assert [call["kernel"] for call in json.loads(text)["inner"]] == ["Cast", "Sum"]
    code, text = run("explain", "add", "complex64[2]", "complex64[2]", "--backend", "minimal")
    assert code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernels", "Sum?m"), "no kernel matches 'Sum?m'; did you mean Sum?"),
        (("explain", "Sum", "floaty[2]"), "dtype"),
        (("explain", "Sum", "[2]"), "is not a tensor type"),
        (
            ("explain", "Sum", "float32[2]", "--set", "axis"),
            "is not an attribute, such as axis=-1",
        ),
        (("explain", "Sum", "--set", "axis=0"), "pass the types of its inputs too"),
        (("explain", "Summe"), "no kernel and no function of tensors is called 'Summe'"),
        (
            ("explain", "Reshape", "float32[2]"),
            "Reshape: attributes are missing: --set shape=VALUE",
        ),
        (("explain", "reshape", "float32[2]"), "missing a required argument: 'shape'"),
        (("explain", "reshape", "float32[2]"), "--set NAME=VALUE"),
        (("explain", "add", "[2]"), "is not a tensor type"),
    ],
)
def test_wrong_calls(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--backend", "cpu"]) == 2
    assert message in capsys.readouterr().err
