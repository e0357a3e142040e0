"""Calls single kernels on a backend, in a process of its own that a crash may take down."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.case import Case, mapped
from tensorplug_conformance.running.peer import Peer, PeerLostError, Requests
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks import Target


_PATIENCE: Final = 120.0  # seconds for one call, or for the start of the process
_LOSSES: Final = 3  # processes, after which no other one is started


class NotCallableError(Exception):
    """The backend does not open in a process of its own, or takes each of them down."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a call, and how it ran; or why there are none.

    ``how``: ``native``, ``decomposed``, ...; empty if it did not run. ``gone``: the process died
    or hung.
    """

    outputs: list[Array] | None
    how: str = ""
    error: str = ""
    gone: bool = False


class Caller:
    """One backend in one process, which is started at the first call and after each crash."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._peer: Peer | None = None
        self._losses, self._most = 0, _LOSSES

    def allow(self, losses: int = _LOSSES) -> None:
        """Allow so many lost processes from now on."""
        self._losses, self._most = 0, losses

    def call(self, kernel: str, operands: Sequence[Any], attributes: dict[str, Any]) -> Answer:
        """Return the answer of the backend; errors are one, and so is the end of the process.

        Raises:
            NotCallableError: the backend does not open, or several processes were lost.

        """
        peer = self._peer or self._start()
        peer.send((kernel, list(operands), attributes))
        try:
            answer: Answer = peer.receive(_PATIENCE)
        except PeerLostError as error:
            self.close()
            self._losses += 1
            return Answer(None, error=str(error), gone=True)
        return answer

    def _start(self) -> Peer:
        if self._losses >= self._most:
            raise NotCallableError(f"{self._losses} processes of {self.target.backend} were lost")
        arguments = [self.target.backend, *filter(None, [self.target.factory])]
        self._peer = Peer("tensorplug_conformance.differential.caller", arguments)
        try:
            why = self._peer.receive(_PATIENCE)
        except PeerLostError as error:
            why = str(error)
        if why:
            raise NotCallableError(f"backend {self.target.backend!r} does not open: {why}")
        return self._peer

    def close(self) -> None:
        """End the process."""
        if self._peer is not None:
            self._peer.stop()
            self._peer = None


def main(backend: str, factory: str | None = None) -> None:
    """Answer requests until there are no more; the first answer is why the backend fails."""
    requests = Requests()
    try:
        session = Session(engine_factory(factory), backend)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises
        requests.answer(f"{type(error).__name__}: {error}")
        return
    requests.answer("")
    with suppress(EOFError):
        while True:
            requests.answer(answer(session, *requests.receive()))


def answer(
    session: Session, kernel: str, operands: Sequence[Any], attributes: dict[str, Any]
) -> Answer:
    """Return the answer of the backend of a session; errors are one."""
    try:
        spec = session.engine.registry.state.specs[kernel]
        tensors = mapped(session.upload, list(operands))
        how, _ = session.how(spec, Case("", tuple(operands), attributes))
        outputs = session.call(spec, tensors, attributes)
        return Answer([session.read(output) for output in outputs], how)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is an answer
        return Answer(None, error=f"{type(error).__name__}: {error}")
