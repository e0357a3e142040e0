"""Backends that change what the whole process has, or are right only where rows call them."""

from __future__ import annotations

import gc
import logging
import os
import random
import sys
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.checks import CheckFailedError, NotMeasuredError, Target, checks
from tensorplug_conformance.comparing import compare
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying.rows import run_row
from tensorplug_conformance.trying.surroundings import Functions, Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.engine import Engine

NEG = entries()["Neg"]
ROW = Row("Neg", "float32", "native")
ELSEWHERE = "kernels called elsewhere"

CHANGES: dict[str, Callable[[], Any]] = {
    "np.geterr()": lambda: np.seterr(over="ignore"),
    "the state of random": random.random,
    "the state of np.random": partial(np.random.seed, 5),
    "os.environ": lambda: os.environ.update(SOME_VARIABLE="changed"),
    "the current folder": lambda: os.chdir("/"),
    "sys.getrecursionlimit()": lambda: sys.setrecursionlimit(4321),
    "gc.isenabled()": gc.disable,
    "the filters of warnings": lambda: warnings.simplefilter("ignore"),
    "sys.path": lambda: sys.path.insert(0, "/"),
    "np.get_printoptions()": lambda: np.set_printoptions(precision=3),
}


@pytest.fixture
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder, limit, path = os.getcwd(), sys.getrecursionlimit(), list(sys.path)  # noqa: PTH109  # text
    monkeypatch.setenv("SOME_VARIABLE", "as it was")
    with np.errstate(), np.printoptions(precision=8), warnings.catch_warnings():
        yield
    os.chdir(folder)
    sys.setrecursionlimit(limit)
    sys.path[:] = path
    gc.enable()


def _with_neg(neg: Callable[..., Any]) -> Engine:
    engine = build_engine()
    engine.open("cpu")
    engine.registry.add(
        Owner("wrong"), kernels=[("cpu", kernel_entry(specs.NEG, neg))], override=True
    )
    return engine


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("setting", CHANGES)
def test_a_row_whose_calls_change_a_setting_fails(setting: str) -> None:
    def neg(x: Any) -> Any:
        CHANGES[setting]()
        return np.asarray(np.negative(x))

    verdict = run_row(Session(lambda: _with_neg(neg), "cpu"), NEG, ROW, 0)
    assert verdict.status == "fail"
    assert any(f"it changed {setting}" in failure.message for failure in verdict.failures)


def test_clean_calls_change_nothing() -> None:
    before = Surroundings()
    verdict = run_row(Session(build_engine, "cpu"), NEG, ROW, 0)
    assert (verdict.status, before.fault()) == ("pass native", "")


def test_errors_in_the_log_are_heard() -> None:
    """Also where a filter takes them out, as ``selftest`` tries; warnings are none."""
    before = Surroundings()
    logging.getLogger("a driver").warning("it is slow")
    assert before.fault() == ""
    logging.getLogger("a driver").error("a buffer is %s", "small")
    assert before.fault() == "it logged 1 errors, the last by a driver: a buffer is small"
    assert Surroundings().fault() == ""


def test_variables_may_be_added_and_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "a")
    before = Surroundings()
    monkeypatch.setenv("ANOTHER_VARIABLE", "b")
    assert before.fault() == ""
    monkeypatch.setenv("SOME_VARIABLE", "c")
    assert "SOME_VARIABLE: 'a' is 'c'" in before.fault()


@pytest.mark.parametrize(
    ("place", "name"), [(compare, "judge"), (np, "array_equal"), (Session, "read")]
)
def test_functions_that_are_replaced_are_named(
    place: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = Functions()
    assert functions.replaced() == []
    monkeypatch.setattr(place, name, lambda *_: True)
    assert any(function.endswith(f".{name}") for function in functions.replaced())


# Right where rows call it, wrong elsewhere. Each is a factory for a process of its own.

OPENED: list[int] = []
PROCESS = os.getpid()


def _only(condition: Callable[[], bool]) -> Engine:
    OPENED.append(1)
    return _with_neg(lambda x: np.asarray(np.zeros_like(x) if condition() else np.negative(x)))


def in_a_thread() -> Engine:
    return _only(lambda: threading.current_thread() is not threading.main_thread())


def in_a_second_engine() -> Engine:
    number = len(OPENED)
    return _only(lambda: number == 1)


def in_a_third_engine() -> Engine:
    number = len(OPENED)
    return _only(lambda: number == 2)


def in_a_child() -> Engine:
    return _only(lambda: os.getpid() != PROCESS)


def deep() -> Engine:
    def depth() -> int:
        frame, count = sys._getframe(), 0
        while frame.f_back is not None:
            frame, count = frame.f_back, count + 1
        return count

    return _only(lambda: depth() > 300)


def without_collector() -> Engine:
    return _only(lambda: not gc.isenabled())


def with_warnings() -> Engine:
    def neg(x: Any) -> Any:
        warnings.warn("slow path", RuntimeWarning, stacklevel=2)
        return np.asarray(np.negative(x))

    return _with_neg(neg)


def clean() -> Engine:
    return build_engine()


@contextmanager
def _found(word: str) -> Iterator[None]:
    if word:
        with pytest.raises(CheckFailedError, match=rf"^{word}.*: .*Neg"):
            yield
    else:
        yield


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (in_a_thread, "in another thread"),
        (in_a_second_engine, "in a second engine"),
        (in_a_third_engine, "in a new engine"),
        (in_a_child, "in a forked child"),
        (deep, "400 calls deep"),
        (without_collector, "after a collection"),
        (with_warnings, "where warnings are errors"),
        (clean, ""),
    ],
)
def test_kernels_that_are_wrong_elsewhere_are_named(
    make: Callable[[], Engine], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))  # noqa: PTH120  # the child's path
    (check,) = (check for check in checks(2) if check.id == ELSEWHERE)
    with _found(word):
        check.run(Target("cpu", f"{__name__.rpartition('.')[2]}:{make.__name__}"), pytest.fail)


def test_a_backend_without_such_kernels_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLUG_DISABLE_PLUGINS", "attention")  # has one for this backend
    (check,) = (check for check in checks(3) if check.id == ELSEWHERE)
    with pytest.raises(NotMeasuredError, match="no native kernel"):
        check.run(Target("minimal"), pytest.fail)
