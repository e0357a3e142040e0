from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress

import pytest

import tensorplug as tp
from tensorplug_remote import Server


@pytest.fixture(scope="session")
def server():
    with Server("cpu") as serving:
        yield serving


@pytest.fixture
def connect():
    """Return a function for ``with``: a device at an address, active inside, closed afterwards."""

    @contextmanager
    def connected(address):
        name = f"remote:{address}"
        try:
            with tp.use_backend(name):
                yield tp.find_backend(name)
        finally:
            # What failed or was lost cannot be read back. A device that did not open is not there.
            with warnings.catch_warnings(), suppress(tp.errors.ArgumentError):
                warnings.simplefilter("ignore", tp.errors.BackendWarning)
                tp.remove_backend(name)

    return connected


@pytest.fixture
def remote(server, connect):
    with connect(server.address) as backend:
        yield backend


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_REMOTE_TIMEOUT", "20")
