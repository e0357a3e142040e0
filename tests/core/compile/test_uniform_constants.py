"""Constants of equal elements: numbers in groups, as the core forms them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.context import Context, use_context
from tensorplug_conformance.interpreter import interpreter
from tensorplug_conformance.selftest.programs.engines import compiling

if TYPE_CHECKING:
    from tensorplug.plugin import Group

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def _noting(asked: list[Group], group: Group) -> Any:
    asked.append(group)
    return interpreter(group)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (tp.grad(lambda x: tp.sum(tp.exp(x))), np.exp(X)),
        (tp.grad(lambda x: tp.mean(tp.exp(x))), np.exp(X) / 12),
        (lambda x: tp.exp(x) * tp.full((3, 4), 0.5), np.exp(X) * np.float32(0.5)),
        (lambda x: tp.exp(x) + tp.ones_like(x), np.exp(X) + 1),
        (lambda x: tp.exp(x) - tp.reshape(tp.full((4, 3), 2.0), (3, 4)), np.exp(X) - 2),
        (lambda x: tp.exp(x) * tp.broadcast_to(tp.asarray(3.0), (3, 4)), np.exp(X) * 3),
    ],
)
def test_equal_elements_are_not_read(f, expected):
    asked: list[Group] = []
    engine = compiling(partial(_noting, asked))
    with use_context(Context(engine, engine.open("cpu"), None)):
        compiled, x = tp.compile(f), tp.asarray(X)
        asked.clear()
        for _ in range(2):
            np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-6)
    # A number that may follow from sizes is an input of one element.
    assert [sum(any(each.spans) for each in group.inputs) for group in asked] == [1]


def test_elements_that_differ_are_read():
    asked: list[Group] = []
    engine = compiling(partial(_noting, asked))
    with use_context(Context(engine, engine.open("cpu"), None)):
        compiled, x = tp.compile(lambda x: tp.exp(x) * tp.asarray(X)), tp.asarray(X)
        asked.clear()
        np.testing.assert_allclose(compiled(x).numpy(), np.exp(X) * X, rtol=1e-6)
    assert [len(group.inputs) for group in asked] == [2]
