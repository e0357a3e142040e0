"""Frames on a socket: a head, a message in JSON, the bytes of an array.

A frame is ``head, tag, message, bytes, tag``. The head has the lengths of message and bytes (4 and
8 bytes, little-endian). Each tag is the start of an HMAC-SHA256 whose key both sides have agreed
on (``handshake``): the first one of the frame's number and its head, so that no length is believed
that was not sent; the second one of the first, the message and the bytes. A frame that was
changed, repeated, left out or moved has a wrong tag.
"""

from __future__ import annotations

import hmac
import json
import selectors
import socket
import ssl
import struct
import time
from contextlib import suppress
from functools import partial
from threading import Lock as PlainLock
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import Lock
from tensorplug_remote.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from selectors import BaseSelector as Selector

Message = list[Any]

_HEAD: Final = struct.Struct("<IQ")
_TAG: Final = 16  # bytes
_PIECE: Final = 1 << 18  # bytes; each must get through within the limit of seconds
_LITTLE: Final = 1 << 16  # bytes that are read at once where fewer are asked for
_LINGER: Final = 2.0  # seconds
LONGEST_MESSAGE: Final = 1 << 20
"""Bytes of JSON in a frame."""


class Channel:
    """Sends and receives frames; one thread receives, any may send.

    Args:
        connected: the socket, which the channel then owns.
        seconds: in which a piece of a frame has to get through.
        longest: the most bytes of an array in a frame that is received.

    ``sent``, ``received``: how many frames; ``idle``: whether ``receive`` waits for the next one.

    """

    def __init__(self, connected: socket.socket, seconds: float, longest: int) -> None:
        connected.setblocking(False)  # noqa: FBT003  # the one argument
        with suppress(OSError):  # a socket of another family
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds, self.longest = seconds, longest
        self._socket = connected
        self._using = PlainLock()  # OpenSSL reads and writes in one thread at a time
        self._readable, self._writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self._readable.register(connected, selectors.EVENT_READ)
        self._writable.register(connected, selectors.EVENT_WRITE)
        self._inbox = bytearray()
        self._keys = (b"", b"")  # to send and to receive
        self.sent = self.received = 0
        self.idle = False
        self._sending = Lock()

    def agree(self, sending: bytes, receiving: bytes) -> None:
        """Take other keys for the frames that follow."""
        self._keys = (sending, receiving)

    def send(self, message: Message, payload: Any = b"") -> None:
        """Send a frame; wait until the system has taken it.

        Raises:
            OSError: the connection has ended, or the other side takes nothing any more.
            ProtocolError: the message is too long.

        """
        self.send_made(lambda: (message, payload))

    def send_made(self, make: Callable[[], tuple[Message, Any]]) -> None:
        """Do the same with what ``make`` returns when it is this frame's turn."""
        with self._sending:
            try:
                message, payload = make()
                for part in self._parts(message, payload):
                    self._push(memoryview(part))
                self.sent += 1
            except ProtocolError:  # nothing has been sent
                raise
            except BaseException:  # what follows would be read as the rest of this frame
                self.end()
                raise

    def _parts(self, message: Message, payload: Any) -> list[Any]:
        text = json.dumps(message, separators=(",", ":")).encode()
        if len(text) > LONGEST_MESSAGE:
            raise ProtocolError(
                f"a message of {len(text)} bytes is too long: at most {LONGEST_MESSAGE}"
            )
        view: Any = memoryview(payload).cast("B") if len(payload) else b""
        head = _HEAD.pack(len(text), len(view))
        key = self._keys[0]
        first = _tag(key, self.sent, head)
        parts = [head + first + text, view, _body_tag(key, first, text, view)]
        return [b"".join(parts)] if len(view) < _PIECE else parts

    def receive(self, *, idle: float | None) -> tuple[Message, bytearray]:
        """Wait for a frame; return its message and its bytes.

        Args:
            idle: how many seconds to wait for its beginning; None: as long as it takes.

        Raises:
            EOFError: the other side has closed the connection between two frames.
            OSError: the connection has ended, or stalls.
            ProtocolError: the frame is too long, or not the one that was sent.

        """
        if not self._inbox:
            self.idle = True
            self._inbox += self._wait_for_some(idle)
            self.idle = False
        head = self._pull(_HEAD.size)
        key, first = self._keys[1], self._pull(_TAG)
        if not hmac.compare_digest(_tag(key, self.received, head), first):
            raise ProtocolError(self._altered())
        length, size = _HEAD.unpack(head)
        if length > LONGEST_MESSAGE or size > self.longest:
            raise ProtocolError(
                f"a frame with {length} bytes of message and {size} of data is too long: at most "
                f"{LONGEST_MESSAGE} and {self.longest}"
            )
        text, payload = self._pull(length), self._pull(size)
        if not hmac.compare_digest(_body_tag(key, first, text, payload), self._pull(_TAG)):
            raise ProtocolError(self._altered())
        self.received += 1
        try:
            message = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a message is not JSON: {error}") from error
        if not isinstance(message, list):
            raise ProtocolError("a message must be a list")
        return message, payload

    def refuse(self, reason: str) -> None:
        """Tell the other side why the connection ends, and let it read that."""
        with suppress(OSError, EOFError):  # it has gone
            self.send(["refused", reason])
            self._socket.shutdown(socket.SHUT_WR)
            # Closed with something unread, the connection would be reset, and the reason lost.
            end = time.monotonic() + _LINGER
            while time.monotonic() < end:
                self._wait_for_some(_LINGER)

    def end(self) -> None:
        """End the connection: whoever sends or receives gets an error."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the socket back, once no thread uses it."""
        self.end()
        for each in (self._readable, self._writable, self._socket):
            each.close()

    def _altered(self) -> str:
        return f"frame {self.received} is not the one that was sent"

    def _push(self, view: memoryview) -> None:
        while view:
            send = partial(self._socket.send, view[:_PIECE])
            view = view[self._try(send, self._writable, self.seconds) :]

    def _pull(self, size: int) -> bytearray:
        """Return so many bytes, each piece of which must come within the limit of seconds."""
        result = bytearray(size)
        at, view, end = 0, memoryview(result), 0.0
        while at < size:
            if at % _PIECE == 0:
                end = time.monotonic() + self.seconds
            part = view[at : min(size, at - at % _PIECE + _PIECE)]
            if not self._inbox and len(part) < _LITTLE:
                self._inbox += self._read(partial(self._socket.recv, _LITTLE), end)
            if self._inbox:
                got = min(len(part), len(self._inbox))
                part[:got] = self._inbox[:got]
                del self._inbox[:got]
            else:
                got = self._read(partial(self._socket.recv_into, part), end)
            at += got
        return result

    def _wait_for_some(self, seconds: float | None) -> bytes:
        got: bytes = self._try(partial(self._socket.recv, _LITTLE), self._readable, seconds)
        if not got:
            raise EOFError("it closed the connection")
        return got

    def _read(self, read: Callable[[], Any], end: float) -> Any:
        got = self._try(read, self._readable, max(0.0, end - time.monotonic()))
        if not got:
            raise ConnectionAbortedError("it closed the connection in the middle of a frame")
        return got

    def _try(self, act: Callable[[], Any], ready: Selector, seconds: float | None) -> Any:
        """Return what ``act`` returns as soon as it need not wait."""
        while True:
            try:
                with self._using:
                    return act()
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not ready.select(seconds):
                    raise TimeoutError(f"nothing moved for {self.seconds:g} s") from None


def _tag(key: bytes, number: int, head: bytes | bytearray) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "little") + head, "sha256")[:_TAG]


def _body_tag(key: bytes, first: Any, text: Any, payload: Any) -> bytes:
    made = hmac.new(key, first, "sha256")
    made.update(text)
    made.update(payload)
    return made.digest()[:_TAG]
