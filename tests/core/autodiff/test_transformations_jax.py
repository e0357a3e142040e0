"""grad, jvp, vmap, compile, loops and their compositions compute what JAX computes."""

from __future__ import annotations

import json
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from tests.core.support import transformation_cases as cases
from tests.core.support.record_transformations import PATH

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RECORDED: Final = json.loads(PATH.read_text())
del RECORDED["made_by"]
CALLS: Final = RECORDED.pop("calls")
COMPOSED: Final = [(name, what) for name, found in RECORDED.items() for what in found]


def _library() -> cases.Library:
    return cases.Library(
        ops=tp,
        own=tp,
        loops=tp,
        asarray=tp.asarray,
        compile=tp.compile,
        checkpoint=tp.checkpoint,
        softmax=tp.nn.softmax,
        inv=tp.linalg.inv,
        outer=tp.linalg.outer,
        concat=tp.concat,
    )


@cache
def _tables() -> SimpleNamespace:
    """Return the tables; not at import, when no backend is open."""
    lib = _library()
    return SimpleNamespace(
        functions=cases.functions(lib),
        transformations=cases.transformations(lib),
        calls=cases.calls(lib),
    )


def _check(actual: Any, recorded: Any) -> None:
    expected = np.array(recorded["data"], recorded["dtype"]).reshape(recorded["shape"])
    found = actual.numpy()
    assert found.shape == expected.shape
    assert found.dtype.kind == expected.dtype.kind
    # Both round in float64; the condition of the third derivatives here is below 1e4.
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "what"), COMPOSED)
def test_a_composition(name: str, what: str) -> None:
    tables = _tables()
    actual = tables.transformations[what](tables.functions[name])
    _check(actual, RECORDED[name][what])


@pytest.mark.parametrize("name", CALLS)
def test_a_call(name: str) -> None:
    _check(_tables().calls[name](), CALLS[name])


def test_the_record_is_complete() -> None:
    tables = _tables()
    assert RECORDED.keys() == tables.functions.keys()
    assert CALLS.keys() == tables.calls.keys()
    for found in RECORDED.values():
        assert found.keys() == tables.transformations.keys()
