"""Memory of large results, which is recycled once no array can see it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import TensorType
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.memory import pool as memory_pool
from tensorplug_cpu.memory.pool import LARGE, Pool

SIDE = 1024  # a float32 matrix of this side is twice as large as LARGE
FLOAT = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def _on_the_cpu():
    memory_pool.pool.trim()
    with tp.use_backend("cpu"):
        yield
    memory_pool.pool.trim()


@pytest.fixture
def matrix() -> tp.Tensor:
    return tp.asarray(np.random.default_rng(0).normal(size=(SIDE, SIDE)).astype(np.float32))


def address(tensor: tp.Tensor) -> int:
    return int(tensor.numpy().__array_interface__["data"][0])


def test_memory_of_a_dead_result_is_reused(matrix):
    y = matrix + matrix
    where = address(y)
    kept = y.numpy().copy()
    del y
    gc.collect()
    z = matrix * 2.0
    assert address(z) == where
    np.testing.assert_array_equal(z.numpy(), kept)


VIEWS = {
    "the tensor itself": lambda y: y,
    "a tensor made of it": lambda y: tp.reshape(y, (-1,)),
    "a slice": lambda y: y[3:5, 7:9],
    "a transpose": lambda y: y.T,
    "an array": lambda y: y.numpy(),
    "an array's view": lambda y: y.numpy()[::2].T,
    "DLPack": np.from_dlpack,
    "a capsule": lambda y: y.__dlpack__(max_version=(1, 0)),
    "a memoryview": lambda y: memoryview(y.numpy()),
    "the tape": lambda y: tp.vjp(tp.square, y)[1],
}


@pytest.mark.parametrize("what", VIEWS)
def test_visible_memory_is_not_reused(what, matrix):
    y = matrix + 1.0
    where = address(y)
    view = VIEWS[what](y)
    del y
    gc.collect()
    others = [matrix * 3.0, matrix * 4.0]
    assert where not in map(address, others)
    del view
    gc.collect()
    others.append(matrix * 5.0)
    assert where in map(address, others)


def test_values_stay_while_others_come_and_go(matrix):
    rows = [matrix + float(i) for i in range(4)]
    views = [row.numpy()[i] for i, row in enumerate(rows)]
    expected = [matrix.numpy()[i] + np.float32(i) for i in range(4)]
    del rows
    for i in range(12):
        _ = tp.exp(matrix * float(i))
    for view, values in zip(views, expected, strict=True):
        np.testing.assert_array_equal(view, values)


def test_small_results_are_not_recycled():
    before = memory_pool.pool.pieces
    small = tp.ones((LARGE // 4 - 1,)) + 1.0
    assert small.nbytes < LARGE
    del small
    assert memory_pool.pool.pieces == before


def test_memory_reports_idle_pieces(matrix):
    nbytes = (matrix + 1.0).nbytes
    gc.collect()
    found = tp.memory()["cpu"].backend
    assert found["pool_pieces"] >= 1
    assert found["pool_bytes"] >= nbytes
    held = tp.memory()["cpu"].bytes
    y = matrix + 1.0
    assert tp.memory()["cpu"].bytes - held == pytest.approx(y.nbytes, rel=1 / 8)


def test_programs_free_the_pool():
    memory_pool.pool.trim()
    x = tp.asarray(np.ones(LARGE // 4, np.float32), device="cpu") + 1
    del x
    held = memory_pool.pool.bytes
    assert held >= LARGE
    assert (tp.trim_memory("cpu"), memory_pool.pool.bytes) == (held, 0)


# The pool by itself -----------------------------------------------------------------------


def test_pool_is_bounded():
    pool = Pool(3 * LARGE)
    arrays = [pool.empty((LARGE // 4,), FLOAT) for _ in range(5)]
    assert (pool.bytes, pool.pieces) == (0, 0)
    arrays.clear()
    assert (pool.bytes, pool.pieces) == (3 * LARGE, 3)
    pool.trim()
    assert (pool.bytes, pool.pieces) == (0, 0)


def test_idle_pieces_are_freed():
    pool = Pool(1 << 30)
    pool.empty((LARGE,), FLOAT)
    assert pool.pieces == 1
    for _ in range(2 * 256):
        pool.empty((LARGE // 4,), FLOAT)
    assert (pool.bytes, pool.pieces) == (LARGE, 1)  # the one that was wanted again and again


@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 3 * LARGE - 5, 17 * LARGE + 12345])
def test_sizes_are_rounded_by_an_eighth_at_most(size):
    pool = Pool(1 << 30)
    array = pool.empty((size,), np.dtype(np.uint8))
    assert array.shape == (size,)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    array[-1] = 7
    del array
    assert size <= pool.bytes <= size * 9 / 8


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float64", "complex128"])
def test_dtypes(name):
    array = Pool(0).empty((3, LARGE), np.dtype(name))
    assert (array.dtype, array.shape) == (np.dtype(name), (3, LARGE))


def test_sizes_share_the_limit_when_memory_is_taken_anew():
    pool = Pool(4 * LARGE)
    sizes = [LARGE, 2 * LARGE, 4 * LARGE]
    arrays = [pool.empty((size,), np.dtype(np.uint8)) for size in sizes]
    arrays.clear()
    assert pool.bytes == sum(sizes)  # each size keeps to the limit
    pool.empty((3 * LARGE,), np.dtype(np.uint8))
    assert LARGE <= pool.bytes <= 7 * LARGE


def test_no_python_code_runs_when_a_lease_ends():
    """An interrupt there would be lost."""
    pool, called = Pool(1 << 30), []
    array = pool.empty((LARGE,), FLOAT)
    sys.setprofile(lambda frame, event, _: event == "call" and called.append(frame))
    try:
        del array
    finally:
        sys.setprofile(None)
    assert pool.pieces == 1
    assert called == []


def test_threads_never_share_a_piece():
    pool = Pool(1 << 30)
    wrong = []

    def work(number: int) -> None:
        for _ in range(60):
            array = pool.empty((LARGE // 4,), FLOAT)
            array[...] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tracing_sees_every_allocation():
    pool = Pool(1 << 30)
    pool.empty((LARGE,), FLOAT)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        array = pool.empty((LARGE,), FLOAT)
        assert tracemalloc.get_traced_memory()[0] - before >= array.nbytes
        del array
        assert tracemalloc.get_traced_memory()[0] - before < LARGE
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_computes_too(matrix):
    expected = tp.exp(matrix).numpy().copy()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(tp.exp(matrix).numpy(), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Several threads --------------------------------------------------------------------------


SHAPES = [
    ("vector", (1 << 21,), (1 << 21,)),
    ("matrix and row", (2048, 1024), (1024,)),
    ("matrix and column", (2048, 1024), (2048, 1)),
    ("a long last axis", (2, 1 << 20), (2, 1)),
    ("and one number", (2048, 1024), ()),
    ("a longer rank", (1024,), (1, 2048, 1024)),
]


@pytest.mark.parametrize(("what", "a", "b"), SHAPES, ids=[shape[0] for shape in SHAPES])
@pytest.mark.parametrize("function", [np.add, np.power])
def test_parts_make_the_whole(what, a, b, function):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.5, 2, a), rng.uniform(0.5, 2, b)
    out = TensorType(tp.float64, np.broadcast_shapes(a, b))
    result = parallel.ufunc_kernel(function, out)(x, y)
    expected = function(x, y)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape), what
    np.testing.assert_array_equal(result, expected)


def test_results_are_laid_out_as_their_inputs():
    x = np.random.default_rng(2).normal(size=(64, 256, 256))
    turned = x.transpose(2, 0, 1)
    result = parallel.ufunc_kernel(np.exp, TensorType(tp.float64, turned.shape))(turned)
    assert result.strides == np.exp(turned).strides
    np.testing.assert_array_equal(result, np.exp(turned))


def test_error_of_a_part_is_raised():
    done = []

    def work(result, part):
        done.append(part[0])
        if part[0] > 0:
            raise ValueError("a part")

    numbers = np.arange(8)
    if parallel.thread_count() < 2:
        pytest.skip("one processor")
    with pytest.raises(ValueError, match="a part"):
        parallel.share_out(work, [numbers], np.empty(8), parts=2)
    assert sorted(done) == [0, 4]


def test_no_floating_point_warnings(matrix):
    with np.errstate(all="raise"):
        assert np.isinf(tp.exp(matrix * 1e5).numpy()).any()


def test_openmps_limit_holds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert parallel.thread_count() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert parallel.thread_count() >= 1
