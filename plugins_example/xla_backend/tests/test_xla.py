"""What XLA compiles of compiled functions, what is kept of it, and JAX as its user left it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.plugin import KernelRefusedError
from tensorplug_conformance.checks import Target, checks
from tensorplug_conformance.session import Session, engine_factory

jax = pytest.importorskip("jax")
backend = pytest.importorskip("tensorplug_xla.backend")
formulas = pytest.importorskip("tensorplug_xla.formulas")

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 8)).astype(np.float32)
W = RNG.standard_normal((8, 4)).astype(np.float32)
INTEGERS = np.array([-7, -1, 0, 1, 7, 2**31 - 1], np.int32)


def parts(f, *arguments):
    program = f.program(*arguments)
    return len(program.parts), len(program.calls)


def network(w, x):
    return tp.mean(tp.square(tp.nn.gelu(x @ w) - tp.nn.softmax(x @ w)))


# A function, and what NumPy says of it.
FORMULAS = [
    (lambda: tp.asarray(INTEGERS) // 2, INTEGERS // 2),
    (lambda: tp.asarray(INTEGERS) % -3, INTEGERS % -3),
    (lambda: tp.asarray(INTEGERS) ** 2, INTEGERS**2),
    (lambda: tp.asarray([3, -2, 1], dtype=tp.int32) ** -1, np.array([0, 0, 1], np.int32)),
    (lambda: tp.astype(tp.asarray([-1.5, 2.0**32 + 512]), tp.int32), np.int32([-1, 512])),
    (lambda: tp.asarray([7.5, -7.5, 3.3e38]) // 2.0, np.float32([3, -4, 1.65e38])),
    (lambda: tp.asarray([3.3e38]) // -2e38, np.float32([-2])),
    (lambda: tp.asarray([[7, -7]]) // tp.asarray([[2], [-2]]), np.int32([[3, -4], [-4, 3]])),
    (
        lambda: tp.asarray([[7.0], [-7.0]]) % tp.asarray([2.0, -2.0]),
        np.float32([[1, -1], [1, -1]]),
    ),
    (lambda: tp.asarray([7, 5]) % tp.asarray(2), np.int32([1, 1])),
    (lambda: tp.asarray([7.5, -7.5]) % np.inf, np.array([7.5, np.inf], np.float32)),
    (lambda: tp.arange(5, dtype=tp.int64) * 2**40, np.arange(5) * 2**40),
    (lambda: tp.topk(tp.asarray([1.0, 3.0, 3.0]), 2)[1], np.array([1, 2], np.int32)),
    (lambda: tp.asarray(X)[:, [-1, 0]], X[:, [-1, 0]]),
]


@pytest.mark.parametrize(("f", "meant"), FORMULAS, ids=range(len(FORMULAS)))
def test_formulas(f, meant):
    result = f().numpy()
    assert (result.dtype, result.shape) == (meant.dtype, meant.shape)
    np.testing.assert_array_equal(result, meant)


def test_the_kernels_are_the_primitives():
    assert len(formulas.FORMULAS) == 41


def test_a_training_step_is_one_executable():
    step = tp.compile(tp.value_and_grad(network))
    w, x = tp.asarray(W), tp.asarray(X)
    for meant, got in zip(tp.value_and_grad(network)(w, x), step(w, x), strict=True):
        np.testing.assert_allclose(got.numpy(), meant.numpy(), rtol=1e-4, atol=1e-6)
    found, calls = parts(step, w, x)
    assert found == 1
    assert calls > 30


def test_loops_stay_with_the_engine_and_their_steps_are_programs():
    f = tp.compile(lambda x: tp.fori_loop(0, 5, lambda _, y: tp.sin(y) * 2 + 1, tp.cos(x)) - 1)
    x = tp.asarray(X)
    meant = np.cos(X.astype(np.float64))
    for _ in range(5):
        meant = np.sin(meant) * 2 + 1
    np.testing.assert_allclose(f(x).numpy(), meant - 1, rtol=1e-4, atol=1e-5)
    assert parts(f, x)[0] == 2  # before the loop and after it


def test_an_executable_is_loaded_by_the_next_function(monkeypatch):
    def f(x):
        return tp.sum(tp.exp(x) * 2, axis=0)

    first = tp.compile(f)(tp.asarray(X)).numpy()
    monkeypatch.setattr(backend.XLABackend, "compile_program", None)
    np.testing.assert_array_equal(tp.compile(f)(tp.asarray(X)).numpy(), first)


def test_a_file_that_xla_does_not_read_is_refused(xla):
    class Program:
        constants, inputs, outputs = (), (0,), (1,)

    with pytest.raises(KernelRefusedError, match="XLA does not load it"):
        xla.open("xla").backend.load_program(Program, b"no executable")


def test_donated_memory_is_given_to_xla():
    f = tp.compile(lambda x: x * 2 + 1, donate="x")
    host = np.ones((300, 300), np.float32)
    x = tp.asarray(host)
    held = tp.reshape(x, (-1,))
    np.testing.assert_array_equal(f(x).numpy(), host * 3)
    np.testing.assert_array_equal(held.numpy(), host.ravel())
    x = tp.asarray(host) * 1  # memory of XLA's own
    address = x._buffer.unsafe_buffer_pointer()
    assert f(x)._buffer.unsafe_buffer_pointer() == address


def test_memory_that_no_result_can_take_is_not_given():
    f = tp.compile(lambda x: tp.sum(x * 2), donate="x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # JAX warns of it
        assert float(f(tp.ones((300, 300)))) == 180_000


def test_random_numbers_are_those_of_other_backends():
    f = tp.compile(lambda generator: generator.uniform((5,)))
    ours = [f(tp.random.Generator(4)).numpy() for _ in range(2)]
    with tp.use_backend("cpu"):
        meant = tp.random.Generator(4).uniform((5,)).numpy()
    np.testing.assert_array_equal(ours[0], meant)
    np.testing.assert_array_equal(ours[1], meant)


def test_jax_stays_as_its_user_has_it():
    large = tp.asarray(np.int64([2**40]))
    assert (large * 3).tolist() == tp.compile(lambda x: x * 3)(large).tolist() == [3 * 2**40]
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(3).dtype == np.float32


def test_the_import_draws_no_random_numbers():
    code = (
        "import numpy as np; np.random.seed(3); a = np.random.get_state()[1:3]; "
        "import tensorplug as tp; tp.set_backend('xla'); b = np.random.get_state()[1:3]; "
        "print(np.array_equal(a[0], b[0]), a[1] == b[1])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "True"]


def test_a_buffer_is_a_copy():
    host = np.zeros((64, 64), np.float32)
    x = tp.asarray(host)
    host[:] = 1
    assert not x.numpy().any()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["all calls", "with gaps", "loaded", "donated"])
def test_the_suite_finds_no_fault_in_whole_programs(way):
    (check,) = (each for each in checks(4) if each.id == f"whole programs: {way}")
    session = Session(engine_factory(None), "xla")
    check.run(Target("xla"), lambda: session)
