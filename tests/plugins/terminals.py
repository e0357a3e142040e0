"""Runs the command ``tensorplug`` with pipes, and on a terminal of a given width."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from .conftest import clean_environment

if TYPE_CHECKING:
    from .conftest import Site

NO_RICH = "raise ModuleNotFoundError('this test does without rich')"
MODULE = (sys.executable, "-m", "tensorplug")


def environment(site: Site, **more: str) -> dict[str, str]:
    """Return an environment that finds the plugins of a site, and no driver of OpenCL."""
    result = {**clean_environment(), "TENSORPLUG_DISABLE_PLUGINS": "opencl", **more}
    path = [str(site.path), *filter(None, [result.get("PYTHONPATH")])]
    return {**result, "PYTHONPATH": os.pathsep.join(path)}


def command(
    site: Site, *arguments: str, program: tuple[str, ...] = MODULE, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command whose output goes to pipes."""
    return subprocess.run(
        [*program, *arguments],
        env=environment(site, **more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def answer(site: Site, *arguments: str) -> tuple[int, Any]:
    """Return the exit code of a command and what it prints as JSON."""
    ended = command(site, *arguments, "--json")
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def on_terminal(site: Site, *arguments: str, columns: int, **more: str) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and all that the terminal received."""
    import fcntl  # not on Windows
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {"TERM": "xterm", **more}
    inherited = environment(site, **variables)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        if name not in variables:
            inherited.pop(name, None)
    with subprocess.Popen(
        [*MODULE, *arguments], env=inherited, stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        received = b""
        try:
            while part := os.read(ours, 1 << 16):
                received += part
        except OSError:  # Linux says so that the other side is closed
            pass
        finally:
            os.close(ours)
        code = running.wait(300)
    return code, received.decode().replace("\r\n", "\n")
