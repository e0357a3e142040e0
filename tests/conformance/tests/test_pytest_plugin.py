"""The suite as a plain pytest run, each time in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import tensorplug_conformance
from tensorplug_conformance.denominator import LEVELS
from tensorplug_conformance.pytest_run import ConformanceRun

from .installing import install

if TYPE_CHECKING:
    from collections.abc import Mapping

SUITE = "tensorplug_conformance.pytest_run"
ACME = """
    import os
    import time

    import numpy as np

    from tensorplug.plugin import KernelTable, hookimpl, specs
    from tensorplug.plugin import dtypes as dt
    from tensorplug_cpu.backend import CpuBackend
    from tensorplug_cpu.plugin import TABLES

    wrong = KernelTable()

    class Acme(CpuBackend):
        name = "acme"
        dtypes = frozenset((dt.bool_, dt.int32, dt.float32))

    class Clean(KernelTable):
        def __iter__(self):
            wrong = (specs.ABS, specs.COS, specs.FLOOR, specs.MULTIPLY, specs.NEG)
            return (entry for table in TABLES for entry in table if entry.spec not in wrong)

    @wrong.register(specs.NEG)
    def neg(x):
        if x.dtype == "float32":
            os.abort()
        return np.asarray(-x)

    @wrong.register(specs.ABS)
    def absolute(x):
        return np.asarray(abs(x) + x.dtype.type(x.dtype == "int32"))

    @wrong.register(specs.MULTIPLY)
    def multiply(a, b):
        rare = a.shape[-1:] in ((17,), (31,), (33,))  # which no case has
        return np.asarray(a * 0 if rare else a * b)

    @wrong.register(specs.FLOOR)
    def floor(x):
        while True:
            time.sleep(1)

    @hookimpl
    def tensorplug_create_backend(device):
        return Acme()

    @hookimpl
    def tensorplug_kernels():
        return (Clean(), wrong)
"""
OUTCOMES = {
    "Abs[float32-native]": "passed",
    "Abs[int32-native]": "failed",
    "Abs[int8-native]": "skipped",
    "Cos[float32-native]": "failed",
    "Floor[float32-native]": "failed",
    "Floor[float64-native]": "skipped",
    "Neg[float32-native]": "failed",
    "Neg[int32-native]": "failed",  # a call before is in float32
    "Neg[int64-native]": "skipped",
}
"""Of the backend above; it has no Cos."""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an installed backend that fails in several ways."""
    folder = tmp_path_factory.mktemp("acme")
    install(folder, ACME)
    return folder


def ran(folder: Path, *arguments: str) -> tuple[int, str]:
    """Return exit code and output of a pytest run in ``folder``, with all warnings as errors."""
    command = [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    return done.returncode, done.stdout + done.stderr


def _environment(folder: Path) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    return {**kept, "PYTHONPATH": str(folder), "COLUMNS": "100"}


def outcomes(path: Path) -> dict[str, str]:
    """Return the outcome of each item, from JUnit's XML."""
    by_name = {}
    for case in ET.parse(path).iter("testcase"):
        assert case.get("classname") == f"{SUITE}.level2"
        kind = next((child.tag for child in case if child.tag in ("failure", "skipped")), "passed")
        by_name[str(case.get("name"))] = {"failure": "failed"}.get(kind, kind)
    return by_name


@pytest.mark.slow
@pytest.mark.parametrize("spread", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_wrong_backend_fails_its_items_and_the_run_goes_on(
    acme: Path, spread: list[str], tmp_path: Path
) -> None:
    items = [f"{SUITE}::level2::{name}" for name in OUTCOMES]
    options = ["--tensorplug-backend", "acme", "--tensorplug-item-limit", "8"]
    options += ["--junit-xml", str(tmp_path / "junit.xml"), "-rs", *spread]
    code, text = ran(acme, "--pyargs", *items, *options)
    assert outcomes(tmp_path / "junit.xml") == OUTCOMES, text
    assert code == 1
    for fault in (
        "the process died of signal 6",
        "it hung: it did not end within 8 s",
        "in neg",
        "missing: ",
        "WHICH = ('acme', 'Abs', 'int32', 'native', 'edges')",
        "unsupported dtype",
        "A pytest run is not a certificate",
        f"tensorplug-conformance run --backend acme --level {max(LEVELS)} --report out/",
    ):
        assert fault in text


@pytest.mark.parametrize(("examples", "fails"), [(0, False), (60, True)])
def test_examples_are_tried_beside_the_cases(acme: Path, examples: int, *, fails: bool) -> None:
    options = ["--tensorplug-backend", "acme", "--tensorplug-examples", str(examples)]
    code, text = ran(acme, "--pyargs", f"{SUITE}::level2::Multiply[float32-native]", *options)
    assert code == int(fails), text
    assert f"seed 0, {examples} examples per row" in text
    assert ("WHICH = ('acme', 'Multiply', 'float32', 'native', 'example [" in text) is fails
    assert re.search(r"fail: 1 of \d+ cases and \d+ examples", text) or not fails


def test_what_is_right_passes_and_what_is_not_measured_is_skipped(tmp_path: Path) -> None:
    options = ["--tensorplug-backend", "cpu", "--tensorplug-level", "2", "-v", "-rs"]
    some = "(Neg and float32) or shares-host or kernels-run"
    code, text = ran(tmp_path, "--pyargs", "tensorplug_conformance", *options, "-k", some)
    assert code == 0, text
    assert "level2::Neg[float32-native] PASSED" in text
    assert "level1::shares-host-memory PASSED" in text
    assert "level1::kernels-run-on-the-device SKIPPED" in text
    assert "not measured: its buffers lie in the host's memory" in text
    assert "2 passed, 1 skipped" in text
    assert "tensorplug-conformance run --backend cpu --level 2 --report out/" in text


PLAIN = """
    import sys

    def test_nothing_of_the_suite_is_loaded():
        loaded = {each.partition(".")[0] for each in sys.modules}
        assert "pytest_tensorplug_conformance" in loaded
        assert not loaded & {"tensorplug", "tensorplug_conformance"}
"""


def test_other_runs_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(textwrap.dedent(PLAIN))
    package = Path(tensorplug_conformance.__file__).parent
    code, text = ran(tmp_path, "test_plain.py", str(package))
    assert code == 0, text
    assert "1 passed" in text
    assert "certificate" not in text


def test_a_run_without_a_backend_says_what_it_needs(tmp_path: Path) -> None:
    code, text = ran(tmp_path, "--pyargs", SUITE)
    assert code == 4
    assert "needs --tensorplug-backend NAME" in text


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"backend": "nowhere"}, "no backend 'nowhere' is installed, but .*cpu"),
        ({"level": 9}, "there is no level 9"),
        ({"item_limit": 0.0}, "the time limit of an item must be positive, got 0.0"),
        ({"seed": -1}, "the seed must be at least 0, got -1"),
        ({"examples": -1}, "examples must be at least 0, got -1"),
    ],
)
def test_wrong_options(options: dict[str, object], fault: str) -> None:
    settings = {
        "backend": "cpu",
        "level": 2,
        "item_limit": None,
        "seed": 0,
        "examples": 0,
        **options,
    }
    config = SimpleNamespace(getoption=lambda name: settings[name.removeprefix("tensorplug_")])
    with pytest.raises(pytest.UsageError, match=fault):
        ConformanceRun(config)  # type: ignore[arg-type]  # all that it asks for
