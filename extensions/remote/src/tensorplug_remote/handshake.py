"""How both sides find out that they know the same secret, and agree on the keys of a connection.

The server begins: ``["tensorplug", version, nonce]``. The client answers with a nonce of its own
and a proof, HMAC-SHA256 of both nonces with the secret as key; the server with its proof, or with
``["refused", reason]``. From then on, frames have keys that follow from secret and nonces. The
secret is never sent, and a proof fits one connection only. Without a secret, tags find faults, but
keep nobody out.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_remote.errors import ProtocolError

if TYPE_CHECKING:
    from tensorplug_remote.framing import Channel

VERSION: Final = 1
"""Of the protocol: messages, frames and proofs."""


class RefusedError(ProtocolError):
    """One side does not want the other."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What follows from a secret and the nonces of a connection."""

    secret: bytes
    nonces: bytes

    def derive(self, purpose: str) -> bytes:
        """Return the proof or the key for a purpose."""
        return hmac.digest(self.secret, purpose.encode() + b"\0" + self.nonces, "sha256")

    def proves(self, purpose: str, proof: Any) -> bool:
        """Return whether somebody who knows the secret made ``proof``, in hexadecimal."""
        wanted = self.derive(purpose).hex()
        return isinstance(proof, str) and hmac.compare_digest(wanted.encode(), proof.encode())


def ask(channel: Channel, secret: bytes, wishes: dict[str, Any]) -> dict[str, Any]:
    """Do the client's part; return what the server says about itself.

    Raises:
        RefusedError: one side does not want the other, and why.

    """
    match _heard(channel):
        case ["tensorplug", int(version), str(nonce)]:
            if version != VERSION:
                raise RefusedError(f"it speaks version {version} of the protocol, not {VERSION}")
        case _:
            raise RefusedError("it is no server of tensorplug-remote")
    own = secrets.token_hex(32)
    keys = Keys(secret, f"{nonce} {own}".encode())
    channel.send(["open", VERSION, own, keys.derive("client").hex()])
    match _heard(channel):
        case ["accepted", proof] if keys.proves("server", proof):
            channel.agree(keys.derive("from client"), keys.derive("from server"))
        case _:
            raise RefusedError("it does not know the secret")
    channel.send(["wishes", wishes])
    match _heard(channel):
        case ["welcome", dict(about)]:
            return about
    raise RefusedError("it does not say what it is")


def answer(channel: Channel, secret: bytes) -> dict[str, Any]:
    """Do the server's part up to the client's proof; return the client's wishes.

    Raises:
        RefusedError: the client is of another version, or does not know the secret.

    """
    nonce = secrets.token_hex(32)
    channel.send(["tensorplug", VERSION, nonce])
    match channel.receive(idle=channel.seconds)[0]:
        case ["open", int(version), *_] if version != VERSION:
            raise RefusedError(f"version {version} of the protocol is unknown: this is {VERSION}")
        case ["open", _, str(theirs), proof]:
            keys = Keys(secret, f"{nonce} {theirs}".encode())
        case _:
            raise RefusedError("a client begins with its proof")
    if not keys.proves("client", proof):
        raise RefusedError("the client does not know the secret")
    channel.send(["accepted", keys.derive("server").hex()])
    channel.agree(keys.derive("from server"), keys.derive("from client"))
    match channel.receive(idle=channel.seconds)[0]:
        case ["wishes", dict(wishes)]:
            return wishes
    raise RefusedError("a client says what it expects")


def _heard(channel: Channel) -> list[Any]:
    message, _ = channel.receive(idle=channel.seconds)
    match message:
        case ["refused", str(reason)]:
            raise RefusedError(reason)
    return message
