"""TensorFlow.js's behaviour, scenarios 4 to 8, 10 and 11: scopes, moving, counting, leaks.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import gc
from functools import partial

import numpy as np
import pytest
from tests.core.support.counting import CountingSource
from tests.core.support.engines import MemoryBackend, expect, spec_of

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import Context, use_context
from tensorplug.engine.engine import Engine
from tensorplug.engine.registry import Registry
from tensorplug.errors import DisposedError, LeakError
from tensorplug.observers.leaks import LeakCheck
from tensorplug.plugins import catalogue
from tensorplug.testing import isolated_engine


def counted(device="memory"):
    """Return the tensors, buffers and bytes held on a device."""
    gc.collect()
    held = tp.memory()[device]
    return held.tensors, held.buffers, held.bytes


@pytest.fixture
def start(engine):
    """Open the backend and return what is held then."""
    tp.get_backend()
    return counted()


def scalar(value):
    return tp.asarray(value, dtype=tp.float32)


# Scopes ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("start")
def test_scenario_04_nested_tidies():
    a, zeros = tp.asarray([1.0, 2.0, 3.0]), tp.zeros((3,))
    before = counted()[0]
    alive = []

    def inner():
        b = zeros
        for _ in range(3):
            b = a + b
        return a + b

    def outer():
        result = tp.tidy(inner)
        alive.append(counted()[0])
        expect(result, "float32", (3,), [4, 8, 12])

    tp.tidy(outer)
    assert (before, alive, counted()[0]) == (2, [3], 2)


def test_scenario_05_an_exception_spares_what_is_kept(start):
    made = []

    def work():
        made.append(tp.keep(scalar(2)))
        made.append(scalar(3))
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        tp.tidy(work)
    assert [tensor.is_disposed for tensor in made] == [False, True]
    assert counted() == (start[0] + 1, start[1] + 1, start[2] + 4)
    expect(made[0], "float32", (), 2)


def test_scenario_06_containers_and_other_things_as_results(start):
    def work():
        scalar(9)
        return {"a": scalar(1), "b": "hello", "c": [scalar(2), {"d": scalar(3)}], "e": 5}

    result = tp.tidy(work)
    assert counted()[0] == start[0] + 3
    assert (result["b"], result["e"]) == ("hello", 5)
    found = [result["a"], result["c"][0], result["c"][1]["d"]]
    assert [tensor.item() for tensor in found] == [1, 2, 3]


@pytest.mark.usefixtures("engine")
def test_row_44_a_container_may_hold_itself_but_must_be_one_that_is_known():
    def cyclic():
        made = [scalar(1)]
        made.append(made)
        return made

    assert tp.tidy(cyclic)[0].item() == 1
    # As in TensorFlow.js, whose Map and Set are not looked into either.
    hidden = tp.tidy(lambda: iter([scalar(1)]))
    assert next(hidden).is_disposed


# Counting -------------------------------------------------------------------------------


def test_scenario_07_bytes_are_those_of_buffers(start):
    """TensorFlow.js counts 32 bytes, each tensor's."""
    x = tp.asarray([1.0, 2.0, 3.0, 4.0])
    y = tp.reshape(x, (2, 2))
    assert counted() == (start[0] + 2, start[1] + 1, start[2] + 16)
    x.dispose()
    assert counted() == (start[0] + 1, start[1] + 1, start[2] + 16)
    expect(y, "float32", (2, 2), [[1, 2], [3, 4]])


BYTES = [
    ("float32", [1.0, 2.0, 3.0, 4.0], 16),
    ("int32", [1, 2, 3, 4], 16),
    ("bool", [True, True, False, True], 4),
    # Row 40: TensorFlow.js says 0. One buffer; no parts that others could dispose of.
    ("complex64", [1j, 2j, 3j, 4j], 32),
]


@pytest.mark.parametrize(("dtype", "values", "size"), BYTES)
def test_scenario_08_bytes(dtype, values, size, start):
    x = tp.asarray(values)
    assert str(x.dtype) == dtype
    assert counted() == (start[0] + 1, start[1] + 1, start[2] + size)
    x.dispose()
    assert counted() == start


def test_scenario_08_bytes_of_text(engine):
    """Bytes of the backend's array. Row 52: a copy in TensorFlow.js leads below zero."""
    engine.devices.source.dtypes["memory"] = dt.ANY
    tp.get_backend()
    start = counted()
    x = tp.asarray(["a", "bb", "c", "d"])
    size = np.asarray(["a", "bb", "c", "d"], np.dtypes.StringDType()).nbytes
    y = tp.identity(x)
    assert counted() == (start[0] + 2, start[1] + 1, start[2] + size)
    x.dispose()
    assert counted() == (start[0] + 1, start[1] + 1, start[2] + size)
    y.dispose()
    assert counted() == start


def test_scenario_08_a_sum_of_booleans():
    with isolated_engine("cpu"):
        expect(tp.sum(tp.asarray([True, True, False, True])), "int32", (), 3)


# Moving ---------------------------------------------------------------------------------


def test_scenario_10_two_clones_of_cpu():
    """Ours copies what a kernel needs where it runs, and the tensor stays where it is.

    TensorFlow.js moves the data for good, so that a tensor's place depends on who looked last.
    """
    with isolated_engine() as engine:
        for name in ("cpu1", "cpu2"):
            tp.register_backend(name, partial(MemoryBackend, name, dt.FIXED))
            tp.copy_registered_kernels("cpu", name)
        engine.devices.close("cpu")
        with tp.use_backend("cpu1"):
            x = scalar(5)
            alias = tp.reshape(x, (1,))
        with tp.use_backend("cpu2"):
            y = scalar(3)
            z = x + y
        expect(z, "float32", (), 8)
        assert (x.device, y.device, z.device) == ("cpu1", "cpu2", "cpu2")
        expect(alias, "float32", (1,), [5])
        held = [counted(name) for name in ("cpu1", "cpu2")]
        assert held == [(2, 1, 4), (2, 2, 8)]  # 4 tensors on 3 buffers, as in TensorFlow.js
        assert tp.memory()["cpu2"].transfers == 1
        tp.dispose([x, alias, y, z])
        assert [counted(name) for name in ("cpu1", "cpu2")] == [(0, 0, 0), (0, 0, 0)]


@pytest.mark.usefixtures("engine")
def test_row_37_complex_numbers_move_whole():
    """In TensorFlow.js real and imaginary parts are lost on the way."""
    z = tp.asarray([1 + 2j, 3 - 4j])
    with tp.use_backend("other"):
        expect(z + 1, "complex64", (2,), [2 + 2j, 4 - 4j])
    expect(z.to("other"), "complex64", (2,), [1 + 2j, 3 - 4j])
    tp.remove_backend("memory")
    expect(z, "complex64", (2,), [1 + 2j, 3 - 4j])


# Disposed tensors -------------------------------------------------------------------------

USES = {
    "method": lambda t: t + 1,
    "op": lambda t: tp.add(t, 1),
    "second operand": lambda t: tp.add(1.0, t),
    "read": lambda t: t.numpy(),
    "copy": tp.identity,
    "assign": lambda t: tp.Variable(tp.zeros((2,))).assign(t),
    "kernel": lambda t: tp.run_kernel("Neg", {"x": t}),
    "gradient": tp.grad(tp.exp),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("use", USES)
def test_row_41_a_disposed_tensor_says_so(use):
    """TensorFlow.js fails here in its own code, or recurses until the stack overflows."""
    t = tp.asarray([1.0, 2.0])
    t.dispose()
    t.dispose()  # twice is fine
    with pytest.raises(DisposedError, match=r"tensor \(float32\[2\]\) was disposed"):
        USES[use](t)


# Leaks ----------------------------------------------------------------------------------

ONE = spec_of("OneOutput")
THREE = spec_of("ThreeOutputs", outputs=("p", "q", "r"), infer=lambda x: (x, x, x))


@pytest.fixture
def checked():
    """Run on a backend that counts its buffers, with the leak check on."""
    registry = Registry(catalogue.catalogue())
    engine = Engine(CountingSource({"memory": []}), registry, fallback="error")
    with use_context(Context(engine, observers=(LeakCheck(),))):
        yield


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("values", [[1.0, 2.0], [1j, 2j]])
def test_scenario_11_leaks(values):
    kept = []

    def leaky(x, *, backend):
        kept.append(backend.make(x.array))
        return backend.make(x.array)

    def clean(x, *, backend):
        return [backend.make(x.array) for _ in range(3)]

    x = tp.asarray(values)
    tp.register_kernel(THREE, "memory", clean)
    assert [tensor.tolist() for tensor in tp.run_kernel(THREE, [x])] == [values] * 3
    tp.register_kernel(ONE, "memory", leaky)
    with pytest.raises(LeakError, match=r"kernel OneOutput.*leaked 1 buffer, neither"):
        tp.run_kernel(ONE, [x])


@pytest.mark.usefixtures("checked")
def test_row_30_what_is_freed_too_much_hides_no_leak():
    """The two cancel out in TensorFlow.js's count."""
    kept = []

    def leaky(x, *, backend):
        kept.append(backend.make(x.array))
        backend.free(x)
        return backend.make(x.array)

    tp.register_kernel(ONE, "memory", leaky)
    with pytest.raises(LeakError, match=r"memory of its input 'x', .*; it leaked 1 buffer"):
        tp.run_kernel(ONE, [tp.asarray([1.0])])


@pytest.mark.usefixtures("checked")
def test_row_31_nested_kernels_are_counted_each_by_itself():
    """A kernel calls no kernel here; what a decomposition calls is checked call by call."""
    kept = []

    def clean(x, *, backend):
        return backend.make(x.array)

    def leaky(x, *, backend):
        kept.append(backend.make(x.array))
        return backend.make(x.array)

    outer, inner = spec_of("Outer"), spec_of("Inner")
    tp.register_decomposition(outer, lambda x: tp.run_kernel(inner, [tp.run_kernel(ONE, [x])]))
    tp.register_kernel(ONE, "memory", clean)
    tp.register_kernel(inner, "memory", leaky)
    with pytest.raises(LeakError, match=r"kernel Inner.*leaked 1 buffer"):
        tp.run_kernel(outer, [tp.asarray([1.0])])
