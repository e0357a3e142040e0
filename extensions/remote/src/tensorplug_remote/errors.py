"""What goes wrong between a client and a server."""

from __future__ import annotations

from tensorplug.errors import DeviceLostError, DeviceTimeoutError, TensorplugError


class ConnectionLostError(DeviceLostError):
    """A connection ended, and with it all tensors of the client on the server.

    ``address``: of the server. ``doing``: what the client was doing when it found out;
    ``reason``: what it found.
    ``tp.set_backend`` connects anew.
    """

    def __init__(self, address: str, doing: str, reason: str) -> None:
        super().__init__(f"remote: lost the connection to {address} ({doing}): {reason}")
        self.address = address
        self.doing = doing
        self.reason = reason


class ConnectionTimeoutError(ConnectionLostError, DeviceTimeoutError):
    """A connection was given up because the other side was silent for too long."""


class ProtocolError(TensorplugError):
    """What arrived is no message of the protocol, or one that is not allowed."""
