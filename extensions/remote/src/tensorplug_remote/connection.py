"""A client's connection: messages go out at once, and a thread takes the answers.

Only what must be known is waited for: contents, sizes that depend on data, the end of all work.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug import errors
from tensorplug.errors import (
    BackendUnavailableError,
    DeviceError,
    DeviceFaultError,
    DeviceLostError,
    TensorplugError,
)
from tensorplug_remote import handshake, settings
from tensorplug_remote.errors import (
    ConnectionLostError,
    ConnectionTimeoutError,
    ProtocolError,
)
from tensorplug_remote.framing import Channel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug_remote.settings import Address

_FREED: Final = 10_000  # numbers in one message
_READING: Final = 1.0  # seconds in which the thread reads the last that the server has said
_LONGEST: Final = 1 << 62  # bytes in an answer: the client has asked for them


class Connection:
    """One connection to a server, which holds the client's tensors and plans by their numbers.

    ``about``: what the server says about itself. ``dead``: numbers that nobody uses any more,
    which go out with the next message. ``round_trips``: how often a call waited for an answer.
    ``lost``: why the connection has ended, "" while it has not; ``device_lost``: the same of the
    server's device.

    Raises:
        BackendUnavailableError: nobody answers, or one side does not want the other.

    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.seconds = settings.read_timeout()
        self.lost = ""
        self.dead: deque[int] = deque()
        self.new_number = count(1).__next__
        self.round_trips = 0
        self._lost_by: type[ConnectionLostError] = ConnectionLostError
        self._stuck = 0, 0.0  # how many messages had reached the server, and since when
        self.device_lost = ""
        self._waiting: dict[int, tuple[str, Future[tuple[Any, bytearray]]]] = {}
        secret = settings.read_secret()
        try:
            self._channel = Channel(self._connect(), self.seconds, _LONGEST)
        except OSError as error:
            raise BackendUnavailableError(f"remote: {address} does not answer: {error}") from error
        try:
            self.about: Mapping[str, Any] = handshake.ask(
                self._channel, secret, {**expectations(), "timeout": self.seconds}
            )
        except (OSError, EOFError, ProtocolError) as error:
            self._channel.close()
            raise BackendUnavailableError(f"remote: {address} refuses: {error}") from error
        except BaseException:
            self._channel.close()
            raise
        self._thread = threading.Thread(target=self._listen, name="tensorplug-remote", daemon=True)
        self._thread.start()

    def _connect(self) -> socket.socket:
        address = self.address
        connected = socket.create_connection((address.host, address.port), self.seconds)
        if not address.tls:
            return connected
        try:
            return settings.client_context().wrap_socket(connected, server_hostname=address.host)
        except BaseException:
            connected.close()
            raise

    def submit(self, doing: str, kind: str, *fields: Any, payload: Any = b"") -> None:
        """Send a message that has no answer; ``doing`` says in words what it is for.

        Raises:
            ConnectionLostError: the connection has ended.

        """
        self._check(doing)
        try:
            self._channel.send_made(lambda: ([kind, self._take_dead(), *fields], payload))
        except OSError as error:
            self._thread.join(_READING)  # the server may have said why
            self._lose(error)
            self._check(doing)

    def ask(self, doing: str, kind: str, *fields: Any) -> tuple[Any, bytearray]:
        """Send a message, and wait for its answer.

        Raises:
            ConnectionLostError: the connection has ended.
            TensorplugError: the server could not do it, or something before that this depends on.

        """
        number = self.new_number()
        answer: Future[tuple[Any, bytearray]] = Future()
        self._waiting[number] = doing, answer  # first: whoever notices a loss tells all that wait
        self.round_trips += 1
        try:
            self.submit(doing, kind, number, *fields)
            return answer.result()
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """End the connection, and with it what the server holds for it."""
        with suppress(TensorplugError):  # it has ended
            self.submit("closing", "bye")
        self._channel.end()
        self._thread.join()
        self._channel.close()

    def _take_dead(self) -> list[int]:
        return [self.dead.popleft() for _ in range(min(len(self.dead), _FREED))]

    def _check(self, doing: str) -> None:
        if self.lost:
            raise self._lost_by(str(self.address), doing, self.lost)

    def _lose(self, error: Exception) -> None:
        if not self.lost:
            if isinstance(error, TimeoutError):
                self._lost_by = ConnectionTimeoutError
            self.lost = str(error)
        self._channel.end()
        for doing, answer in list(self._waiting.values()):
            with suppress(InvalidStateError):  # it came in time
                answer.set_exception(self._lost_by(str(self.address), doing, self.lost))

    def _listen(self) -> None:
        """Hand answers over to those that wait; the server sends something all the time."""
        try:
            while True:
                message, payload = self._channel.receive(idle=self.seconds)
                match message:
                    case ["alive", int(received), bool(idle)]:
                        self._watch(received, idle)
                    case ["done", int(number), value, None]:
                        self._tell(number, (value, payload), None)
                    case ["done", int(number), _, [str(name), str(op), str(text)]]:
                        failed = _error(name, op, f"remote: {text}")
                        if isinstance(failed, DeviceLostError):
                            self.device_lost = text
                        self._tell(number, None, failed)
                    case ["refused", str(reason)]:
                        raise ProtocolError(f"the server says: {reason}")
                    case _:
                        raise ProtocolError(f"the server sent {str(message)[:80]}")
        except (OSError, EOFError, TensorplugError) as error:
            self._lose(error)

    def _watch(self, received: int, idle: bool) -> None:  # noqa: FBT001  # as it arrives
        """Raise ``TimeoutError`` if the server waits for messages that were sent long ago."""
        if not idle or received == self._channel.sent or received != self._stuck[0]:
            self._stuck = received, time.monotonic()
        elif time.monotonic() - self._stuck[1] > self.seconds:
            raise TimeoutError(f"nothing has reached it for {self.seconds:g} s")

    def _tell(self, number: int, value: Any, error: Exception | None) -> None:
        _, answer = self._waiting.pop(number, ("", None))
        if answer is None:  # who asked was interrupted
            return
        with suppress(InvalidStateError):
            if error is None:
                answer.set_result(value)
            else:
                answer.set_exception(error)


def expectations() -> dict[str, Any]:
    """Return what must be the same on both sides for a call to mean the same."""
    defaults = tp.__array_namespace_info__().default_dtypes()
    return {
        "version": ".".join(tp.__version__.split(".")[:2]),
        "byteorder": sys.byteorder,
        "real": str(defaults["real floating"]),
        "integral": str(defaults["integral"]),
    }


def _error(name: str, op: str, text: str) -> TensorplugError:
    """Return an error of a class that callers can catch."""
    kind = getattr(errors, name, None) if name in errors.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, TensorplugError)):
        kind = DeviceFaultError
    return kind(text, op=op) if issubclass(kind, DeviceError) else kind(text)
