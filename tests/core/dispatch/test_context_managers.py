"""Context managers used twice, and the tensors that a scope owns."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import BackendClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine

MANAGERS: list[Callable[[], Any]] = [lambda: tp.use_backend("other"), tp.tidy]


@pytest.mark.parametrize("make", MANAGERS, ids=["use_backend", "tidy"])
def test_entering_one_context_manager_inside_itself(
    engine: Engine, make: Callable[[], Any]
) -> None:
    manager, outside = make(), current_context()
    with manager:
        inside = current_context()
        with (
            pytest.raises(RuntimeError, match="has been entered already; create another"),
            manager,
        ):
            pytest.fail("it was entered twice")
        assert current_context() is inside
    assert current_context() is outside
    with manager:  # once more, now that it is free
        assert current_context() is not outside
    assert current_context() is outside


@pytest.mark.parametrize("make", MANAGERS, ids=["use_backend", "tidy"])
def test_entering_one_context_manager_in_two_threads(
    engine: Engine, make: Callable[[], Any]
) -> None:
    manager, raised = make(), []

    def enter() -> None:
        with engines.using(engine):
            before = current_context()
            try:
                with manager:
                    pass
            except RuntimeError as error:
                raised.append(str(error))
            assert current_context() is before

    with manager:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(raised) == 1
    assert "has been entered already" in raised[0]


def test_a_use_backend_that_cannot_open_can_be_tried_again(engine: Engine) -> None:
    engine.devices.source.refusals["other"] = tp.errors.BackendUnavailableError("no such device")
    manager = tp.use_backend("other")
    for _ in range(2):
        with pytest.raises(tp.errors.BackendUnavailableError), manager:
            pytest.fail("it was entered")
    del engine.devices.source.refusals["other"]
    with manager as name:
        assert name == "other"


def test_a_scope_owns_what_was_brought_from_another_device(engine: Engine) -> None:
    with tp.use_backend("other"):
        x = tp.asarray([1.0, 2.0])
    with tp.tidy():
        brought, same = tp.asarray(x, device="memory"), tp.asarray(tp.ones((2,)))
        assert (x.device, brought.device) == ("other", "memory")
    assert brought.is_disposed
    assert same.is_disposed
    assert not x.is_disposed
    engines.expect(x, "float32", (2,), [1, 2])


def test_a_closed_backend_does_not_become_the_active_one(engine: Engine) -> None:
    opened = engine.open("other")
    engine.devices.close("other")  # as another thread may do in the middle of set_backend
    with pytest.raises(BackendClosedError, match="'other' was closed"):
        engine.devices.activate(opened)
    assert tp.get_backend() == "memory"
    engines.expect(tp.asarray([1.0]) + 1, "float32", (1,), [2])
