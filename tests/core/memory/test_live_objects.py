"""Finding live objects does not disturb threads that build tuples meanwhile."""

from __future__ import annotations

import gc
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import tensorplug as tp
from tensorplug.autodiff.tape import CallNode
from tensorplug.memory.live_objects import live_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.engine import Engine

CALLS = 150  # each was disturbing one call in two
WALKS: dict[str, Callable[[], object]] = {
    "memory": tp.memory,
    "profile": lambda: tp.profile(tp.ones, (2,)).new_tensors,
    "remove_backend": lambda: reopen("other"),
}


def reopen(name: str) -> None:
    with tp.use_backend(name):
        tp.ones((2,))
    tp.remove_backend(name)


@pytest.fixture
def hurried() -> Iterator[None]:
    """Let threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.usefixtures("hurried")
def test_other_threads_build_tuples(engine: Engine, walk: Callable[[], object]) -> None:
    done, failed, built = threading.Event(), [], [0]

    def build() -> None:
        while not done.is_set():
            try:
                built[0] += len(tuple(number for number in range(40)))
            except SystemError as error:
                failed.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(CALLS):
            walk()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert built[0]
    assert not failed


def test_it_finds_the_objects_of_one_class() -> None:
    class Even:
        __slots__ = ("__weakref__",)

    class Odd(Even):
        __slots__ = ()

    evens, odds = [Even() for _ in range(3)], [Odd()]
    assert sorted(map(id, live_objects(Even))) == sorted(map(id, evens))
    assert live_objects(Odd) == odds
    del evens[0]
    assert len(live_objects(Even)) == 2


def test_a_tuple_of_the_class_itself_in_this_thread() -> None:
    result = tuple(live_objects(CallNode) is None or tp.Tensor for _ in range(40))
    assert result == (tp.Tensor,) * 40


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_stays_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        live_objects(CallNode)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
