"""A library in a wheel for all platforms is told of."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.conformance.tests.installing import install

from tensorplug_conformance import cli
from tensorplug_conformance.running.wheels import misplaced_libraries

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("tag", "files", "told"),
    [
        ("py3-none-any", ["chip/libchip.so", "chip/libchip.so.1.2", "chip/a.py"], 2),
        ("py3-none-any", ["chip/chip.dll"], 1),
        ("py3-none-any", ["chip/a.py", "chip/notes.so.txt"], 0),
        ("py3-none-linux_x86_64", ["chip/libchip.so"], 0),
    ],
)
def test_libraries_in_a_pure_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: str, files: list[str], told: int
) -> None:
    install(tmp_path, "", name="chip")
    info = tmp_path / "tensorplug_chip-1.0.dist-info"
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert misplaced_libraries("tensorplug-chip") == files[:told]
    printed = io.StringIO()
    cli._warn_of_wheel("tensorplug-chip", Console(file=printed, width=200))
    assert ("tag it with its platform" in printed.getvalue()) == bool(told)


def test_what_is_not_installed_holds_nothing() -> None:
    assert misplaced_libraries("tensorplug-nowhere") == []
