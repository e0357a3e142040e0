"""A program on ``remote``: results, what waits, and errors that come late."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_remote import Limits, Server

FIXED = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "int4", "uint2"),
]


@pytest.mark.parametrize("dtype", FIXED)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_data_survives_the_way_there_and_back(remote, dtype, shape):
    numbers = np.arange(math.prod(shape)).reshape(shape) % 2
    expected = np.asarray(numbers).astype(getattr(tp, dtype).numpy)
    given = np.array(expected)
    tensor = tp.asarray(given)
    given[...] = 0  # the tensor must not change
    back = tensor.numpy()
    assert (back.dtype, back.shape) == (expected.dtype, shape)
    assert back.tobytes() == expected.tobytes()


def test_the_device_is_named_after_the_server_s(remote, server):
    here = tp.find_backend("cpu")
    assert remote.device == f"cpu on {here.device}, at {server.address}"
    assert remote.dtypes == here.dtypes - {tp.string}
    assert remote.kernels.keys() <= set(tp.kernels_for("cpu"))


CALLS = {
    "elementwise": (lambda x: tp.exp(x) * 2 - 1, lambda x: np.exp(x) * 2 - 1),
    "a list of inputs": (lambda x: tp.concat([x, x], axis=1), lambda x: np.hstack([x, x])),
    "several outputs": (lambda x: tp.topk(x, 2)[1], lambda x: np.argsort(-x)[:, :2]),
    "no input": (lambda _: tp.arange(2, 9, 3), lambda _: np.array([2, 5, 8])),
    "attributes": (lambda x: tp.sum(x, axis=0, keepdims=True), lambda x: x.sum(0)[None]),
    "an infinite attribute": (lambda x: tp.pad(x, 1, constant_value=-math.inf),
                              lambda x: np.pad(x, 1, constant_values=-np.inf)),
    "a complex attribute": (lambda _: tp.full((2,), 1 - 2j), lambda _: np.full(2, 1 - 2j)),
    "a product": (lambda x: x @ x.T, lambda x: np.einsum("ij,kj->ik", x, x)),
    "sizes that depend on data": (lambda x: tp.unique_values(tp.floor(x)),
                                  lambda x: np.array(sorted({*np.floor(x).ravel()}))),
    "on the host": (lambda x: tp.nonzero(x > 0)[0], lambda x: np.argwhere(x > 0)[:, 0]),
    "a gradient": (tp.grad(lambda x: tp.sum(tp.sin(x) ** 2)), lambda x: np.sin(2 * x)),
    "compiled": (tp.compile(tp.nn.softmax),
                 lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize(("function", "formula"), CALLS.values(), ids=CALLS)
@pytest.mark.usefixtures("remote")
def test_calls_against_formulas(function, formula):
    array = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    found, wanted = function(tp.asarray(array)).numpy(), formula(array)
    assert (found.shape, found.dtype.kind) == (wanted.shape, wanted.dtype.kind)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_only_reading_waits(remote):
    def step(x, w):
        return w - 0.1 * tp.grad(lambda w: tp.mean((tp.tanh(x @ w) - 1) ** 2))(w)

    x, w = tp.ones((5, 3)), tp.zeros((3, 2))
    compiled = tp.compile(step)
    for run in (step, compiled, compiled):
        before = remote.connection.round_trips
        w = run(x, w)
        assert remote.connection.round_trips == before
        w.numpy()
        assert remote.connection.round_trips == before + 1


def test_what_the_server_lacks_is_decomposed_here(connect):
    with Server("minimal") as serving, connect(serving.address) as backend:
        assert "Softmax" not in backend.kernels
        x = tp.asarray([[0.0, math.log(3.0)]])
        assert tp.explain("Softmax", [x]).how == "decomposed"
        np.testing.assert_allclose(tp.nn.softmax(x).numpy(), [[0.25, 0.75]], rtol=1e-6)


OUTSIDE = r"remote: GatherV2\(x=float32\[2\], indices=int32\[1\]\) failed on the server: index 5"


@pytest.mark.usefixtures("remote")
def test_an_error_comes_late_and_names_its_call():
    x = tp.asarray([1.0, 2.0])
    wrong = tp.gather(x, tp.asarray([5]))  # returns
    poisoned = wrong * 2 + 1
    assert (x + x).tolist() == [2.0, 4.0]
    for _ in range(2):
        with pytest.raises(tp.errors.OutOfRangeError, match=OUTSIDE):
            poisoned.numpy()
    tp.synchronize()  # it has been told
    tp.gather(x, tp.asarray([5]))
    with pytest.raises(tp.errors.OutOfRangeError, match=OUTSIDE):
        tp.synchronize()
    tp.synchronize()


KINDS = (
    tp.errors.DeviceFaultError,
    tp.errors.BackendMemoryError,
    tp.errors.DeviceLostError,
    tp.errors.DeviceTimeoutError,
)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_servers_device_are_the_same_here(monkeypatch, kind):
    """Its device fails; the client's error has the class and the op, and names the client."""

    def fails(*_args):
        raise kind("a fuse blew", op="Neg")

    with Server("cpu") as server, tp.testing.isolated_engine(f"remote:{server.address}"):
        device = tp.get_backend()
        x = tp.asarray([1.0, 2.0])
        assert (-x).tolist() == [-1.0, -2.0]
        monkeypatch.setattr(tp, "run_kernel", fails)
        wrong = -x  # returns
        with pytest.raises(kind, match="a fuse blew"):
            wrong.numpy()
        tp.synchronize()  # told already
        wrong = -x
        for wait in (tp.synchronize, wrong.numpy):
            with pytest.raises(kind, match="a fuse blew") as caught:
                wait()
            error = caught.value
            assert (type(error), error.op) == (kind, "Neg")
            assert (error.backend, error.device) == ("remote", device)
        explains = tp.find_backend(device).explain_loss()
        assert bool(explains) is issubclass(kind, tp.errors.DeviceLostError)


@pytest.mark.usefixtures("remote")
def test_debug_raises_at_the_call():
    x = tp.asarray([1.0, 2.0])
    with tp.debug(), pytest.raises(tp.errors.OutOfRangeError, match=OUTSIDE):
        tp.gather(x, tp.asarray([5]))


def test_tensors_that_nobody_uses_are_freed_there(connect):
    limits = Limits(memory=1 << 20)
    with Server("cpu", limits=limits) as serving, connect(serving.address) as backend:
        start = backend.memory()
        for _ in range(50):
            x = tp.ones((100, 1000))  # 400 kB
            x = x + 1
        assert x[0, 0].item() == 2.0
        del x
        tp.synchronize()
        assert backend.memory()["tensors"] - start["tensors"] <= 2  # constants of plans


def test_a_client_gets_no_more_memory_than_its_limit(connect):
    limits = Limits(memory=1 << 20)
    with Server("cpu", limits=limits) as serving, connect(serving.address):
        kept = tp.ones((200, 1000))
        more = kept + 1
        with pytest.raises(tp.errors.BackendMemoryError, match="lets a client hold 1048576 bytes"):
            more.numpy()
        del more
        assert kept[0, 0].item() == 1.0


def test_a_tensor_may_not_be_larger_than_a_message(connect):
    limits = Limits(message=1 << 20)
    with Server("cpu", limits=limits) as serving, connect(serving.address) as backend:
        assert backend.largest_buffer == 1 << 20
        assert tp.asarray(np.zeros(1 << 20, np.uint8)).numpy().sum() == 0
        for make in (
            lambda: tp.asarray(np.zeros((1 << 20) + 1, np.uint8)),
            lambda: tp.broadcast_to(tp.asarray([1.0]), (1 << 19,)),
        ):
            with pytest.raises(tp.errors.BackendMemoryError, match="at most 1048576"):
                make()


def test_clients_do_not_see_one_another_s_tensors(server, connect):
    with connect(server.address):
        x = tp.asarray([1.0, 2.0])
        with connect(f"localhost:{server.address.port}") as second:
            y = tp.asarray([3.0, 4.0])
            assert y.tolist() == [3.0, 4.0]
            number = x._buffer.number
            while second.connection.new_number() < number:
                pass  # the same numbers mean other tensors, or none
            with pytest.raises(tp.errors.DeviceLostError, match="there is no tensor 1000000"):
                second.connection.ask("spying", "read", 1_000_000)
        assert x.tolist() == [1.0, 2.0]
