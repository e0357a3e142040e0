"""A connection through a proxy that does harm: errors of ours, in time, and connecting anew."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_remote import ConnectionLostError, Server

from .proxy import Once, Proxy, Stops, flip, late

LIMIT = 2.0  # seconds of silence after which the client gives up
ARRAY = np.arange(200_000, dtype=np.float32)


@pytest.fixture(autouse=True)
def limit(monkeypatch, patience):
    monkeypatch.setenv("TENSORPLUG_REMOTE_TIMEOUT", str(LIMIT))


HARM = {  # makers of what a proxy does
    "cut": lambda: lambda _data: None,
    "cut in the middle": lambda: Once(lambda data: data[: len(data) // 2]),
    "the end missing": lambda: Once(lambda data: data[:-1]),
    "the start missing": lambda: Once(lambda data: data[1:]),
    "the middle missing": lambda: Once(
        lambda data: data[: len(data) // 2] + data[len(data) // 2 + 9 :]
    ),
    "the rest missing": Stops,
    "nothing arrives": lambda: lambda _data: b"",
    "sent twice": lambda: Once(lambda data: data + data),
    "one bit changed": lambda: Once(flip),
    "one byte more": lambda: Once(lambda data: b"\0" + data),
    "zeros": lambda: Once(lambda data: bytes(len(data))),
    "late": lambda: Once(late(4 * LIMIT)),
}


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(
    "size", [3, pytest.param(ARRAY.size, marks=pytest.mark.slow)], ids=["small", "large"]
)
@pytest.mark.parametrize("make", HARM.values(), ids=HARM)
def test_harm_ends_in_an_error_and_connecting_anew_works(server, connect, side, size, make):
    with Proxy(server.address, side, make()) as proxy, connect(proxy.address) as backend:
        before = tp.asarray(ARRAY[:size])
        assert before[1].item() == 1.0
        proxy.armed.set()
        start = time.monotonic()
        with pytest.raises(ConnectionLostError) as caught:
            _read_twice(ARRAY[:size])
        assert time.monotonic() - start < 20 * LIMIT  # a busy machine
        assert caught.value.address == str(proxy.address)
        assert str(proxy.address) in str(caught.value)
        assert caught.value.doing
        silent = caught.value.reason.startswith("nothing ")
        assert silent or make is not HARM["nothing arrives"]
        assert isinstance(caught.value, tp.errors.DeviceTimeoutError) is silent
        with pytest.raises(ConnectionLostError, match="lost the connection"):
            before.numpy()
        with pytest.raises(ConnectionLostError, match="lost the connection"):
            before + 1
        assert backend.explain_loss()
        proxy.armed.clear()
        lost = pytest.warns(tp.errors.BackendWarning, match="are lost")
        with lost, tp.use_backend(f"remote:{proxy.address}"):  # opens another
            assert (tp.asarray([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]


def _read_twice(array):
    (tp.asarray(array) * 2).numpy()
    tp.synchronize()  # what was sent twice is noticed here, at the latest


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_short_delay_does_no_harm(server, connect, side):
    with Proxy(server.address, side, late(0.05)) as proxy, connect(proxy.address):
        proxy.armed.set()
        assert (tp.asarray(ARRAY) * 2).numpy()[-1] == 2 * ARRAY[-1]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("name", ["cut", "nothing arrives", "one bit changed"])
def test_harm_while_connecting(server, connect, side, name):
    harm = HARM[name]()
    with Proxy(server.address, side, harm) as proxy:
        proxy.armed.set()
        with pytest.raises(tp.errors.BackendUnavailableError, match=str(proxy.address)):
            tp.set_backend(f"remote:{proxy.address}")
        proxy.armed.clear()
        with connect(proxy.address):
            assert tp.ones(2).tolist() == [1.0, 1.0]


def test_the_server_ends(connect):
    with Server("cpu") as serving, connect(serving.address):
        x = tp.ones(2)
        assert x.tolist() == [1.0, 1.0]
        serving.close()
        with pytest.raises(ConnectionLostError, match=r"reading float32\[2\]"):
            x.numpy()
        refused = pytest.raises(tp.errors.BackendUnavailableError, match="does not answer")
        with pytest.warns(tp.errors.BackendWarning, match="are lost"), refused:
            tp.set_backend(f"remote:{serving.address}")


def test_a_long_call_is_no_silence(connect, monkeypatch):
    with Server("cpu") as serving, connect(serving.address):
        x = tp.asarray([1.0, 2.0])
        run = tp.run_kernel
        monkeypatch.setattr(tp, "run_kernel", lambda *call: (time.sleep(2 * LIMIT), run(*call))[1])
        assert tp.square(x).tolist() == [1.0, 4.0]
