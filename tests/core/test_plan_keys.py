"""Plans that would outlive what they were made for, and keys that would serve another call."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError

from . import engines

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine

Pair = namedtuple("Pair", "height width")  # noqa: PYI024  # its equality is the point


def _twice() -> KernelTable:
    """Return a table with a kernel that only one backend has."""
    kernels = KernelTable()
    kernels.register(TWICE)(lambda x: np.asarray(x + x))
    return kernels


TWICE = engines.spec_of("Twice")


def test_a_fallback_forgets_a_backend_that_was_closed() -> None:
    tables = {
        "home": [engines.basic_kernels()],
        "away": [engines.basic_kernels(), _twice()],
    }
    engine = engines.make(tables, fallback="allow")
    with engines.using(engine):
        x = tp.asarray([1.0, 2.0])
        assert x.device == "home"
        for _ in range(2):
            for _ in range(2):  # the second time from the cache
                engines.expect(tp.run_kernel(TWICE, [x]), "float32", (2,), [2, 4])
            engine.devices.close("away")
        assert engine.devices.source.opened == ["home", "away", "away"]


@pytest.mark.parametrize("recording", [False, True])
def test_a_decomposition_stays_on_its_device(engine: Engine, recording: bool) -> None:
    def decomposed(x: tp.Tensor) -> tp.Tensor:
        half = x * 1.0
        tp.set_backend("other")  # as another thread may do at any moment
        return half + x

    with tp.register_decomposition(TWICE, decomposed):
        x = tp.asarray([1.0, 2.0])

        def run(x: tp.Tensor) -> tp.Tensor:
            result = tp.run_kernel(TWICE, [x])
            assert isinstance(result, tp.Tensor)
            assert result.device == "memory"
            return result

        found = tp.grad(run)(x) if recording else run(x)
        engines.expect(found, "float32", (2,), [2, 2] if recording else [2, 4])
    assert tp.get_backend() == "other"


def _sizes(engine: Engine) -> int:
    return sum(len(device.plans) + len(device.slow_plans) for device in engine.devices.listed())


def test_unhashable_arguments_fill_no_cache(engine: Engine) -> None:
    x = tp.ones((2, 3))
    tp.sum(x, axis=0)
    before = _sizes(engine)
    for _ in range(3):
        engines.expect(tp.sum(x, axis=np.array(0)), "float32", (3,), [2, 2, 2])
    assert _sizes(engine) == before


COLLISIONS: list[tuple[str, Callable[[Any], Any], Any, Any]] = [
    ("bool in a named tuple", lambda s: tp.reshape(tp.ones((2,)), s), Pair(1, 2), Pair(True, 2)),
    ("float in a named tuple", lambda s: tp.reshape(tp.ones((2,)), s), Pair(1, 2), Pair(1.0, 2)),
    ("bool in a tuple", lambda s: tp.reshape(tp.ones((2,)), s), (1, 2), (True, 2)),
]


@pytest.mark.parametrize(
    ("call", "good", "bad"), [row[1:] for row in COLLISIONS], ids=[row[0] for row in COLLISIONS]
)
def test_equal_keys_of_other_types_are_refused(
    engine: Engine, call: Callable[[Any], Any], good: Any, bad: Any
) -> None:
    assert good == bad
    engines.expect(call(good), "float32", (1, 2), [[1, 1]])
    with pytest.raises(ArgumentError, match="must be an integer"):
        call(bad)
    assert current_context().engine is engine
