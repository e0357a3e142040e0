"""Differential runs: the kernel, the line and the inputs in which two backends part."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance import cli
from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.differential.comparison import Program, ProgramError, compare
from tensorplug_conformance.differential.judging import judge_call
from tensorplug_conformance.differential.scripts import repeat, script, written
from tensorplug_conformance.differential.showing import as_data, conclusion, show
from tensorplug_conformance.differential.shrinking import shrunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine

ABOVE = 0.25  # where the sabotaged exponential is wrong
HERE = f"{__name__.rpartition('.')[2]}:"

TRAINING = """\
import numpy as np
import tensorplug as tp

rng = np.random.default_rng(0)
x = tp.asarray(rng.normal(size=(8, 6)).astype(np.float32))
y = tp.one_hot(tp.asarray(rng.integers(0, 3, 8).astype(np.int32)), 3)


def loss(w, v):
    hidden = tp.tanh(x @ w)
    return -tp.mean(tp.sum(tp.nn.log_softmax(hidden @ v) * y, axis=1))


def train(steps=2):
    w = tp.asarray(rng.normal(size=(6, 5)).astype(np.float32))
    v = tp.asarray(rng.normal(size=(5, 3)).astype(np.float32))
    for _ in range(steps):
        dw, dv = tp.grad(loss, argnums=(0, 1))(w, v)
        w, v = w - 0.1 * dw, v - 0.1 * dv


if __name__ == "__main__":
    train()
"""


def _with(backend: str, spec: Any, wrong: Callable[..., Any]) -> Engine:
    engine = build_engine()
    engine.open(backend)
    owned = engine.registry.state.kernel(spec.name, backend)
    assert owned is not None
    right = owned.entry.function

    def kernel(x: Any, *, backend: Any, out: Any) -> Any:
        result = np.array(backend.to_host(right(x, backend=backend, out=out)))
        return backend.from_host(wrong(backend.to_host(x), result))

    entry = kernel_entry(spec, kernel)
    engine.registry.add(Owner("saboteur"), kernels=[(backend, entry)], override=True)
    return engine


def wrong_exp() -> Engine:
    """Return an engine whose exponential is off by a thousandth above ABOVE."""
    return _with("minimal", specs.EXP, lambda x, y: np.where(x > ABOVE, y * np.float32(1.001), y))


def late_neg() -> Engine:
    """Return an engine whose negation is wrong in its third call alone."""
    calls = []

    def neg(_x: Any, y: Any) -> Any:
        calls.append(None)
        return y + 1 if len(calls) == 3 else y

    return _with("minimal", specs.NEG, neg)


def dying_exp() -> Engine:
    """Return an engine whose exponential takes the process down."""

    def die(_x: Any, _y: Any) -> Any:
        os.abort()

    return _with("minimal", specs.EXP, die)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    # The processes that run backends find the engines of this file.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    def write(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(text)
        return path

    return write


def test_a_kernel_deep_in_a_training_step_is_found(program: Callable[[str], Path]) -> None:
    path = program(TRAINING)
    comparison = compare(Target("cpu"), Target("minimal", HERE + "wrong_exp"), Program(path))
    first = comparison.first
    assert first is not None
    assert (first.kernel, first.within) == ("Exp", "Tanh")
    assert first.place is not None
    assert (first.place.line, first.place.function) == (10, "loss")
    assert first.place.source == "hidden = tp.tanh(x @ w)"
    assert first.faults[0] == ""
    assert "ulp off" in first.faults[1]
    (smallest,) = first.operands
    assert (smallest.size, smallest.dtype) == (1, np.float32)
    assert smallest.item() == 1.0  # the simplest number above ABOVE
    assert first.verdict.oracle
    assert first.verdict.ulp > 1000
    assert set(comparison.others) <= {
        "Tanh",
        "LogSoftmax",
        "Exp",
    }  # what it is used in, nothing else


def test_its_script_repeats_it(
    program: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(TRAINING)
    comparison = compare(Target("cpu"), Target("minimal", HERE + "wrong_exp"), Program(path))
    assert comparison.first is not None
    text = script("cpu", "minimal", comparison.first)
    ended = subprocess.run(
        [sys.executable, "-"], input=text, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr  # the installed backend is right
    assert ended.stdout.splitlines()[-2:] == ["cpu: right", "minimal: right"]
    call = (comparison.first.kernel, comparison.first.operands, comparison.first.attributes)
    assert repeat("cpu", "minimal", *call, factory=HERE + "wrong_exp") == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("minimal: 1 of 1 wrong")


def test_honest_backends_do_not_part(program: Callable[[str], Path]) -> None:
    comparison = compare(Target("cpu"), Target("minimal"), Program(program(TRAINING)))
    assert comparison.first is None
    assert not comparison.unjudged
    assert conclusion(comparison) == "no difference beyond the bounds between cpu and minimal"
    assert comparison.largest is not None
    call, verdict = comparison.largest
    assert verdict.ulp > 0
    data = as_data(comparison)
    assert data["largest"]["call"] == call.text
    console = Console(record=True, width=200)
    show(comparison, console)
    assert "largest difference within the bounds" in console.export_text()


def test_a_fault_that_one_call_does_not_show(program: Callable[[str], Path]) -> None:
    path = program(
        "import tensorplug as tp\nfor n in range(4):\n    tp.negative(tp.asarray([1.0, 2.0]))\n"
    )
    comparison = compare(Target("cpu"), Target("minimal", HERE + "late_neg"), Program(path))
    assert comparison.first is not None
    assert (comparison.first.kernel, comparison.first.history) == ("Neg", True)
    assert script("cpu", "minimal", comparison.first) == ""
    assert comparison.first.place is not None
    assert comparison.first.place.line == 3


def test_a_process_that_dies(program: Callable[[str], Path]) -> None:
    path = program("import tensorplug as tp\nx = tp.asarray([1.0, 2.0])\ntp.exp(tp.negative(x))\n")
    comparison = compare(Target("cpu"), Target("minimal", HERE + "dying_exp"), Program(path))
    assert comparison.first is not None
    assert (comparison.first.kernel, comparison.first.faults[1]) == (
        "Exp",
        "the process died of signal 6",
    )
    assert comparison.first.operands[0].size == 1
    assert comparison.runs[1].ended == "died of signal 6"


def test_programs_that_go_two_ways(program: Callable[[str], Path]) -> None:
    path = program(
        "import tensorplug as tp\n"
        "x = tp.exp(tp.asarray([1.0]))\n"
        "if float(x[0]) > 2.72:\n"
        "    tp.sin(x)\n"
        "tp.cos(x)\n"
    )
    comparison = compare(Target("cpu"), Target("minimal", HERE + "wrong_exp"), Program(path))
    assert comparison.alignment.parted is not None
    ours, theirs = comparison.alignment.parted
    assert ours is not None
    assert theirs is not None
    assert (ours.kernel, theirs.kernel) == ("Cos", "Sin")
    assert comparison.first is not None
    assert comparison.first.kernel == "Exp"  # the cause comes before
    kernels = {call.kernel for call in comparison.runs[0].ops}
    assert kernels >= {"Exp", "Cos"}
    assert comparison.alignment.partners[ours.number].kernel == "Cos"  # aligned again


def test_a_function_and_arguments(program: Callable[[str], Path]) -> None:
    path = program(
        "import sys\nimport tensorplug as tp\n"
        "def f():\n    tp.zeros(int(sys.argv[1]))\n"
        "if __name__ == '__main__':\n    raise SystemExit('not to be run')\n"
    )
    comparison = compare(Target("cpu"), Target("minimal"), Program(path, "f", ("5",)))
    assert [call.attributes["shape"] for call in comparison.runs[0].ops] == [(5,)]
    with pytest.raises(ProgramError, match=r"makes no kernel call on cpu; it ended with exit"):
        compare(Target("cpu"), Target("minimal"), Program(path))


@pytest.mark.parametrize(
    ("kernel", "off", "faults"),
    [
        ("Exp", 0, (False, False)),
        ("Exp", 2, (False, False)),  # both may be off by 3 ulp
        ("Exp", 400, (False, True)),
        ("Exp", -400, (True, False)),
        ("Neg", 1, (False, True)),
    ],
)
def test_the_oracle_says_who_is_wrong(kernel: str, off: int, faults: tuple[bool, bool]) -> None:
    x = np.array([0.3, 0.7], np.float32)
    right = np.exp(x) if kernel == "Exp" else -x
    wrong = right.copy()
    for _ in range(abs(off)):
        wrong = np.nextafter(wrong, np.float32(np.inf))
    pair = (wrong, right) if off < 0 else (right, wrong)
    verdict = judge_call(entries()[kernel], [x], {}, [pair[0]], [pair[1]])
    assert tuple(map(bool, verdict.faults)) == faults


def test_an_output_of_another_type_is_a_fault() -> None:
    one, other = np.zeros(2, np.float32), np.zeros((2, 1), np.float32)
    verdict = judge_call(entries()["Neg"], [one], {}, [one], [other])
    assert verdict.faults == ("", "it is float32[2,1] instead of float32[2]")


def test_shrinking_ends_at_the_smallest_call_that_shows_it() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(50, 70)), rng.normal(size=(70, 30))

    def shows(operands: list[Any], attributes: dict[str, Any]) -> bool:
        one, other = operands
        return one.shape[1] == other.shape[0] >= 13 and attributes["n"] == one.shape[0]

    operands, attributes = shrunk([a, b], {"n": 50}, shows)
    assert [array.shape for array in operands] == [(1, 13), (13, 1)]
    assert attributes == {"n": 1}
    assert not any(map(np.any, operands))  # zeros are the simplest values


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -0.0], [np.inf, np.nan]], np.float32),
        np.zeros((70_000,), np.int64),
        np.array(True),
        np.array([complex(-0.0, np.nan), 1j], np.complex64),
        np.array(["a", "ü\n"], np.dtypes.StringDType()),
        np.zeros((0, 3), np.uint8),
    ],
)
def test_arrays_are_written_as_python(array: np.ndarray[Any, Any]) -> None:
    text = written(array)
    assert text is not None
    back = eval(text, {"np": np, "inf": np.inf, "nan": np.nan})
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


def test_the_command(
    program: Callable[[str], Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(program("import tensorplug as tp\ntp.add(1.0, tp.asarray([2.0]))\n"))
    command = ["compare", "--backend", "cpu", "--program", path]
    assert cli.main(command) == 2
    assert "--backend must be given twice, not once" in capsys.readouterr().out
    more = ["--backend", "minimal"]
    assert cli.main([*command, *more, "--script", str(tmp_path / "difference.py")]) == 0
    assert "no difference beyond the bounds" in capsys.readouterr().out
    assert not (tmp_path / "difference.py").exists()
    assert cli.main([*command[:-1], str(tmp_path / "none.py"), *more]) == 2
