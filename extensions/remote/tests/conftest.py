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


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def connected(server, connect):
    """Open one device for many tests: to remove one looks at all objects of the process."""
    with connect(server.address) as backend:
        yield backend


@pytest.fixture
def remote(server, connected):
    with tp.use_backend(f"remote:{server.address}"):
        yield connected


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_REMOTE_TIMEOUT", "20")
