"""The server: one thread to a client, which runs the messages in their order."""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import tensorplug as tp
from tensorplug.errors import BackendNotInstalledError, SettingsError, TensorplugError
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_remote import handshake
from tensorplug_remote.connection import expectations
from tensorplug_remote.framing import Channel
from tensorplug_remote.handshake import RefusedError
from tensorplug_remote.session import Session
from tensorplug_remote.settings import Address

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

log = logging.getLogger(__name__)

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_GREETING: Final = 10.0  # seconds in which a client says who it is
_SMALL: Final = 1 << 12  # bytes of data of a client that has not done so
_SLOWEST: Final = 60.0  # seconds in which a piece of a frame must get through, at most


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server does at most.

    ``message``: bytes of a tensor. ``memory``: bytes of all tensors of a client. ``clients``: at
    the same time.
    """

    message: int = 1 << 30
    memory: int = 8 << 30
    clients: int = 8


class Server:
    """Serves a backend until it is closed; use it in a ``with`` statement.

    Args:
        backend: the name of an installed backend, or of one of its devices.
        host: the address to listen at. Others than loopback demand a secret.
        port: 0 for any that is free; ``address`` has it.
        secret: what clients must know, at least 16 bytes; b"" for nothing.
        tls: the context of a server with its certificate; None for plain TCP.
        limits: of messages, memory and clients.

    Raises:
        SettingsError: it would be open to everybody.
        BackendNotInstalledError, BackendUnavailableError, PluginLoadError: as ``tp.set_backend``.
        OSError: it cannot listen there.

    Examples:
        >>> from tensorplug_remote import Server
        >>> with Server("cpu") as server, tp.use_backend(f"remote:{server.address}"):
        ...     (tp.asarray([1.0, 2.0]) * 2).tolist()
        [2.0, 4.0]

    """

    def __init__(
        self,
        backend: str,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        secret: bytes = b"",
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
    ) -> None:
        if not secret and host not in LOOPBACK:
            raise SettingsError(
                f"a server at {host} needs a secret, or everybody there can use the device"
            )
        self.limits = limits or Limits()
        self._backend, self._secret, self._tls = backend, secret, tls
        self.about = describe(backend, self.limits)
        self._clients: dict[threading.Thread, socket.socket] = {}
        self._closed = threading.Event()
        self._listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        self.address = Address(host, self._listener.getsockname()[1], tls is not None)
        self._accepting = threading.Thread(
            target=self._accept, name="tensorplug-remote accepts", daemon=True
        )
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Send all clients away, and wait for the calls that run."""
        self._closed.set()
        for each in (self._listener, *self._clients.values()):
            with suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for thread in list(self._clients):
            thread.join()

    def wait(self) -> None:
        """Wait until another thread closes the server."""
        self._closed.wait()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connected, place = self._listener.accept()
            except OSError:
                if self._closed.is_set():
                    return
                log.exception("accepting a client failed")
                self._closed.wait(1)
                continue
            thread = threading.Thread(
                target=self._serve, args=(connected, place), name=f"client {place}", daemon=True
            )
            self._clients[thread] = connected
            thread.start()

    def _serve(self, connected: socket.socket, place: Any) -> None:
        """Serve one client, and log how it ended."""
        try:
            connected.settimeout(_GREETING)
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_side=True)
                self._clients[threading.current_thread()] = connected  # the other has no socket
            channel = Channel(connected, _GREETING, _SMALL)
        except (OSError, ValueError) as error:
            log.warning("client %s: no connection: %s", place, error)
            connected.close()
            self._clients.pop(threading.current_thread(), None)
            return
        try:
            self._talk(channel, place)
        except EOFError:
            log.info("client %s has gone", place)
        except OSError as error:
            log.warning("client %s is lost: %s", place, error)
        except TensorplugError as error:
            log.warning("client %s is refused: %s", place, error)
            channel.refuse(str(error))
        except Exception as error:
            log.exception("client %s: a fault of the server", place)
            channel.refuse(f"a fault of the server: {type(error).__name__}")
        finally:
            channel.close()
            self._clients.pop(threading.current_thread(), None)

    def _talk(self, channel: Channel, place: Any) -> None:
        if len(self._clients) > self.limits.clients:
            raise RefusedError(f"the server has {self.limits.clients} clients already")
        wishes = handshake.answer(channel, self._secret)
        self._compare(wishes)
        seconds = wishes.get("timeout")
        if not isinstance(seconds, int | float) or not 0.1 <= seconds <= 86_400:
            raise RefusedError("a client says for how long it bears silence")
        # The client hears signs of life, and so does not notice that a frame came incomplete.
        channel.longest, channel.seconds = self.limits.message, min(seconds, _SLOWEST)
        log.info("client %s is connected", place)
        with tp.use_backend(self._backend):
            channel.send(["welcome", self.about])
            with _beating(channel, seconds / 4):
                _obey(channel, Session(self.about["kernels"], self.limits.memory))

    def _compare(self, wishes: dict[str, Any]) -> None:
        for name, own in expectations().items():
            if wishes.get(name) != own:
                raise RefusedError(
                    f"{name} is {own} at the server, {str(wishes.get(name))[:40]!r} at the client"
                )


def describe(backend: str, limits: Limits) -> dict[str, Any]:
    """Open a backend, and return what clients are told about it."""
    opened = tp.find_backend(backend)
    if opened is None:
        tp.set_backend(backend)  # raises the reason
        raise BackendNotInstalledError(f"there is no backend {backend!r}")
    dtypes = [dtype for dtype in opened.dtypes if dtype is not dt.string]
    kernels = {}
    for name in {spec.name for spec in specs}.intersection(tp.kernels_for(backend)):
        native = [
            dtype.name
            for dtype in dtypes
            if tp.explain(name, backend=backend, dtype=dtype).how == "native"
        ]
        if native:
            kernels[name] = native
    largest = getattr(opened, "largest_buffer", None)
    return {
        "device": f"{opened.name} on {opened.device}",
        "dtypes": [dtype.name for dtype in dtypes],
        "kernels": kernels,
        "widens": [dtype.name for dtype in getattr(opened, "widens", dt.WIDENED)],
        "flushes": [dtype.name for dtype in getattr(opened, "flushes_subnormals", ())],
        "largest": min(limits.message, largest or limits.message),
    }


def _obey(channel: Channel, session: Session) -> None:
    """Do what a client says, until it says goodbye."""
    while True:
        message, payload = channel.receive(idle=None)
        if message[:1] == ["bye"]:
            return
        answered = session.handle(message, payload)
        if answered is not None:
            number, answer = answered
            channel.send(["done", number, answer.value, answer.error], answer.payload)


@contextmanager
def _beating(channel: Channel, seconds: float) -> Iterator[None]:
    """Send a sign of life now and then, also while a kernel runs, and what has arrived."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(seconds):
            try:
                channel.send(["alive", channel.received, channel.idle])
            except OSError:  # the channel has ended, which the other thread finds out, too
                return

    thread = threading.Thread(target=beat, name="tensorplug-remote beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
