"""The command as a process: how it is called, its exit codes, interrupts and closed pipes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tensorplug.command_line import running

from .conftest import GOOD_SOURCE, Site, backend
from .terminals import MODULE, command, environment

SCRIPT = shutil.which("tensorplug", path=Path(sys.executable).parent)
needs_posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no signals of this kind")

BROKEN = backend("odd", "import not_there")
OLD = backend("old", "", requires=("tensorplug<0.1",))
UNAVAILABLE = backend(
    "absent",
    GOOD_SOURCE.replace("good", "absent")
    + """
from tensorplug.plugin import BackendUnavailableError

@hookimpl
def tensorplug_create_backend(device):
    raise BackendUnavailableError("no such card")
""",
)
EXITS = {
    "help": ("--help", 0),
    "help of a command": ("kernels --help", 0),
    "the version": ("--version", 0),
    "a listing": ("backends", 0),
    "kernels that match": ("kernels Add --backend cpu --how native", 0),
    "kernels of which none runs so": ("kernels Add --backend cpu --how host", 1),
    "a call that is possible": ("explain Add float32[2] float32[2] --backend cpu", 0),
    "a call that is not": ("explain Add complex64[2] complex64[2] --backend minimal", 1),
    "a backend that is broken": ("explain Add --backend odd", 1),
    "devices of a broken backend": ("devices odd", 1),
    "devices without hardware": ("devices absent", 1),
    "kernels without hardware": ("kernels Add --backend absent", 1),
    "a sick backend": ("doctor odd", 1),
    "a backend of another version": ("kernels Add --backend old", 1),
    "no command": ("", 2),
    "a misspelt command": ("kernel", 2),
    "a misspelt option": ("kernels --backends cpu", 2),
    "an option that is cut off": ("kernels --back cpu", 2),
    "no such kernel": ("explain Summe --backend cpu", 2),
    "no kernel matches": ("kernels Summe* --backend cpu", 2),
    "no such dtype": ("kernels Add --dtype floaty --backend cpu", 2),
    "no such way": ("kernels --how fast", 2),
    "no such backend": ("kernels --backend nowhere", 2),
    "devices of no such backend": ("devices nowhere", 2),
    "no time": ("doctor cpu --timeout 0", 2),
    "no such shell": ("completion tcsh", 2),
    "no shell": ("completion", 2),
    "a name that is taken": ("new cpu", 2),
}


@pytest.mark.parametrize("name", EXITS)
def test_exit_codes(site: Site, name: str) -> None:
    arguments, expected = EXITS[name]
    site.install(BROKEN, OLD, UNAVAILABLE)
    ended = command(site, *arguments.split())
    assert ended.returncode == expected, ended.stderr
    assert "Traceback" not in ended.stderr
    if expected == 2:
        assert ended.stdout == ""
        assert "error: " in ended.stderr
    if expected == 0:
        assert ended.stderr == ""
        assert ended.stdout


@pytest.mark.skipif(SCRIPT is None, reason="the core is not installed")
def test_the_script_is_the_same_command(site: Site) -> None:
    assert SCRIPT is not None
    for arguments in (["backends", "--json"], ["--version"], ["explain", "Summe"]):
        one, other = command(site, *arguments), command(site, *arguments, program=(SCRIPT,))
        assert (one.returncode, one.stdout) == (other.returncode, other.stdout)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/tensorplug", "tensorplug"),
        (r"tensorplug.exe", "tensorplug"),
        (
            "/site-packages/tensorplug/__main__.py",
            f"{Path(sys.executable).name.removesuffix('.exe')} -m tensorplug",
        ),
    ],
)
def test_the_name_of_the_command(program: str, name: str) -> None:
    assert running.called_as(program) == name


def test_usage_names_the_command_as_it_was_called(site: Site) -> None:
    name = f"{Path(sys.executable).name} -m tensorplug"
    assert command(site, "--help").stdout.startswith(f"usage: {name} [")
    wrong = command(site, "kernels", "--fast")
    assert f"{name} kernels" in wrong.stderr or f"{name}: error" in wrong.stderr
    if SCRIPT is not None:
        assert command(site, "--help", program=(SCRIPT,)).stdout.startswith("usage: tensorplug [")


def test_warnings_are_lines(site: Site) -> None:
    source = GOOD_SOURCE.replace("good", "odd") + "\nimport warnings\nwarnings.warn('old driver')"
    site.install(backend("odd", source))
    ended = command(site, "kernels", "Add", "--backend", "odd")
    assert (ended.returncode, ended.stderr) == (0, "warning: old driver\n")


WAITS = """
import pathlib, time
pathlib.Path(__file__).with_name("waits").touch()
time.sleep(600)
"""


@needs_posix
@pytest.mark.parametrize("arguments", ["devices odd", "doctor odd"])
def test_ctrl_c(site: Site, arguments: str) -> None:
    """All processes in the foreground of a terminal get the signal."""
    site.install(backend("odd", WAITS))
    with subprocess.Popen(
        [*MODULE, *arguments.split()],
        env=environment(site),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores the signal, and so do its children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads
    ) as started:
        until = time.monotonic() + 120
        while not (site.path / "waits").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (130, "", "interrupted\n")


@needs_posix
@pytest.mark.parametrize("arguments", ["backends", "kernels --backend cpu --json", "--help"])
def test_a_pipe_that_is_closed(site: Site, arguments: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [*MODULE, *arguments.split()],
            env=environment(site),
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        os.close(writer)
    codes = (0, 141) if arguments == "--help" else (141,)  # argparse may ignore the error
    assert ended.returncode in codes
    assert ended.stderr == ""


@needs_posix
def test_head_ends_it_quietly(site: Site) -> None:
    line = f"'{sys.executable}' -m tensorplug kernels --backend cpu --json | head -n 1"
    ended = command(site, "-c", line, program=("bash",))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_disk_that_is_full(site: Site) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [*MODULE, "backends"],
            env=environment(site),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: the answer cannot be written: ")
    assert len(ended.stderr.splitlines()) == 1


@needs_posix
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed(site: Site, closed: str) -> None:
    line = f"'{sys.executable}' -m tensorplug kernels Add --backend cpu {closed}"
    ended = command(site, "-c", line, program=("bash",))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("KERNEL" if closed == "2>&-" else "")


def test_text_that_the_terminal_cannot_show(site: Site) -> None:
    source = GOOD_SOURCE.replace("good", "odd").replace('"NumPy"', '"\N{GREEK SMALL LETTER MU}"')
    site.install(backend("odd", source))
    ended = command(site, "devices", "odd", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1].split() == ["odd", "ok", r"\u03bc"]
