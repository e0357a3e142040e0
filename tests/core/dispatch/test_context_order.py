"""Contexts left in another order, thread or task than entered: each undoes its own change only."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import tensorplug as tp
from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

pytestmark = pytest.mark.usefixtures("engine")

BLOCKS: dict[str, Callable[[], Any]] = {
    "use_backend": lambda: tp.use_backend("other"),
    "tidy": tp.tidy,
    "debug": tp.debug,
    "profile": tp.profile,
    "trace_dispatch": tp.trace_dispatch,
}
ORDERS = list(itertools.permutations(range(3)))


def block(make: Callable[[], Any]) -> Iterator[None]:
    with make():
        yield


def changes() -> tuple[str | None, int, int]:
    """Return the device, the number of scopes and the number of observers."""
    context = current_context()
    scopes, scope = 0, context.scope
    while scope is not None:
        scopes += not scope.closed
        scope = scope.parent
    return context.device and context.device.name, scopes, len(context.observers)


def expected(names: list[str]) -> tuple[str | None, int, int]:
    observers = {"use_backend": 0, "tidy": 0, "debug": 2, "profile": 1, "trace_dispatch": 1}
    device = "other" if "use_backend" in names else None
    return device, names.count("tidy"), sum(observers[name] for name in names)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("names", list(itertools.permutations(BLOCKS, 3)), ids="-".join)
def test_generators_that_end_in_any_order(names: tuple[str, ...], order: tuple[int, ...]) -> None:
    before = current_context()
    generators = [block(BLOCKS[name]) for name in names]
    for generator in generators:
        next(generator)
    inside = list(names)
    assert changes() == expected(inside)
    for at in order:
        generators[at].close()  # type: ignore[attr-defined]  # it is a generator
        inside.remove(names[at])
        assert changes() == expected(inside)
        assert (tp.ones((2,)) + 1).device == ("other" if "use_backend" in inside else "memory")
    assert current_context() is before


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_another_thread_leaves(name: str) -> None:
    before, generator = current_context(), block(BLOCKS[name])
    tp.ones((2,)) + tp.ones((2,))  # the plan is cached
    next(generator)
    tp.ones((2,)) + tp.ones((2,))
    thread = threading.Thread(target=generator.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()
    assert (tp.ones((2,)) + tp.ones((2,))).device == "memory"
    assert current_context() is before


def test_a_block_that_ends_under_a_function_of_its_own() -> None:
    """The function's context is a whole; the block's change ends with the function."""
    before, generator = current_context(), block(BLOCKS["use_backend"])
    next(generator)

    def square(x: tp.Tensor) -> tp.Tensor:
        generator.close()  # type: ignore[attr-defined]
        return tp.sum(x * x)

    assert tp.grad(square)(tp.asarray([3.0])).tolist() == [6.0]
    assert tp.get_backend() == "memory"
    assert current_context() is before


def test_tasks_and_threads_started_inside_keep_the_change() -> None:
    def compute(_: object = None) -> str:
        x = tp.ones((2,))
        return (x + x).device

    async def later(ended: asyncio.Event) -> list[str]:
        first = compute()
        await ended.wait()
        return [first, compute(), compute()]

    async def run() -> list[str]:
        ended = asyncio.Event()
        with tp.use_backend("other"):
            task = asyncio.create_task(later(ended))
            await asyncio.sleep(0)
            copied = contextvars.copy_context()
        ended.set()
        result = await task
        thread = threading.Thread(target=lambda: result.append(copied.run(compute)))
        thread.start()
        thread.join()
        return [*result, compute()]

    assert asyncio.run(run()) == ["other"] * 4 + ["memory"]


async def _rows() -> AsyncIterator[str]:
    with tp.use_backend("other"):
        yield (tp.ones((2,)) + 1).device
        yield "never reached"


async def _abandon() -> None:
    rows = _rows()
    async for device in rows:
        assert device == "other"
        break
    del rows  # the event loop closes it, in a task of its own
    for _ in range(3):
        await asyncio.sleep(0)


async def _close_in_a_task() -> None:
    rows = _rows()
    assert await anext(rows) == "other"
    await asyncio.create_task(rows.aclose())


async def _close_in_a_copy() -> None:
    def rows() -> Iterator[str]:
        with tp.use_backend("other"):
            yield tp.get_backend()

    given = rows()
    assert next(given) == "other"
    contextvars.copy_context().run(given.close)


async def _cancel() -> None:
    async def wait() -> None:
        async for _ in _rows():
            await asyncio.sleep(60)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _end_in_a_thread() -> None:
    block = tp.use_backend("other")
    block.__enter__()
    await asyncio.to_thread(block.__exit__, None, None, None)


@pytest.mark.parametrize(
    "leave", [_abandon, _close_in_a_task, _close_in_a_copy, _cancel, _end_in_a_thread]
)
def test_a_block_that_ends_in_another_task_ends_for_who_entered_it(
    leave: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    async def run() -> tuple[str, str, str]:
        before = (tp.ones((2,)) + 1).device
        await leave()
        return before, tp.get_backend(), (tp.ones((2,)) + 1).device

    assert asyncio.run(run()) == ("memory",) * 3
    assert tp.get_backend() == "memory"


@pytest.mark.parametrize("name", BLOCKS)
def test_an_exit_stack(name: str) -> None:
    before = current_context()
    with ExitStack() as stack:
        stack.enter_context(BLOCKS[name]())
        assert changes() == expected([name])
    assert current_context() is before


@pytest.mark.parametrize("name", BLOCKS)
def test_methods_called_by_hand(name: str) -> None:
    before, manager = current_context(), BLOCKS[name]()
    manager.__enter__()
    assert changes() == expected([name])
    manager.__exit__(None, None, None)
    assert current_context() is before
    manager.__exit__(None, None, None)
    assert current_context() is before
