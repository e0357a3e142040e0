"""compile: calls of compiled functions: devices, scopes, threads, errors, what is shown."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import A, B, Counted, agree, kernels, on_cpu
from tests.core.support.tensors import live, tensor

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError, DTypeError


@on_cpu
def test_a_kernel_registered_later_is_used():
    compiled = tp.compile(tp.sin)
    x = tensor(A)
    agree(compiled(x), tp.sin(x))
    with tp.register_kernel("Sin", "cpu", lambda x: np.full_like(x, 7), override=True):
        np.testing.assert_array_equal(compiled(x).numpy(), 7)
    agree(compiled(x), tp.sin(x))


def test_each_backend_has_programs_of_its_own():
    f = Counted(lambda x: tp.tanh(x) + 1)
    compiled = tp.compile(f)
    for backend in ("cpu", "minimal"):  # to open one brings kernels, which make programs obsolete
        with tp.use_backend(backend):
            tensor(A)
    for backend in ("cpu", "minimal", "cpu", "minimal"):
        with tp.use_backend(backend):
            result = compiled(tensor(A))
            assert result.device == backend
            agree(result, f.f(tensor(A)))
    assert f.calls == 2


def test_tensors_of_another_device_are_brought():
    with tp.use_backend("minimal"):
        there = tensor(A)
    compiled = tp.compile(lambda x, y: x + y)
    with tp.use_backend("cpu"):
        before = tp.memory()["cpu"].transfers
        result = compiled(there, tensor(B))
        assert result.device == "cpu"
        assert tp.memory()["cpu"].transfers == before + 1
    np.testing.assert_array_equal(result.numpy(), A + B)


@on_cpu
def test_inside_another_it_is_part_of_that():
    inner = tp.compile(lambda x: tp.sin(x) * 2)

    @tp.compile
    def outer(x):
        return inner(x) + inner(x)

    assert kernels(outer.program(tensor(A))) == ["Sin", "Multiply", "Add"]
    agree(outer(tensor(A)), tp.sin(tensor(A)) * 4)
    assert not inner._known


@on_cpu
def test_a_method_can_be_compiled():
    class Scale:
        def __init__(self, by):
            self.by = by

        @tp.compile
        def apply(self, x):
            """Multiply."""
            return x * self.by

    x = tensor(A)
    agree(Scale(2).apply(x), x * 2)
    agree(Scale(3).apply(x), x * 3)
    assert Scale.apply.__doc__ == "Multiply."
    assert Scale.apply.__name__ == "apply"


@on_cpu
def test_the_result_may_be_an_argument_or_a_constant():
    held = tensor(B)
    compiled = tp.compile(lambda x: (x, held, x, 5, None))
    for _ in range(2):
        one, two, three, five, nothing = compiled(tensor(A))
        agree((one, two, three), (tensor(A), held, tensor(A)))
        assert (five, nothing) == (5, None)
        two.dispose()
        one.dispose()
        agree(three, tensor(A))
    agree(held, tensor(B))


@on_cpu
def test_captured_tensors_are_constants():
    held = tensor(B)
    compiled = tp.compile(lambda x: x * held)
    agree(compiled(tensor(A)), tensor(A * B))
    held.dispose()  # the program keeps the data
    agree(compiled(tensor(A)), tensor(A * B))


@on_cpu
def test_scopes_inside_and_around():
    @tp.compile
    def f(x):
        with tp.tidy():
            kept = tp.keep(tp.sin(x))
            tp.cos(x).dispose()
        return kept * 2

    x = tensor(A)
    agree(f(x), tp.sin(x) * 2)
    with tp.tidy():
        inner = f(x)
    assert inner.is_disposed
    agree(f(x), tp.sin(x) * 2)


@on_cpu
def test_a_disposed_argument_is_an_error():
    compiled = tp.compile(tp.sin)
    x = tensor(A)
    compiled(x)
    x.dispose()
    with pytest.raises(DisposedError):
        compiled(x)


@on_cpu
def test_the_errors_of_ops_are_those_of_ops():
    compiled = tp.compile(lambda x: tp.bitwise_and(x, x))
    with pytest.raises(DTypeError):
        compiled(tensor(A))


@on_cpu
def test_nothing_is_left_behind():
    compiled = tp.compile(lambda x: tp.sum(tp.tanh(x @ x.T), axis=0))
    x = tensor(A)
    compiled(x)
    before = live()
    held = tp.memory().bytes
    for _ in range(5):
        compiled(x)
    assert live() == before
    assert tp.memory().bytes == held


@on_cpu
def test_threads_share_programs():
    f = Counted(lambda x, n: tp.tanh(x @ x.T) * n)
    compiled = tp.compile(f)
    x = tensor(A)
    wrong: list[Any] = []

    def work(n):
        with tp.use_backend("cpu"):
            for _ in range(20):
                result = compiled(x, n % 2).numpy()
                if not np.array_equal(result, f.f(x, n % 2).numpy()):
                    wrong.append(result)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.calls == 2


@on_cpu
def test_a_program_is_shown():
    compiled = tp.compile(lambda x: tp.sum(tp.sin(x) * 2))
    text = repr(compiled.program(tensor(A)))
    assert "<Program on cpu: 3 calls, 0 groups>" in text
    assert "%0: float32[2,3], input" in text
    assert "Sin(x=float32[2,3]) -> float32[2,3] of %0" in text
    assert f"{Path(__file__).name}:" in text
    assert "1 programs" in repr(compiled)


@on_cpu
def test_observers_see_each_kernel():
    compiled = tp.compile(lambda x: tp.sum(tp.sin(x) * 2))
    x = tensor(A)
    compiled(x)
    with tp.profile() as profile:
        compiled(x)
    assert [kernel.name for kernel in profile.kernels] == ["Sin", "Multiply", "Sum"]


@pytest.mark.parametrize("given", [3, None, "f"])
def test_only_functions_can_be_compiled(given):
    with pytest.raises(ArgumentError, match="compile: f must be a function"):
        tp.compile(given)


def test_coroutines_and_generators_cannot():
    async def later():
        pass

    def some():
        yield

    for item in (later, some):
        with pytest.raises(ArgumentError, match="does not run when it is called"):
            tp.compile(item)
