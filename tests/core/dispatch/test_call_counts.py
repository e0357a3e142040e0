"""How many Python functions a call runs: what the core adds to the work of the kernels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("own_engine")

WARM = 6  # calls after which plans and the program of the backward pass are cached


def python_calls(f: Callable[[], Any]) -> list[tuple[str, str]]:
    """Return the file and the name of each Python function that ``f`` calls, in order."""
    calls = []

    def watch(frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            calls.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        f()
    finally:
        sys.setprofile(before)
    return calls[1:]  # not f itself


def vector(*numbers: float) -> tp.Tensor:
    return tp.asarray(np.array(numbers, np.float32))


def test_a_warm_add_is_three_calls_in_three_files() -> None:
    a, b = vector(1, 2, 3), vector(4, 5, 6)
    for _ in range(WARM):
        tp.add(a, b)
    calls = python_calls(lambda: tp.add(a, b))
    assert [name for _, name in calls[:2]] == ["add", "dispatch_binary"]
    assert len(calls) == len({file for file, _ in calls}) == 3


def test_a_first_call_takes_few_calls() -> None:
    a, b = vector(1, 2, 3), vector(4, 5, 6)
    tp.add(a, b)  # of the backend: nothing of it is new afterwards
    assert len(python_calls(lambda: tp.multiply(a, b))) <= 120


def test_a_warm_gradient_takes_few_calls() -> None:
    x = vector(1, 2, 3)
    gradient = tp.grad(lambda x: tp.sum(x * x))
    for _ in range(WARM):
        gradient(x)
    assert len(python_calls(lambda: gradient(x))) <= 85


def test_a_warm_promotion_takes_few_calls() -> None:
    whole, floats = tp.asarray(np.array([1, 2, 3], np.int32)), vector(1, 2, 3)
    for _ in range(WARM):
        tp.add(whole, floats)
    assert len(python_calls(lambda: tp.add(whole, floats))) <= 32


def test_a_key_takes_few_calls() -> None:
    generator = tp.random.Generator(0)
    for _ in range(WARM):
        generator.key()
    assert len(python_calls(generator.key)) <= 54  # eight of them are the device's of the example


def test_a_backend_says_once_how_large_a_group_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    device = tp.zeros(1)._placement.device
    asked = []
    kind = type(device.backend)
    answer = kind.least_group.fget
    monkeypatch.setattr(kind, "least_group", property(lambda it: asked.append(it) or answer(it)))
    device.least = None
    for op in (tp.nn.softmax, tp.nn.log_softmax, tp.nn.gelu):  # which groups may compute
        op(vector(1, 2, 3, 4, 5))
    assert len(asked) == 1
