"""Memory in profiles: each allocation counts from the call that makes it to its release."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.observers.allocations import Allocations


def floats():
    return tp.asarray([1.0, 2.0, 3.0])


def test_views_share_and_inputs_are_not_new(engine):
    x = floats()
    with tp.profile() as p:
        y = tp.exp(x)
        z = tp.reshape(y, (3, 1))
        x.__pos__()  # the kernel hands its input on
        del y
        assert p.new_bytes == 12
        del z
        assert p.new_bytes == 0
    assert [kernel.new_bytes for kernel in p.kernels] == [12, 0, 0]
    assert [kernel.live_bytes for kernel in p.kernels] == [12, 12, 12]
    assert (p.new_tensors, p.peak_bytes) == (0, 12)


def test_results_of_decompositions_are_new_to_debug_mode(engine):
    p = tp.profile(tp.square, floats())
    assert [(kernel.name, kernel.new_bytes) for kernel in p.kernels] == [
        ("Multiply", 12),
        ("Square", 12),
    ]
    assert (p.new_bytes, p.peak_bytes, p.new_tensors) == (12, 12, 1)


def test_the_tape_holds_what_it_saved(engine):
    held = []

    def loss(x):
        y = tp.exp(x)
        y.dispose()  # the tape has saved it for the gradient
        held.append(p.new_bytes)
        return tp.sum(tp.exp(x))

    x = floats()
    with tp.profile() as p:
        gradient = tp.grad(loss)(x)
    assert held == [0]  # no one asked for its gradient: the node went with the tensor

    def kept(x):
        y = tp.exp(x)
        z = tp.negative(y)
        y.dispose()
        held.append(p.new_bytes)
        return tp.sum(z)

    with tp.profile() as p:
        gradient = tp.grad(kept)(x)
    assert held[-1] == 24  # the disposed one and its negative
    assert p.new_bytes == gradient.nbytes
    assert p.new_tensors == 1


def test_nothing_is_left_behind_in_a_loop_without_the_garbage_collector(engine):
    x = floats()
    gc.disable()
    try:
        with tp.profile() as p:
            for _ in range(5):
                tp.grad(lambda x: tp.sum(tp.exp(-x)))(x)
                assert p.new_bytes == 0
    finally:
        gc.enable()
    assert len({kernel.live_bytes for kernel in p.kernels if kernel.name == "Exp"}) == 1


# Counting -------------------------------------------------------------------------------


def test_a_piece_is_counted_once_however_many_share_it(engine):
    memory = Allocations()
    x = floats()
    assert memory.count([x, tp.reshape(x, (3, 1)), x]) == 12
    assert memory.count([x.reshape((1, 3))]) == 12  # still since the beginning
    assert memory.count([x], since=memory.mark()) == 0
    assert (memory.bytes, memory.peak) == (12, 12)


def test_views_of_the_inputs_are_no_allocations(engine):
    memory = Allocations()
    x = floats()
    view = tp.reshape(x, (3, 1))
    assert memory.count([view], inputs=[x]) == 0
    assert (memory.bytes, memory.holds(x), memory.holds(view)) == (0, False, False)


def test_the_bytes_are_those_of_the_whole_allocation(engine):
    big = np.zeros(1000, np.float32)
    spec = engines.spec_of("Part")
    with tp.register_kernel(spec, "memory", lambda x: big.copy()[: x.size]):
        p = tp.profile(tp.run_kernel, spec, [floats()])
    assert p.kernels[0].new_bytes == 4000


def test_a_number_used_again_is_another_piece(engine):
    """Memory that was freed is handed out again under the same name."""
    memory = Allocations()
    names = set()
    for _ in range(50):
        x = floats()
        names.add(engine.open("memory").backend.allocation(x._buffer)[0])
        assert memory.count([x]) == 12
        assert memory.bytes == 12
        del x
    assert len(names) < 50  # or nothing was tested
    assert (memory.bytes, memory.peak) == (0, 12)


def test_devices_have_memory_of_their_own(engine):
    memory = Allocations()
    x = floats()
    y = x.to("other")
    for name in ("memory", "other"):
        engine.open(name).backend.allocation = lambda _buffer: ("same", 12)
    memory.count([x, y])
    assert memory.bytes == 24


def test_a_tensor_that_another_thread_disposed_of_is_none(engine):
    memory = Allocations()
    x, y = floats(), floats()
    memory.count([x, y])
    x.dispose()
    assert memory.count([x], inputs=[x]) == 0
    assert not memory.holds(x)
    assert memory.bytes == 12
    engine.devices.close("memory")
    assert (memory.holds(y), memory.count([y])) == (False, 0)


class Solid:
    """A buffer that cannot be referred to weakly."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


@pytest.fixture
def solid(engine, monkeypatch):
    backend = engine.open("memory").backend
    monkeypatch.setattr(backend, "from_host", lambda array: Solid(np.array(array)))
    monkeypatch.setattr(
        backend, "allocation", lambda buffer: (id(buffer.array), buffer.array.nbytes)
    )
    return engine


def test_buffers_without_weak_references_live_as_long_as_their_tensors(solid):
    with tp.profile() as p:
        x, y = floats(), floats()
        assert (p.new_bytes, p.new_tensors) == (24, 2)
        del x
        assert (p.new_bytes, p.new_tensors) == (12, 1)
        y.dispose()
        assert (p.new_bytes, p.new_tensors) == (0, 0)
    assert p.peak_bytes == 24


def test_other_threads_may_free_what_was_counted(engine):
    memory = Allocations()
    tensors = [[floats() for _ in range(200)] for _ in range(8)]
    for tensor in tensors:
        memory.count(tensor)
    assert memory.bytes == 8 * 200 * 12
    go = threading.Event()

    def drop(parts):
        go.wait()
        parts.clear()

    threads = [threading.Thread(target=drop, args=(tensor,)) for tensor in tensors[1:]]
    for thread in threads:
        thread.start()
    go.set()
    for _ in range(50):
        memory.count(tensors[0])
    for thread in threads:
        thread.join()
    assert memory.bytes == 200 * 12
