"""A backend at the other end of a network connection.

``tensorplug-remote serve`` offers any installed backend, ``tp.set_backend("remote:host:port")``
uses it.
"""

from __future__ import annotations

from tensorplug_remote.errors import ConnectionLostError, ConnectionTimeoutError
from tensorplug_remote.server import Limits, Server

__all__ = ["ConnectionLostError", "ConnectionTimeoutError", "Limits", "Server"]
