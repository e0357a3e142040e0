"""Scopes of ``tidy`` where control flow is not that of calls: tasks, threads, generators."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import threading

import pytest

import tensorplug as tp
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("engine")


def make(value=1.0):
    return tp.add(tp.asarray([value]), 0.0)


# What does not do its work at once -----------------------------------------------------------


async def coroutine(*_):
    pytest.fail("it ran")


def generator(*_):
    pytest.fail("it ran")
    yield


async def asynchronous(*_):
    pytest.fail("it ran")
    yield


class Model:
    async def __call__(self, x):
        return x

    def step(self, _x):
        yield


class Awaitable:
    def __await__(self):
        yield


REFUSED = [
    (coroutine, "'coroutine' is a coroutine function.*write `with tidy.*await"),
    (functools.partial(coroutine, 1), "is a coroutine function"),
    (generator, "'generator' is a generator function.* function that returns a list"),
    (asynchronous, "'asynchronous' is a generator function"),
    (Model().step, "'step' is a generator function"),
    (Model(), "the result contains an unfinished coroutine.*write `with tidy.*await"),
    (lambda _: coroutine(), "the result contains an unfinished coroutine"),
    (
        lambda x: (x for _ in range(2)),
        "the result contains an unfinished generator.*return a list",
    ),
    (lambda _: asynchronous(), "the result contains an unfinished async_generator.*return a list"),
    (lambda x: {"a": [x, coroutine()]}, "the result contains an unfinished coroutine"),
    (lambda _: Awaitable(), "the result contains an unfinished Awaitable.*await"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=[m[:45] for _, m in REFUSED])
def test_generators_and_coroutines_are_refused(function, message):
    made = []

    def work(x):
        made.append(make())
        return function(x)

    x = tp.asarray([1.0])
    with pytest.raises(ArgumentError, match=message):
        tp.tidy(function, x)
    if "result" in message:  # raised after the function ran: its tensors are freed
        with pytest.raises(ArgumentError, match=message):
            tp.tidy(work, x)
        assert made[0].is_disposed
    assert not x.is_disposed
    gc.collect()  # a coroutine that was never awaited would warn, and fail the test


# Tasks ----------------------------------------------------------------------------------------


def test_tasks_have_scopes_of_their_own():
    async def task(turns, value):
        made, kept = [], None
        for _ in range(3):
            with tp.tidy():
                made.append(make(value))
                await turns.wait()
                made.append(make(value))
                kept = tp.keep(make(value))
                assert not made[-2].is_disposed
                await turns.wait()
                assert tp.tidy(tp.add, made[-1], kept).tolist() == [2 * value]
            assert [tensor.is_disposed for tensor in made[-2:]] == [True, True]
        return kept

    async def main():
        turns = asyncio.Barrier(3)
        return await asyncio.gather(*(task(turns, float(value)) for value in (1, 2, 3)))

    assert [tensor.tolist() for tensor in asyncio.run(main())] == [[1], [2], [3]]
    assert current_context().scope is None


def test_one_task_ends_its_scope_while_another_is_inside():
    """First in, first out: not the order of a stack."""

    async def main():
        first_in, first_out = asyncio.Event(), asyncio.Event()

        async def first():
            with tp.tidy():
                x = make(1.0)
                first_in.set()
                await asyncio.sleep(0)
            assert x.is_disposed
            first_out.set()

        async def second():
            await first_in.wait()
            with tp.tidy():
                y = make(2.0)
                await first_out.wait()
                assert y.tolist() == [2]
            assert y.is_disposed

        await asyncio.gather(first(), second())

    asyncio.run(main())


def test_a_task_started_inside_shares_the_scope_and_may_outlive_it():
    async def main():
        closed = asyncio.Event()
        made = []

        async def child():
            made.append(make(1.0))
            await closed.wait()
            made.append(make(2.0))
            with tp.tidy():
                made.append(make(3.0))
            return tp.tidy(lambda: make(4.0))

        with tp.tidy():
            with tp.tidy():
                task = asyncio.create_task(child())
                await asyncio.sleep(0)
            closed.set()
            result = await task
            states = [tensor.is_disposed for tensor in (*made, result)]
        assert states == [True, False, True, False]
        assert (made[1].is_disposed, result.is_disposed) == (True, True)  # by the outer one

    asyncio.run(main())


def test_a_thread_shares_the_scope_if_it_runs_in_a_copy_of_the_context():
    made = {}

    def work(name):
        made[name] = make()

    context = current_context()
    with tp.tidy():
        for name, run in (
            ("copied", functools.partial(contextvars.copy_context().run, work, "copied")),
            ("bare", functools.partial(bare, context, work, "bare")),
        ):
            thread = threading.Thread(target=run, name=name)
            thread.start()
            thread.join()
    assert (made["copied"].is_disposed, made["bare"].is_disposed) == (True, False)


def bare(context, work, name):
    with use_context(context):
        work(name)


def test_threads_in_one_scope_at_the_same_time():
    kept, made = [], []

    def work(start):
        start.wait()
        for number in range(300):
            made.append(make())
            if number % 100 == 0:
                kept.append(tp.keep(make()))

    start = threading.Barrier(4)
    with tp.tidy():
        contexts = [contextvars.copy_context() for _ in range(4)]
        threads = [
            threading.Thread(target=context.run, args=(work, start)) for context in contexts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(made), len(kept)) == (1200, 12)
    assert all(tensor.is_disposed for tensor in made)
    assert not any(tensor.is_disposed for tensor in kept)


# Generators -----------------------------------------------------------------------------------


def halfway(made):
    with tp.tidy():
        made.append(make())
        yield
        pytest.fail("it went on")


@pytest.mark.parametrize("close", [lambda item: item.close(), lambda _: None])
def test_a_generator_that_is_left_half_way(close):
    made = []
    left = halfway(made)
    next(left)
    assert not made[0].is_disposed
    close(left)
    del left
    assert made[0].is_disposed
    assert current_context().scope is None


def test_a_generator_that_is_closed_in_another_context():
    made = []

    def start():
        left = halfway(made)
        next(left)
        return left, current_context()

    copied = contextvars.copy_context()
    left, context = copied.run(start)
    left.close()
    assert made[0].is_disposed
    assert current_context().scope is None
    # The copied context leaves the scope, too; no scope frees tensors made in it.
    assert copied.run(current_context) is current_context()
    assert context is not current_context()
    later = copied.run(make)
    with tp.tidy():
        inner = copied.run(tp.tidy, make, 2.0)
    assert (later.is_disposed, inner.is_disposed) == (False, False)


def test_an_event_loop_closes_an_asynchronous_generator():
    made = []

    async def steps():
        with tp.tidy():
            made.append(make())
            yield
            pytest.fail("it went on")

    async def main():
        async for _ in steps():
            break
        gc.collect()
        await asyncio.sleep(0.01)
        assert made[0].is_disposed
        assert tp.tidy(make).tolist() == [1]

    asyncio.run(main())
    assert current_context().scope is None


def test_scopes_left_in_another_order_than_a_stacks():
    before = current_context()
    made = []
    left = halfway(made)
    next(left)
    with tp.tidy():
        x = make()
        left.close()
        assert made[0].is_disposed
        assert not x.is_disposed
    assert x.is_disposed
    context = current_context()
    assert (context.scope, context.device, context.recording) == (None, before.device, None)
    y = make()
    assert not y.is_disposed
    use_context(before).__enter__()  # the very context, for the fixture that looks


# Entering ---------------------------------------------------------------------------------------


def test_one_scope_is_entered_once_at_a_time():
    scope = tp.tidy()
    with scope:
        x = make()
        with pytest.raises(
            RuntimeError, match="this tidy has been entered already; create another"
        ):
            scope.__enter__()
        assert not x.is_disposed
        y = make()
    assert (x.is_disposed, y.is_disposed) == (True, True)
    with scope:  # again, afterwards
        x = make()
    assert x.is_disposed


def test_a_function_may_tidy_itself():
    def total(depth):
        made.append(make(float(depth)))
        below = tp.tidy(total, depth - 1) if depth else make(0.0)
        assert [tensor.is_disposed for tensor in made[: 5 - depth]] == [False] * (5 - depth)
        return tp.add(made[4 - depth], below)

    made = []
    assert tp.tidy(total, 4).tolist() == [10]
    assert all(tensor.is_disposed for tensor in made)


def test_a_long_scope_does_not_grow():
    with tp.tidy() as scope:
        for number in range(5000):
            make(float(number % 7))
        assert len(scope._scope._members) < 500


def test_an_id_that_is_used_again():
    """A tensor that belongs to no scope takes the place of one that died in a scope."""
    x = tp.asarray([1.0])

    def inner():
        number = id(tp.identity(x))
        made = [tp.Tensor._of(x._buffer, x._placement) for _ in range(1000)]
        (result,) = [tensor for tensor in made if id(tensor) == number]
        return result

    with tp.tidy():
        kept = tp.tidy(inner)
    assert kept.tolist() == [1]
