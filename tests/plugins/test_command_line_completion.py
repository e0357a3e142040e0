"""Completion in shells: each reads the script and is asked what it would offer."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tensorplug.command_line import completion, listings
from tensorplug.command_line.commands import main
from tensorplug.command_line.parser import SHELLS

from .conftest import GOOD, Site
from .terminals import environment

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = shutil.which("tensorplug", path=Path(sys.executable).parent)
pytest.importorskip("argcomplete")
pytestmark = pytest.mark.skipif(SCRIPT is None, reason="the core is not installed")

COMMANDS = {"backends", "devices", "kernels", "explain", "doctor", "new", "completion"}
HOW = {"native", "widened", "decomposed", "host", "fallback", "not-possible"}
# What stands before the cursor, and what completes it: all of these words, or at least them.
OFFERS: dict[str, tuple[set[str], bool]] = {
    "tensorplug ": (COMMANDS, False),
    "tensorplug ker": ({"kernels"}, True),
    "tensorplug --json d": ({"devices", "doctor"}, True),
    "tensorplug doctor go": ({"good"}, True),
    "tensorplug devices ": ({"cpu", "good", "minimal"}, False),
    "tensorplug kernels --backend go": ({"good"}, True),
    "tensorplug kernels --how ": (HOW, True),
    "tensorplug kernels --dtype bfl": ({"bfloat16"}, True),
    "tensorplug kernels Add Softma": ({"Softmax", "SoftmaxGrad"}, False),
    "tensorplug kernels --backend good Softma": ({"Softmax"}, False),
    "tensorplug kernels --ba": ({"--backend"}, True),
    "tensorplug explain SquaredD": ({"SquaredDifference"}, True),
    "tensorplug completion ": (set(SHELLS), False),
    "tensorplug doctor --t": ({"--timeout"}, True),
    "tensorplug explain nn.softm": ({"nn.softmax"}, True),
    "tensorplug explain Add --set ": (set(), True),
}


def shell(name: str) -> str:
    result = shutil.which(name)
    if result is None:
        pytest.skip(f"{name} is not installed")
    return result


def variables(site: Site) -> dict[str, str]:
    assert SCRIPT is not None
    inherited = environment(site)
    path = os.pathsep.join([str(Path(SCRIPT).parent), inherited["PATH"]])
    return {**inherited, "PATH": path}


def run(command: list[str], site: Site) -> str:
    ended = subprocess.run(
        command,
        env=variables(site),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def in_bash(site: Site, line: str) -> list[str]:
    """Return what the function that bash calls replies."""
    script = f"""
        source <(tensorplug completion bash)
        COMP_LINE={shlex.quote(line)} COMP_POINT=${{#COMP_LINE}} COMP_TYPE=9
        _python_argcomplete tensorplug
        ((${{#COMPREPLY[@]}})) && printf '%s\\n' "${{COMPREPLY[@]}}"
        true
    """
    replies = run([shell("bash"), "--norc", "-c", script], site).splitlines()
    return [word.rstrip() for word in replies]


def in_fish(site: Site, line: str) -> list[str]:
    script = f"tensorplug completion fish | source; complete -C {shlex.quote(line)}"
    lines = run([shell("fish"), "--no-config", "-c", script], site).splitlines()
    return [line.partition("\t")[0] for line in lines]


ASKED: dict[str, Callable[[Site, str], list[str]]] = {"bash": in_bash, "fish": in_fish}


@pytest.mark.parametrize("line", OFFERS)
@pytest.mark.parametrize("name", ASKED)
def test_what_a_shell_offers(site: Site, name: str, line: str) -> None:
    site.install(GOOD)
    words, all_of_them = OFFERS[line]
    offered = ASKED[name](site, line)
    assert len(offered) == len(set(offered))
    assert words <= set(offered)
    if all_of_them:
        assert words == set(offered)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminals")
@pytest.mark.parametrize(
    ("name", "arguments", "begin"),
    [
        ("bash", ["--norc", "--noprofile", "-i"], "source <(tensorplug completion bash)"),
        (
            "zsh",
            ["-f", "-i"],
            "autoload -Uz compinit; compinit -u -D; source <(tensorplug completion zsh)",
        ),
    ],
)
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("tensorplug kernels --dty\tbfl\t", "bfloat16 "),
        *(
            pytest.param(typed, completed, marks=pytest.mark.slow)
            for typed, completed in (
                ("tensorplug doct\t", "tensorplug doctor "),
                ("tensorplug kernels --backend go\t", "tensorplug kernels --backend good "),
                ("tensorplug kernels --backend=go\t", "tensorplug kernels --backend=good "),
                ("tensorplug explain SquaredD\t", "tensorplug explain SquaredDifference "),
            )
        ),
    ],
)
def test_a_person_at_a_terminal(
    site: Site, name: str, arguments: list[str], begin: str, typed: str, completed: str
) -> None:
    """The shell shows the completed line."""
    import pty

    site.install(GOOD)
    ours, theirs = pty.openpty()
    inherited = {**variables(site), "TERM": "dumb", "PS1": "> ", "HOME": str(site.path)}
    seen = b""

    def wait_for(text: str) -> None:
        nonlocal seen
        until = time.monotonic() + 30
        while text.encode() not in seen:
            ready, _, _ = select.select([ours], [], [], max(until - time.monotonic(), 0))
            assert ready, seen
            seen += os.read(ours, 1 << 16)

    with subprocess.Popen(
        [shell(name), *arguments],
        env=inherited,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as started:
        os.close(theirs)
        try:
            os.write(ours, f"PS1='> '; {begin}; echo rea''dy\n".encode())
            wait_for("ready\r\n")
            for part in typed.split("\t")[:-1]:
                os.write(ours, f"{part}\t".encode())
                time.sleep(3)
            wait_for(completed)
        finally:
            started.kill()
            os.close(ours)


@pytest.mark.parametrize("name", SHELLS)
def test_scripts_have_no_faults(name: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(completion.script(name), "utf-8")
    subprocess.run([shell(name), "-n", str(path)], check=True, timeout=60)


def test_completion_names_the_package_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    assert main(["completion", "bash"]) == 1
    assert "tensorplug[cli]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("backends", {"cpu", "minimal"}),
        ("kernels", {"Add", "Swish", "_FusedMatMul"}),
        ("explained", {"Add", "add", "nn.conv2d", "_FusedMatMul"}),
        ("dtypes", {"bool", "float32", "int4", "string"}),
    ],
)
def test_words_of_a_kind_are_sorted(kind: str, some: set[str]) -> None:
    words = listings.words(kind)
    assert some <= set(words)
    assert words == sorted(words)
