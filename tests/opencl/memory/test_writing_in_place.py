"""Assignments and updates of windows write into memory that nothing else has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorplug as tp

X = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
KEYS: dict[str, Any] = {
    "an integer": (1,),
    "an integer inside": (slice(None), -1),
    "integers": (3, 0, 2),
    "slices": (slice(1, 3), slice(None), slice(2, 5)),
    "steps": (slice(None, None, 3), slice(None, None, -2), slice(5, 0, -4)),
    "a new axis": (Ellipsis, None, 3),
    "no elements": (slice(3, 1),),
}
HOLDERS: dict[str, Any] = {
    "nobody": lambda _: None,
    "view": lambda x: tp.reshape(x, (-1,)),
    "part": lambda x: x[3:],
    "tensor": tp.identity,
    "array": lambda x: x.numpy(),
}


@pytest.fixture(autouse=True)
def _on_opencl() -> Any:
    with tp.use_backend("opencl"):
        yield


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "float16"])
@pytest.mark.parametrize("single", [True, False])
def test_assignments_are_those_of_numpy(key: Any, dtype: str, single: bool) -> None:
    expected = X.astype(dtype)
    x = tp.asarray(expected)
    for turn in (1, 2):  # the first one copies
        value = np.array(turn if single else -expected[key] - turn, dtype)
        expected[key] = value
        x[key] = tp.asarray(value)
        np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_assignment_writes_in_place_if_nobody_holds_the_memory(holder: str) -> None:
    x = tp.asarray(X)
    x[0] = 1.0
    place = id(x._buffer.memory)
    held = HOLDERS[holder](x)
    before = None if held is None else np.array(held)
    x[3] = 2.0
    if holder != "array":  # which may be a copy of its own
        assert (id(x._buffer.memory) == place) == (holder == "nobody")
    np.testing.assert_array_equal(
        x.numpy(), np.concatenate([X[:1] * 0 + 1, X[1:3], X[3:] * 0 + 2])
    )
    if held is not None:
        np.testing.assert_array_equal(np.array(held), before)


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_update_of_a_donated_argument_writes_in_place(holder: str) -> None:
    f = tp.compile(lambda x, i: tp.dynamic_update_slice(x, X[:2, :1] * 0, (i, 2, 0)), donate="x")
    for at in (0, 2):
        x = tp.asarray(X)
        held = HOLDERS[holder](x)
        before = None if held is None else np.array(held)
        place = id(x._buffer.memory)
        result = f(x, tp.asarray(at))
        if holder != "array":
            assert (id(result._buffer.memory) == place) == (holder == "nobody")
        expected = X.copy()
        expected[at : at + 2, 2] = 0
        np.testing.assert_array_equal(result.numpy(), expected)
        if held is not None:
            np.testing.assert_array_equal(np.array(held), before)
