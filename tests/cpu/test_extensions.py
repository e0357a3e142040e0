"""What third parties import to write CPU kernels; expected values are NumPy's on whole arrays."""

from __future__ import annotations

import doctest
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.testing import isolated_engine
from tensorplug_cpu import extensions
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.blas import one_thread_each
from tensorplug_cpu.extensions import elementwise, share_out

MANY = (1 << 19) + 3  # several blocks, in several threads, the last one shorter


def work(results, inputs):
    (total, scaled), (x, y, factor, absent) = results, inputs
    assert absent is None
    assert factor.shape in ((), total.shape)
    np.add(x, y, out=total)
    np.multiply(total, factor, out=scaled)
    np.divide(scaled, 0, out=scaled, where=x < 0)  # NumPy would warn


def types(shape):
    return [TensorType(dt.float32, shape), TensorType(dt.float64, shape)]


def test_the_documented_example():
    with isolated_engine("cpu"):
        found = doctest.testmod(extensions)
    assert (found.attempted > 5, found.failed) == (True, 0)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4), (MANY,), (3, 1 << 16)], ids=str)
@pytest.mark.parametrize("number", [(), (1,), (1, 1)], ids=str)
def test_results_are_those_of_whole_arrays(shape, number):
    x = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
    y, factor = np.ones(shape[::-1]).T, np.full(number, 3.0)
    total, scaled = elementwise(work, types(shape))(x, y, factor, None)
    wanted = (x + 1).astype(np.float32)
    with np.errstate(all="ignore"):
        product = wanted * np.float64(3)
        product = np.where(x < 0, product / 0, product)
    for made, right in ((total, wanted), (scaled, product)):
        assert (made.shape, made.dtype) == (shape, right.dtype)
        np.testing.assert_array_equal(made, right)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"outputs must have one shape, got .*float32\[2\]"):
        elementwise(work, [*types((2,)), *types((3,))])
    with pytest.raises(ValueError, match=r"an input has shape \(3,\), the outputs \(2,\)"):
        elementwise(work, types((2,)))(np.zeros(2), np.zeros(3), np.zeros(()), None)


def test_error_of_a_thread_is_raised():
    def fails(results, _inputs):
        if len(results[0]) < extensions._BLOCK:
            raise ZeroDivisionError("in the last block")

    with pytest.raises(ZeroDivisionError, match="last block"):
        elementwise(fails, types((MANY,)))()


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(parallel._workers, "_count", 2)
    monkeypatch.setattr(parallel._workers, "_tasks", None)
    monkeypatch.setattr(one_thread_each, "_limit", None)  # more libraries may be loaded by now


def threads_of_blas():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_each_piece_is_done_once(count):
    done = []
    share_out(done.append, count)
    assert sorted(done) == list(range(count))


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("count", [2, 3])
def test_pieces_run_in_parallel_with_one_blas_thread_each(count):
    """They wait for one another; NumPy would warn, which is an error in tests."""
    meeting = threading.Barrier(count)
    found = []

    def meet(number):
        meeting.wait(timeout=20)
        np.divide(np.ones(2), 0)
        found.append((number, threading.get_ident(), *threads_of_blas()))

    with threadpool_limits(3, user_api="blas"):
        share_out(meet, count)
        assert threads_of_blas() == {3}
    numbers, idents, threads = zip(*found, strict=True)
    assert (sorted(numbers), len(set(idents))) == (list(range(count)), count)
    assert set(threads) == {1}


@pytest.mark.usefixtures("three_threads")
def test_blas_threads_are_restored():
    with threadpool_limits(3, user_api="blas"):
        seen = []

        def look() -> None:
            seen.append(threads_of_blas())

        def nested() -> None:
            look()
            one_thread_each.run(look)
            look()

        one_thread_each.run(nested)
        look()
        assert seen == [{1}, {1}, {1}, {3}]

        def fork() -> None:
            one_thread_each.forget()  # as a forked child does, and ends nevertheless
            look()

        for work in (fork, look):
            one_thread_each.run(work)
        assert seen[4:] == [{3}, {1}]
        with pytest.raises(KeyboardInterrupt):
            one_thread_each.run(interrupt)
        assert threads_of_blas() == {3}


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("three_threads")
def test_nested_share_out_stays_in_its_thread():
    """All threads are taken by pieces that would wait for a free one."""
    meeting = threading.Barrier(3)
    found = []

    def outer(number):
        meeting.wait(timeout=20)
        share_out(lambda inner: found.append((number, inner, threading.get_ident())), 4)

    share_out(outer, 3)
    assert sorted(call[:2] for call in found) == [(a, b) for a in range(3) for b in range(4)]
    assert len({call[::2] for call in found}) == 3


@pytest.mark.usefixtures("three_threads")
def test_error_of_a_piece_stops_the_rest():
    begun = []

    def fails(number):
        begun.append(number)
        if number == 5:
            raise ZeroDivisionError("in piece 5")
        time.sleep(1e-3)  # so that the others have not done all of it by then

    with pytest.raises(ZeroDivisionError, match="in piece 5"):
        share_out(fails, 1000)
    assert len(begun) < 1000
    share_out(begun.append, 2)  # the threads are ready for more
