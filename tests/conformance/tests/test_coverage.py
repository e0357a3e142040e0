"""Coverage: what a backend of few kernels runs of a program, what it copies, what would help."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelTable
from tensorplug.testing import isolated_engine
from tensorplug_conformance.cli import main
from tensorplug_conformance.coverage import command
from tensorplug_conformance.coverage.measuring import LEFT, Coverage, Moved, coverage
from tensorplug_example_minimal.backend import MinimalBackend
from tensorplug_example_minimal.kernels import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import KernelEntry

FEW = ("Add", "BatchMatMul", "Cast", "Sum")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
READ = 24  # bytes of an array like X
_exp = tp.compile(lambda x: tp.exp(x) + x)


class Acme(MinimalBackend):
    name = "acme"


class Few(KernelTable):
    def __iter__(self) -> Iterator[KernelEntry]:
        return (entry for entry in kernels if entry.spec.name in FEW)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("cpu") as engine:
        tp.register_backend("acme", Acme, kernels=[Few()])
        yield engine


# A program, the calls of each kernel and how it runs, what calls that leave copy to the host and
# back (times and bytes), and which kernels would save how many of these calls.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], dict[Any, int], Any, Any, dict[str, int]]] = {
    "native": (lambda x: x + x, {("Add", "native"): 1}, (0, 0), (0, 0), {}),
    "fallback": (tp.exp, {("Exp", "fallback"): 1}, (1, READ), (1, READ), {"Exp": 1}),
    "neighbours": (
        lambda x: tp.exp(tp.exp(x)) + tp.sin(x),
        {("Exp", "fallback"): 2, ("Sin", "fallback"): 1, ("Add", "native"): 1},
        (3, 3 * READ),
        (3, 3 * READ),
        {"Exp": 2, "Sin": 1},
    ),
    "in a decomposition": (
        tp.mean,  # the sum runs here, and is divided elsewhere
        {
            ("Mean", "decomposed"): 1,
            ("Sum", "native"): 1,
            ("Cast", "native"): 1,
            ("RealDiv", "fallback"): 1,
        },
        (2, 8),
        (1, 4),
        {"Mean": 1, "RealDiv": 1},
    ),
    "compiled": (
        lambda x: _exp(_exp(x)),
        {("Exp", "fallback"): 2, ("Add", "native"): 2},
        (2, 2 * READ),
        (2, 2 * READ),
        {"Exp": 2},
    ),
}


def _total(found: Coverage) -> dict[str, Moved]:
    return {"to_host": found.traffic.to_host, "to_device": found.traffic.to_device}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.usefixtures("engine")
def test_calls_copies_and_savings(program: str) -> None:
    function, uses, to_host, to_device, savings = PROGRAMS[program]
    with tp.use_backend("acme"):
        x = tp.asarray(X)
    found = coverage("acme", function, x)
    assert {(use.kernel, use.how): use.calls for use in found.uses} == uses
    left = [use.traffic for use in found.uses if use.how in LEFT]
    for way, expected in (("to_host", to_host), ("to_device", to_device)):
        moved = [getattr(traffic, way) for traffic in left]
        assert (sum(m.times for m in moved), sum(m.bytes for m in moved)) == expected
        inside = _total(found)[way].times - getattr(found.own, way).times
        assert inside == expected[0], "all other copies are the program's own"
    assert {saving.kernel: saving.calls for saving in found.savings} == savings
    seconds = [saving.seconds for saving in found.savings]
    assert seconds == sorted(seconds, reverse=True)
    assert all(0 < each < found.seconds for each in seconds)


@pytest.mark.usefixtures("engine")
def test_the_programs_own_copies_are_apart() -> None:
    found = coverage("acme", lambda: tp.exp(tp.asarray(X)).numpy())
    assert (found.own.to_device.times, found.own.to_device.bytes) == (1, READ)
    assert (found.own.to_host.times, found.own.to_host.bytes) == (1, READ)
    assert (found.traffic.to_device.times, found.traffic.to_host.times) == (2, 2)


@pytest.mark.usefixtures("engine")
def test_a_decomposed_kernel_saves_what_leaves_inside_it() -> None:
    with tp.use_backend("acme"):
        x = tp.asarray(X)
    found = coverage("acme", tp.mean, x)
    (mean, division) = sorted(found.savings, key=lambda saving: saving.kernel)
    assert (mean.how, division.how) == ("decomposed", "fallback")
    assert (mean.seconds, mean.traffic) == (division.seconds, division.traffic)
    assert {use.kernel: use.partly for use in found.uses} == {
        "Mean": True, "Sum": False, "Cast": False, "RealDiv": False,
    }  # fmt: skip


def test_a_program_that_raises_leaves_the_engine_as_it_was(engine: Engine) -> None:
    device = engine.open("acme")
    backend = device.backend
    with pytest.raises(ZeroDivisionError):
        coverage("acme", lambda: tp.exp(tp.asarray(X)).item and 1 // 0)
    assert (device.backend, engine.fallback) == (backend, "error")


def test_groups_are_named() -> None:
    pytest.importorskip("llvmlite")
    with isolated_engine("cpu"):
        tp.unregister_kernel("Softmax", "cpu")
        found = coverage("cpu", lambda: tp.nn.softmax(tp.ones((300, 800))))
    assert ("Softmax", "group") in {(use.kernel, use.how) for use in found.uses}


PROGRAM = """\
import sys
import tensorplug as tp
print(tp.get_backend(), sys.argv[1:])
x = tp.exp(tp.asarray([1.0, 2.0]))
{end}
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    monkeypatch.setattr(command, "check_opens", lambda *_: {})  # in a process of its own

    def call(end: str, *options: str) -> tuple[int, str, str]:
        path = tmp_path / "train.py"
        path.write_text(PROGRAM.format(end=end), "utf-8")
        code = main(["coverage", "--backend", "minimal", "--program", str(path), *options])
        return code, *capsys.readouterr()

    with isolated_engine("cpu"):
        yield call


def test_data_are_printed_alone(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = run("", "--json", "--", "-n", "3")
    data = json.loads(out)
    assert (code, data["backend"]) == (0, "minimal")
    assert [(use["kernel"], use["how"]) for use in data["uses"]] == [("Exp", "native")]
    assert data["own"]["to_device"]["bytes"] == 8
    assert "minimal ['-n', '3']" in err


@pytest.mark.parametrize(
    ("end", "code", "text"),
    [
        ("", 0, ""),
        ("raise SystemExit(0)", 0, ""),
        ("raise SystemExit(3)", 1, ""),
        ("x + unknown", 1, "NameError"),
    ],
)
def test_what_ran_is_shown_however_the_program_ends(
    end: str, code: int, text: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    ended, out, err = run(end)
    assert ended == code
    assert "Exp" in out
    assert "nothing left minimal" in out
    assert text in err


def test_without_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", "--backend", "minimal", "--program", "nowhere.py"]) == 2
    assert "there is no program nowhere.py" in capsys.readouterr().out
