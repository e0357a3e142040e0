"""A proxy that stands between a client and a server, and does harm to what passes."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tensorplug_remote.settings import Address


class Proxy:
    """Forwards bytes; ``harm(data)`` returns what arrives instead, None to end the connection.

    It is asked for the bytes that come from ``side``, "client" or "server", once ``armed`` is set.
    """

    def __init__(self, target: Address, side: str, harm) -> None:
        self.target, self.side, self.harm = target, side, harm
        self.armed = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self.listener.getsockname()[1])
        self.sockets = [self.listener]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.target.host, self.target.port))
            self.sockets += [near, far]
            for side, a, b in (("client", near, far), ("server", far, near)):
                thread = threading.Thread(target=self.forward, args=(side, a, b), daemon=True)
                self.threads.append(thread)
                thread.start()

    def forward(self, side, source, target):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if side == self.side and self.armed.is_set():
                    data = self.harm(data)
                if data is None:
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self.threads:
            thread.join(10)


class Once:
    """Does harm to the first bytes alone; what follows passes."""

    def __init__(self, harm):
        self.harm, self.done = harm, False

    def __call__(self, data):
        if self.done:
            return data
        self.done = True
        return self.harm(data)


class Stops:
    """Lets half of the first bytes pass, and nothing that follows."""

    def __init__(self):
        self.done = False

    def __call__(self, data):
        passing = b"" if self.done else data[: len(data) // 2]
        self.done = True
        return passing


def flip(data):
    """Change one bit, in the middle."""
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 1
    return bytes(changed)


def late(seconds):
    """Let the bytes pass after a while."""

    def wait(data):
        time.sleep(seconds)
        return data

    return wait
