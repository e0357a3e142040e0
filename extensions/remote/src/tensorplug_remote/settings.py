"""Addresses, secrets and limits, from options or the environment."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tensorplug.errors import BackendUnavailableError, SettingsError

ADDRESSES: Final = "TENSORPLUG_REMOTE_ADDRESS"
SECRET: Final = "TENSORPLUG_REMOTE_SECRET"  # noqa: S105  # the name of a variable
SECRET_FILE: Final = "TENSORPLUG_REMOTE_SECRET_FILE"  # noqa: S105  # as above
CERTIFICATES: Final = "TENSORPLUG_REMOTE_CERTIFICATES"
TIMEOUT: Final = "TENSORPLUG_REMOTE_TIMEOUT"

_ADDRESS: Final = re.compile(r"(tls://)?(\[[^\]\s]+\]|[^\[\]:/,\s]+):(\d{1,5})", re.ASCII)
_SIZE: Final = re.compile(r"(\d+)(B|KiB|MiB|GiB)?", re.ASCII)
_UNITS: Final = {None: 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}
_SECONDS: Final = 30.0
_LEAST: Final = 16  # bytes of a secret


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; ``tls``: whether it speaks TLS."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls://' * self.tls}{host}:{self.port}"


def read_address(text: str, role: str) -> Address:
    """Return the address ``host:port``, ``[::1]:port`` or ``tls://host:port``.

    Raises:
        SettingsError: it is none; ``role`` says whose.

    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or not 0 < int(found[3]) < 1 << 16:
        raise SettingsError(f"{role}: {text!r} is no address, such as 127.0.0.1:7654")
    return Address(found[2].strip("[]"), int(found[3]), bool(found[1]))


def find_address(device: str | None) -> Address:
    """Return the address of a device: one by itself, or the number of one in the environment.

    Raises:
        BackendUnavailableError: the environment names none of that number.
        SettingsError: it is no address.

    """
    if device is not None and not device.isdecimal():
        return read_address(device, f"remote:{device}")
    listed = [part for part in os.environ.get(ADDRESSES, "").split(",") if part.strip()]
    number = int(device or 0)
    if number >= len(listed):
        raise BackendUnavailableError(
            f"remote: {ADDRESSES} names {len(listed)} servers, so there is no number {number}. "
            f"Set it to host:port, of `tensorplug-remote serve`, or open remote:host:port"
        )
    return read_address(listed[number], ADDRESSES)


def read_secret(path: str | None = None) -> bytes:
    """Return the secret: of a file, or of the environment; b"" without one.

    Raises:
        SettingsError: the file cannot be read, or the secret is too short to be one.

    """
    path = path or os.environ.get(SECRET_FILE)
    secret = os.environ.get(SECRET, "").encode()
    if path:
        try:
            secret = Path(path).read_bytes().strip()
        except OSError as error:
            raise SettingsError(
                f"remote: the file of the secret cannot be read: {error}"
            ) from error
    if len(secret) < _LEAST and (secret or path):
        raise SettingsError(f"remote: a secret has at least {_LEAST} bytes, got {len(secret)}")
    return secret


def read_timeout() -> float:
    """Return after how many seconds of silence a connection counts as lost.

    Raises:
        SettingsError: the environment has no such number.

    """
    text = os.environ.get(TIMEOUT, str(_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise SettingsError(f"{TIMEOUT} must be from 0.1 to 86400 seconds, got {text!r}")
    return seconds


def read_size(text: str) -> int:
    """Return the bytes that ``64MiB`` or ``1GiB`` stands for.

    Raises:
        ValueError: it stands for none.

    """
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]):
        raise ValueError(text)
    return int(found[1]) << _UNITS[found[2]]


def client_context() -> ssl.SSLContext:
    """Return what a client demands of a server's certificate.

    Raises:
        SettingsError: the file of certificates to trust is none.

    """
    path = os.environ.get(CERTIFICATES)
    try:
        return ssl.create_default_context(cafile=path or None)
    except OSError as error:
        raise SettingsError(f"{CERTIFICATES}: {path!r} cannot be used: {error}") from error


def server_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """Return what a server shows its clients.

    Raises:
        SettingsError: a file is not what it should be.

    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise SettingsError(f"certificate {certificate!r}, key {key!r}: {error}") from error
    return context
