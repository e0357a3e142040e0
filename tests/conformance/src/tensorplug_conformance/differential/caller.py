"""Calls single kernels on a backend, in a process of its own that a crash may take down."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.case import Case
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks import Target

__all__ = ["Answer", "Caller", "NotCallableError", "answer"]

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
        self._connection: Connection | None = None
        self._process: Any = None
        self._losses, self._most = 0, _LOSSES

    def allow(self, losses: int = _LOSSES) -> None:
        """Allow so many lost processes from now on."""
        self._losses, self._most = 0, losses

    def call(self, kernel: str, operands: Sequence[Any], attributes: dict[str, Any]) -> Answer:
        """Return the answer of the backend; errors are one, and so is the end of the process.

        Raises:
            NotCallableError: the backend does not open, or several processes were lost.

        """
        connection = self._connection or self._start()
        try:
            connection.send((kernel, list(operands), attributes))
            if connection.poll(_PATIENCE):
                found: Answer = connection.recv()
                return found
            why = f"it hung: it did not end within {_PATIENCE:.0f} s"
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            why = f"the process died of signal {-code}" if code < 0 else "the process ended"
        self.close()
        self._losses += 1
        return Answer(None, error=why, gone=True)

    def _start(self) -> Connection:
        if self._losses >= self._most:
            raise NotCallableError(f"{self._losses} processes of {self.target.backend} were lost")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self.target.backend, self.target.factory)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._connection = ours
        why = "it does not answer"
        try:
            if ours.poll(_PATIENCE):
                why = ours.recv()
        except (EOFError, ConnectionError):
            why = "the process ends"
        if why:
            raise NotCallableError(f"backend {self.target.backend!r} does not open: {why}")
        return ours

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._connection = None


def _serve(connection: Connection, backend: str, factory: str | None) -> None:
    try:
        session = Session(engine_factory(factory), backend)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises
        connection.send(f"{type(error).__name__}: {error}")
        return
    connection.send("")
    while True:
        try:
            kernel, operands, attributes = connection.recv()
        except EOFError:
            return
        connection.send(answer(session, kernel, operands, attributes))


def answer(
    session: Session, kernel: str, operands: Sequence[Any], attributes: dict[str, Any]
) -> Answer:
    """Return the answer of the backend of a session; errors are one."""
    try:
        spec = session.engine.registry.state.specs[kernel]
        tensors = [_uploaded(session, operand) for operand in operands]
        how, _ = session.how(spec, Case("", tuple(operands), attributes))
        outputs = session.call(spec, tensors, attributes)
        return Answer([session.read(output) for output in outputs], how)
    except Exception as error:  # noqa: BLE001  # whatever a backend raises is an answer
        return Answer(None, error=f"{type(error).__name__}: {error}")


def _uploaded(session: Session, operand: Any) -> Any:
    if operand is None:
        return None
    if isinstance(operand, list):
        return [session.upload(array) for array in operand]
    return session.upload(operand)
