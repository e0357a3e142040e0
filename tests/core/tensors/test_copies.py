"""Copies of tensors: copy, deepcopy and pickle."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.tensors import total

import tensorplug as tp
from tensorplug.errors import DisposedError

if TYPE_CHECKING:
    from collections.abc import Callable


COPIES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
ALL: list[Callable[[Any], Any]] = [
    *COPIES,
    *[lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)],
]
IDS = ["copy", "deepcopy", *[f"pickle{p}" for p in range(pickle.HIGHEST_PROTOCOL + 1)]]

VALUES = [
    np.array([[1.5, -0.0], [np.nan, np.inf]], np.float32),
    np.array(2**63, np.uint64),
    np.array([True, False]),
    np.zeros((0, 3), np.float16),
    np.array([1 + 2j], np.complex64),
]


@pytest.mark.parametrize("duplicate", ALL, ids=IDS)
@pytest.mark.parametrize("values", VALUES, ids=lambda values: values.dtype.name)
@pytest.mark.usefixtures("engine")
def test_a_copy_has_the_same_elements(duplicate: Callable[[Any], Any], values: np.ndarray) -> None:
    x = tp.asarray(values)
    made = duplicate(x)
    assert made.device == "memory"
    x.dispose()  # the copy has a handle of its own
    engines.expect(made, values.dtype.name, values.shape, values)
    assert made.numpy().tobytes() == values.tobytes()  # signs of zeros too


@pytest.mark.parametrize("duplicate", COPIES, ids=IDS[:2])
@pytest.mark.usefixtures("engine")
def test_a_copy_stays_on_its_device_and_on_the_tape(duplicate: Callable[[Any], Any]) -> None:
    x = tp.asarray([1.0, 2.0])

    def f(p: dict[str, tp.Tensor]) -> tp.Tensor:
        return p["x"] * duplicate(p)["x"]

    with tp.use_backend("other"):
        assert duplicate(x).device == "memory"
    engines.expect(tp.grad(total(f))({"x": x})["x"], "float32", (2,), [2, 4])


@pytest.mark.parametrize("duplicate", ALL, ids=IDS)
@pytest.mark.usefixtures("engine")
def test_a_disposed_tensor_cannot_be_copied(duplicate: Callable[[Any], Any]) -> None:
    x = tp.ones((2,))
    x.dispose()
    with pytest.raises(DisposedError, match="was disposed"):
        duplicate(x)


@pytest.mark.parametrize("duplicate", ALL, ids=IDS)
@pytest.mark.usefixtures("engine")
def test_a_scope_owns_copies(duplicate: Callable[[Any], Any]) -> None:
    x = tp.ones((2,))
    with tp.tidy():
        made = duplicate(x)
    assert made.is_disposed
    assert not x.is_disposed
