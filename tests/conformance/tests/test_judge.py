"""``judge``: callables of any library, judged as kernels without a backend."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug_conformance import cli
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.selftest.judged import CHEATS, Cheat, try_cheat

if TYPE_CHECKING:
    from collections.abc import Callable

KERNELS = """\
import os

import numpy as np


def relu(x):
    return np.maximum(x, np.zeros((), x.dtype))


def relu_into(x, out=None):
    result = np.empty_like(x) if out is None else out
    return np.maximum(x, np.zeros((), x.dtype), out=result)


def relu_half(x, out=None):
    result = np.empty_like(x) if out is None else out
    np.copyto(result, relu(x), where=np.arange(x.size).reshape(x.shape) % 2 == 0)
    if out is None:
        return relu(x)  # right where nobody gives it memory


def dies(x):
    os.abort()


def two(x):
    return x, x


def assumes_order(x):
    y = np.ndarray(x.shape, x.dtype, x.copy(order="K").tobytes("A"))
    return relu(y)


def dtype_of_its_own(x):
    return relu(x).astype(np.float64)


def concat(parts, axis):
    return np.concatenate(parts, axis)


def raises(x):
    raise LookupError("no such number")


def softmax(x, axis=-1):
    w = x.astype(np.float64)
    with np.errstate(all="ignore"):
        e = np.exp(w - np.max(w, axis=axis, keepdims=True, initial=-np.inf))
        return (e / e.sum(axis=axis, keepdims=True)).astype(x.dtype)


def last_softmax(x):
    return softmax(x)


def far_softmax(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)
"""


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that judges one of ``KERNELS`` and gives exit code, row and report."""
    (tmp_path / "kernels_of_users.py").write_text(KERNELS, "utf-8")
    monkeypatch.chdir(tmp_path)

    def judge(function: str, kernel: str, *options: str) -> tuple[int, dict[str, Any], Any]:
        target = f"kernels_of_users:{function}"
        code = cli.main(["judge", target, "--as", kernel, "--report", "out", *options])
        report = json.loads(Path("out/judgement.json").read_text("utf-8"))
        return code, report["rows"][0], report

    return judge


# Function, kernel, options, exit code, and what the first failure says.
JUDGED = (
    ("relu", "Relu", (), 0, ""),
    ("relu", "Relu", ("--dtypes", "float64", "--with", "dlpack:numpy"), 0, ""),
    ("relu_into", "Relu", ("--poison-outputs",), 0, ""),
    ("relu_half", "Relu", (), 0, ""),
    ("relu_half", "Relu", ("--poison-outputs",), 1, "wrong; first at"),
    ("concat", "Concat", (), 0, ""),
    ("dies", "Relu", (), 1, "died of SIGABRT"),
    ("two", "Relu", (), 1, "2 results instead of 1"),
    ("raises", "Relu", (), 1, "it raised LookupError: no such number"),
    ("dtype_of_its_own", "Relu", (), 1, "float64"),
    ("assumes_order", "Relu", (), 1, "wrong; first at"),
)


@pytest.mark.parametrize(("function", "kernel", "options", "code", "said"), JUDGED)
def test_callables_get_the_verdict_of_a_kernel(
    judged: Callable[..., Any],
    function: str,
    kernel: str,
    options: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    ended, row, report = judged(function, kernel, *options)
    assert (ended, report["right"]) == (code, code == 0), row["first"]
    assert row["passed"] > 10 if code == 0 else row["failed"]
    assert said in (row["first"] or {"message": ""})["message"]
    assert "kernels_of_users" not in sys.modules  # the judge imports nothing of it


def test_cases_with_attributes_that_it_does_not_take_are_counted(
    judged: Callable[..., Any],
) -> None:
    cases = cases_of(entries()["Softmax"], Row("Softmax", "float32", "native"), 0)
    ranks = [(case.inputs[0].ndim, case.attributes.get("dim", -1)) for case in cases]  # type: ignore[union-attr]  # arrays
    last = sum(dim in (-1, rank - 1) for rank, dim in ranks)
    code, row, _ = judged("last_softmax", "Softmax")
    assert (code, row["passed"], row["failed"]) == (0, last, [])
    assert row["not_claimed"] == {"it takes no dim": len(cases) - last}
    code, row, _ = judged("softmax", "Softmax", "--map", "axis=dim")
    assert (code, row["passed"], row["not_claimed"]) == (0, len(cases), {})


def test_a_callable_that_takes_nothing_of_a_kernel_is_not_right(
    judged: Callable[..., Any],
) -> None:
    code, row, report = judged("relu", "Reshape")
    assert (code, report["right"], row["status"]) == (1, False, "not claimed")


def test_the_first_failure_is_small_and_its_script_repeats_it(judged: Callable[..., Any]) -> None:
    code, row, _ = judged("far_softmax", "Softmax")
    assert code == 1
    assert row["first"]["smallest"].startswith("Softmax(np.array([")
    assert row["first"]["layouts"][0]["shape"] == [1, 1]
    script = [sys.executable, "out/repeat.py"]
    again = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout.strip()) == (1, row["first"]["message"]), again.stderr
    Path("kernels_of_users.py").write_text(f"{KERNELS}\nfar_softmax = softmax\n", "utf-8")
    repaired = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (repaired.returncode, repaired.stdout.strip()) == (0, "right"), repaired.stderr


def test_layouts_are_told(judged: Callable[..., Any]) -> None:
    _, row, _ = judged("assumes_order", "Relu")
    (layout,) = row["first"]["layouts"]
    assert layout["order"] != "C" or layout["offset"]
    assert len(layout["strides"]) == len(layout["shape"])


def test_fresh_inputs_are_other_ones_each_time(judged: Callable[..., Any]) -> None:
    rows = [judged("relu", "Relu", "--fresh-inputs", "--soak")[1] for _ in range(2)]
    assert rows[0]["seed"] != rows[1]["seed"]
    assert [row["soaked_calls"] for row in rows] == [3000, 3000]


WRONG = (
    (("absent:f", "--as", "Relu"), "No module named 'absent'"),
    (("kernels_of_users:absent", "--as", "Relu"), "no attribute 'absent'"),
    (("kernels_of_users", "--as", "Relu"), "is not MODULE:FUNCTION"),
    (("kernels_of_users:relu", "--as", "relu"), "did you mean Relu?"),
    (("kernels_of_users:relu", "--as", "Relu", "--map", "a=b"), "Relu has no b"),
    (("kernels_of_users:relu", "--as", "Relu", "--with", "torch"), "dlpack:LIBRARY"),
    (("kernels_of_users:relu", "--as", "Relu", "--dtypes", "bool"), "has cases in"),
)


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_calls_are_usage_errors(
    judged: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert judged
    assert cli.main(["judge", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.function)
def test_cheats_are_caught(cheat: Cheat) -> None:
    trial = try_cheat(cheat)
    assert trial.right, trial.evidence


def test_tensors_of_pytorch(judged: Callable[..., Any]) -> None:
    pytest.importorskip("torch")
    text = f"{KERNELS}\nimport torch\ndef on_tensors(x, axis): return torch.softmax(x, axis)\n"
    Path("kernels_of_users.py").write_text(text, "utf-8")
    options = ("--with", "dlpack:torch", "--map", "axis=dim", "--dtypes", "float64")
    code, row, _ = judged("on_tensors", "Softmax", *options)
    assert (code, row["failed"]) == (0, [])
    assert row["copied_inputs"] > 0  # PyTorch has no negative strides
