"""The result of every call is compared with its spec in debug mode, not only the first."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch.calls import dispatch_unary
from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.engine.engine import Engine
from tensorplug.engine.registry import Registry
from tensorplug.engine.settings import CHECKS, DEFAULT_CHECKS, Settings
from tensorplug.errors import ArgumentError, KernelOutputError
from tensorplug.observers import debugging
from tensorplug.observers.leaks import LeakCheck
from tensorplug.observers.nonfinite import NonFiniteCheck
from tensorplug.plugins.assembly import build_engine

if TYPE_CHECKING:
    from pathlib import Path

FICKLE = KernelSpec("Fickle", ("x",), inference.same)


def engine(*checks: Any) -> Engine:
    """Return an engine whose only kernel returns a wrong shape from its second call on."""
    table, calls = KernelTable(), iter(range(100))

    @table.register(FICKLE)
    def fickle(x: Any) -> Any:
        return x if next(calls) == 0 else np.zeros(7, x.dtype)

    return Engine(
        engines.Source({"memory": [table]}),
        Registry([FICKLE]),
        observers=debugging.checks(checks),
    )


def fickle(x: tp.Tensor) -> tp.Tensor:
    return dispatch_unary(FICKLE, x)


WRONG = r"out is float32\[7\], but must be float32\[2\]"


@pytest.mark.parametrize("others", [(), ("nan", "inf"), ("leaks",)])
def test_every_call_of_an_engine_is_compared(others: Any) -> None:
    with use_context(Context(engine("verify", *others))):
        x = tp.asarray([1.0, 2.0])
        if "leaks" in others:
            with pytest.warns(tp.errors.UncheckedWarning):
                assert fickle(x).shape == (2,)
        else:
            assert fickle(x).shape == (2,)
        with pytest.raises(KernelOutputError, match=WRONG):
            fickle(x)


def test_every_call_in_a_block_is_compared() -> None:
    with use_context(Context(engine())):
        x = tp.asarray([1.0, 2.0])
        with tp.debug():
            assert fickle(x).shape == (2,)
            with pytest.raises(KernelOutputError, match=WRONG):
                fickle(x)
        with pytest.raises(KernelOutputError, match=WRONG):
            tp.debug(fickle, x)
        for block in (tp.debug(verify=False), tp.debug(verify=False, nan=False, inf=False)):
            with block:
                assert fickle(x).shape == (2,)  # what the spec infers


def test_only_the_first_call_is_compared_otherwise() -> None:
    with use_context(Context(engine())):
        x = tp.asarray([1.0, 2.0])
        for _ in range(3):
            assert fickle(x).shape == (2,)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), []),
        (("verify",), [debugging.SpecCheck]),
        (("inf",), [NonFiniteCheck]),
        (("nan",), [NonFiniteCheck]),
        (DEFAULT_CHECKS, [NonFiniteCheck, debugging.SpecCheck]),
        # The check nearest to the kernel comes first: no other code sees an unchecked output.
        (CHECKS, [NonFiniteCheck, LeakCheck, debugging.SpecCheck]),
    ],
)
def test_the_observers_of_checks(names: Any, expected: list[type]) -> None:
    assert [type(check) for check in debugging.checks(names)] == expected
    made = build_engine(Settings(denied=("cpu", "opencl"), debug=frozenset(names)))
    assert [type(observer) for observer in made.observers] == expected


def test_the_defaults_of_debug_are_those_of_the_setting() -> None:
    with tp.debug():
        made = current_context().observers
    assert [type(tensor) for tensor in made] == [
        type(check) for check in debugging.checks(DEFAULT_CHECKS)
    ]


PROGRAM = """
import tensorplug as tp

def loss(x):
    return tp.sum(tp.sqrt(x))

x = tp.asarray([0.0, 4.0])
print(tp.grad(loss)(x).tolist())
"""


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("1", "NonFiniteError: RealDiv made 1 infinity of 2, at [0]: inf"),
        ("inf", "in the gradient of 'Sqrt' with respect to 'x'"),
        ("1", "recorded at program.py:5 in loss"),
        ("nan,verify", ""),
        ("0", ""),
    ],
)
def test_the_setting_watches_a_whole_program(setting: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "TENSORPLUG_DEBUG": setting, "TENSORPLUG_BACKEND": "cpu"}
    ended = subprocess.run(
        [sys.executable, "program.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if said:
        assert ended.returncode == 1
        assert said in ended.stderr
    else:
        assert (ended.returncode, ended.stdout) == (0, "[inf, 0.25]\n"), ended.stderr


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3,), {}, "debug: function must be callable, got int"),
        ((), {"nans": True}, "debug: has no option 'nans'"),
    ],
)
def test_bad_arguments(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        tp.debug(*arguments, **options)
    assert str(caught.value) == message
