"""Loops whose steps run natively: against the same loops in eager mode, step by step."""

from __future__ import annotations

import _thread
import ctypes
import threading
import time

import numpy as np
import pytest
from tests.core.support.interrupts import interruptible

import tensorplug as tp
from tensorplug.plugin import tree
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.jit.codegen import functions, processor
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.loops import products as loop_products
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.jit.stepping import bodies, products, running
from tensorplug_cpu.jit.stepping.driver import Place
from tensorplug_cpu.jit.stepping.values import Value

pytestmark = pytest.mark.usefixtures("loops")

RNG = np.random.default_rng(11)


@pytest.fixture
def native(monkeypatch):
    """The loops that ran natively, and how many were declined."""
    ran, declined = [], []

    def compile_loop(self, body):
        loop = bodies.compile_loop(body)
        if loop is None:
            declined.append(body)
            return None

        def run(*operands):
            ran.append(loop)
            return loop(*operands)

        return run

    monkeypatch.setattr(CpuBackend, "compile_loop", compile_loop)
    return ran, declined


def drawn(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def scanned(step, **options):
    return lambda h, *rest: tp.scan(lambda h, x: step(h, x, *rest[1:]), h, rest[0], **options)


def gru(h, x, w):
    xr, xn = tp.split(x, 2, axis=1)
    hr, hn = tp.split(tp.matmul(h, w), 2, axis=1)
    n = tp.tanh(xn + tp.nn.sigmoid(xr + hr) * hn)
    h = n + 0.5 * h
    return h, h


def gradient(f, wrt):
    def loss(*arrays):
        return sum(tp.sum(tp.square(x)) for x in tree.leaves(f(*arrays)))

    return tp.grad(loss, wrt)


def attend(h, x, w):
    """Batched products, one by a transposed operand, which is no constant."""
    scores = tp.nn.softmax(tp.matmul(h, tp.matrix_transpose(x)))
    return tp.matmul(scores, x), tp.matmul(tp.matrix_transpose(w), scores)


def reduces(h, x):
    rows = tp.sum(x, axis=1, keepdims=True) + tp.max(h, axis=0)
    return h * 0.5 + rows / 40, (tp.mean(x), tp.sum(h * x, axis=0), tp.all(x > h, axis=0))


def mixes(carry, x):
    flags, counts, wide = carry
    return (x > 0, counts + tp.astype(flags, "int16"), wide + tp.astype(x, "float64")), counts


def moves(h, x):
    """Views of a carry and of a slice, some with gaps, and results made of them."""
    turned = tp.permute_dims(h, (1, 0))[::-1]
    column = tp.broadcast_to(x[:, 1:2], (4, 3))
    both = tp.stack([column, turned, x], axis=1)
    h = tp.permute_dims(both[:, 0], (1, 0)) + h
    return h, (both, turned, tp.reshape(turned, (2, 6)), x[-1], x[1::2, 0])


def goes(a, b):
    return tp.while_loop(
        lambda c: tp.sum(tp.abs(c[0])) > 0.25,
        lambda c: (c[1] * 0.5, c[0] + 0.0, c[2] + 1, c[3]),
        (a, b, 0, b),
    )


# The function, its arguments, and how many loops run natively in a call.
LOOPS = {
    "GRU": (scanned(gru), (drawn(8, 32), drawn(20, 8, 64), drawn(32, 64) / 6), 1),
    "GRU, odd sizes": (scanned(gru), (drawn(3, 5), drawn(7, 3, 10), drawn(5, 10)), 1),
    "GRU, one row": (scanned(gru), (drawn(1, 33), drawn(4, 1, 66), drawn(33, 66) / 6), 1),
    "GRU, float64": (
        scanned(gru),
        (drawn(4, 9, dtype=float), drawn(6, 4, 18, dtype=float), drawn(9, 18, dtype=float) / 6),
        1,
    ),
    "from the end": (
        scanned(gru, reverse=True),
        (drawn(8, 32), drawn(20, 8, 64), drawn(32, 64) / 6),
        1,
    ),
    "gradient of a GRU": (
        gradient(scanned(gru), (0, 1, 2)),
        (drawn(8, 32), drawn(20, 8, 64), drawn(32, 64) / 6),
        2,
    ),
    "gradient from the end": (
        gradient(scanned(gru, reverse=True), (0, 1, 2)),
        (drawn(3, 5), drawn(7, 3, 10), drawn(5, 10)),
        2,
    ),
    "attention": (
        scanned(attend),
        (drawn(2, 3, 4, 8), drawn(6, 2, 3, 5, 8), drawn(4, 7)),
        1,
    ),
    "reductions": (scanned(reduces), (drawn(40, 40), drawn(5, 40, 40)), 1),
    "reductions of long columns": (scanned(reduces), (drawn(900, 3), drawn(5, 900, 3)), 1),
    "views": (scanned(moves), (drawn(3, 4), drawn(5, 4, 3)), 1),
    "swapped carries": (
        lambda a, b, xs: tp.scan(lambda c, x: ((c[1], c[0] + x), c), (a, b), xs),
        (drawn(6), drawn(6), drawn(5, 6)),
        1,
    ),
    "one value, two carries": (
        lambda a, b, xs: tp.scan(lambda c, x: ((c[0] * x, c[0] * x), c[1]), (a, b), xs),
        (drawn(6), drawn(6), drawn(5, 6)),
        1,
    ),
    "a slice, a constant and a captured value as carries": (
        lambda a, xs: tp.scan(lambda c, x: ((x, tp.asarray([1.0, 2.0]), a), c), (a, a, a), xs),
        (drawn(2), drawn(3, 2)),
        1,
    ),
    "carries of other types": (
        lambda a, xs: tp.scan(mixes, (a > 0, tp.astype(a, "int16"), tp.astype(a, "float64")), xs),
        (drawn(37), drawn(4, 37)),
        1,
    ),
    "one step": (scanned(lambda h, x: (h + x, h)), (drawn(3), drawn(1, 3)), 1),
    "no steps": (scanned(lambda h, x: (h + x, h)), (drawn(3), drawn(0, 3)), 0),
    "no elements": (scanned(lambda h, x: (h + x, h)), (drawn(0), drawn(4, 0)), 0),
    "scalars": (scanned(lambda h, x: (h * x, h)), (drawn(), drawn(5)), 1),
    "no carry": (lambda xs: tp.map(lambda x: tp.exp(x) * x[0], xs), (drawn(5, 3),), 1),
    "a counter": (
        lambda x: tp.fori_loop(2, 7, lambda i, y: y * 0.5 + i, x),
        (drawn(9),),
        1,
    ),
    "a condition": (goes, (drawn(9), drawn(9)), 1),
    "a condition that never holds": (goes, (np.zeros(3, np.float32), drawn(3)), 1),
    "a condition and a limit": (
        lambda x: tp.while_loop(lambda c: c[0] < 100, lambda c: c + 1, x, 5),
        (np.zeros(1, np.float32),),
        1,
    ),
    "wide sums": (
        scanned(lambda h, x: (h + tp.sum(x, axis=0), tp.sum(x))),
        (drawn(3), drawn(4, 300, 3)),
        1,
    ),
    "shared memory": (
        lambda x: tp.scan(lambda c, y: (c + y, c), x, tp.broadcast_to(x, (4, 5))),
        (drawn(5),),
        1,
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_native_loops_give_what_eager_ones_do(native, name):
    f, arrays, count = LOOPS[name]
    with tp.use_backend("cpu"):
        tensors = [tp.asarray(array) for array in arrays]
        kept = [tensor.numpy().copy() for tensor in tensors]
        expected = [x.numpy() for x in tree.leaves(f(*tensors))]
        compiled = tp.compile(f)
        for _ in range(2):
            native[0].clear()
            results = [x.numpy() for x in tree.leaves(compiled(*tensors))]
            assert len(native[0]) == count
            for ours, theirs in zip(results, expected, strict=True):
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                largest = np.abs(theirs.astype(float)).max(initial=1)
                np.testing.assert_allclose(
                    ours.astype(float), theirs.astype(float), rtol=2e-5, atol=2e-6 * largest
                )
        for tensor, before in zip(tensors, kept, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), before)


@pytest.mark.parametrize(
    "f",
    [
        scanned(lambda h, x: (tp.cumulative_sum(h) + x, h)),
        scanned(lambda h, x: (h[tp.argmax(x)] + x, h)),
        scanned(lambda h, x: (h + tp.astype(tp.astype(x, "complex64") * 1j, "complex64").real, h)),
    ],
    ids=["a kernel without a native form", "a slice that data choose", "complex numbers"],
)
def test_what_has_no_native_form_runs_step_by_step(native, f):
    ran, declined = native
    with tp.use_backend("cpu"):
        tensors = [tp.asarray(array) for array in (drawn(4), drawn(5, 4))]
        for ours, theirs in zip(tp.compile(f)(*tensors), f(*tensors), strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    assert not ran
    assert declined


def test_large_calls_are_left_to_threads_and_blas(native):
    ran, declined = native
    with tp.use_backend("cpu"):
        x, w = tp.asarray(drawn(1024, 1024)), tp.asarray(drawn(256, 256))
        tp.compile(lambda x: tp.scan(lambda h, _: (tp.exp(-h), None), x, None, 3)[0])(x)
        step = scanned(lambda h, x, w: (tp.matmul(h, w) + x, None))
        tp.compile(step)(w, tp.zeros((2, 256, 256)), w)
    assert (len(ran), len(declined)) == (0, 2)


def test_without_llvm_loops_run_step_by_step(native, monkeypatch):
    monkeypatch.setenv(JIT, "0")
    with tp.use_backend("cpu"):
        h, _ = tp.compile(scanned(lambda h, x: (h + x, h)))(tp.zeros(3), tp.ones((4, 3)))
    assert h.tolist() == [4, 4, 4]
    assert not native[0]


def test_threads_may_share_a_native_loop(native):
    f, (h, xs, w), _ = LOOPS["GRU"]
    given = [(np.full_like(h, number), xs, w) for number in range(4)]
    results: dict[int, list[np.ndarray]] = {}
    with tp.use_backend("cpu"):
        compiled = tp.compile(f)
        expected = [compiled(*map(tp.asarray, arrays))[0].numpy() for arrays in given]

    def work(number):
        with tp.use_backend("cpu"):
            tensors = [tp.asarray(array) for array in given[number]]
            results[number] = [compiled(*tensors)[0].numpy() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, states in results.items():
        for state in states:
            np.testing.assert_array_equal(state, expected[number])
    assert len(native[0]) == 84


def test_an_interrupt_ends_a_loop_that_does_not_end(native):
    """The loop comes back to the interpreter, which sees the signal."""
    with tp.use_backend("cpu"):
        endless = tp.compile(lambda x: tp.while_loop(lambda c: c[0] >= 0, lambda c: c * 0.5, x))
        endless(tp.asarray(drawn(1) ** 2 - 9))  # it ends at once, and is compiled
        timer = threading.Timer(0.3, _thread.interrupt_main)
        timer.start()
        began = time.monotonic()
        with interruptible(), pytest.raises(KeyboardInterrupt):
            endless(tp.asarray(drawn(1) ** 2))
        timer.join()
    assert len(native[0]) == 2
    assert time.monotonic() - began < 30


def test_results_own_their_memory_and_last(native):
    """A later run, with the same room, does not change the results of an earlier one."""
    f, arrays, _ = LOOPS["GRU"]
    with tp.use_backend("cpu"):
        compiled = tp.compile(f)
        tensors = [tp.asarray(array) for array in arrays]
        first = compiled(*tensors)
        kept = [x.numpy().copy() for x in first]
        compiled(tensors[0] + 1, *tensors[1:])
        for x, before in zip(first, kept, strict=True):
            np.testing.assert_array_equal(x.numpy(), before)
    assert len(native[0]) == 2


SIZES = [  # matrices, rows, columns, terms: around those of vectors and tiles
    *[(1, rows, columns, 5) for rows in (1, 2, 7, 8, 13) for columns in (1, 3, 8, 17, 48, 65)],
    *[(3, 4, 33, 1), (2, 25, 96, 40), (5, 1, 1, 1)],
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("sizes", SIZES)
def test_small_products(monkeypatch, sizes, width, dtype):
    if width > processor.vector_bytes():
        pytest.skip("the processor has no such vectors")
    monkeypatch.setattr(functions, "vector_bytes", lambda: width)
    monkeypatch.setattr(loop_products, "registers", lambda: 32 if width == 64 else 16)
    matrices, rows, columns, terms = sizes
    a = np.swapaxes(drawn(matrices, terms, rows, dtype=dtype), 1, 2)
    b = drawn(matrices, terms, columns + 3, dtype=dtype)[..., :columns]
    guarded = np.full(matrices * rows * columns + 8, 7, dtype)
    tile = products.choose_tile(rows, columns, a.itemsize)
    values = [Value(Place(running.ROOM), x.shape, x.dtype, x.strides) for x in (a, b)]
    (of_a, row, inner), (of_b, line, _) = (value.elements() for value in values)
    block = [address(a), address(b), address(guarded), matrices, rows, columns, terms]
    block += [of_a, row, inner, of_b, line, rows * columns]
    products.product_function(a.dtype.name, tile)((ctypes.c_int64 * len(block))(*block))
    result = guarded[:-8].reshape(matrices, rows, columns)
    expected = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = 4 * terms * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b)) + np.finfo(dtype).tiny
    assert (np.abs(result - expected) <= bound).all()
    assert (guarded[-8:] == 7).all()
