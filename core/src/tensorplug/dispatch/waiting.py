"""Waiting for a device, but not for ever, and the errors that come then."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from tensorplug.errors import DeviceError, DeviceTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tensorplug.contract.backend import Backend


class Waited:
    """The part of an open device that waits for it.

    ``wait_limit``: the most seconds of a wait; None: without limit. ``silent``: what the device
    did not do within that limit, "" while it answers. Drivers rarely have a limit of their own.
    """

    __slots__ = ("silent", "wait_limit")

    backend: Backend
    backend_name: str
    name: str
    is_real: bool
    silent: str
    wait_limit: float | None
    forget_plans: Callable[[], None]

    def read(self, buffer: Any, what: object = "a tensor") -> np.ndarray[Any, Any]:
        """Return the contents of a buffer; wait for them.

        Raises:
            DeviceTimeoutError: they did not come within the limit. Also what the backend raises.

        """
        try:
            if self.wait_limit is None:
                return self.backend.to_host(buffer)
            array: np.ndarray[Any, Any] = self._within("read", self.backend.to_host, buffer)
        except Exception as error:
            self._annotate_late(error, f"{what} was read")
            raise
        return array

    def synchronize(self, when: str = "synchronize waited") -> None:
        """Wait until all work is done; raise as ``read`` does."""
        try:
            if self.wait_limit is None:
                self.backend.synchronize()
            else:
                self._within("synchronize", self.backend.synchronize)
        except Exception as error:
            self._annotate_late(error, when)
            raise

    def close(self) -> None:
        """Close the backend; raise ``DeviceTimeoutError`` if that takes longer than the limit."""
        if self.wait_limit is None:
            self.backend.close()
        elif not _ask(self.wait_limit, self.backend.close):
            raise self.timeout_error("close")

    def _within(self, what: str, wait: Callable[..., Any], *args: Any) -> Any:
        """Return ``wait(*args)``; a device that takes too long is not asked again."""
        if not self.silent:
            assert self.wait_limit is not None
            answered = _ask(self.wait_limit, wait, *args)
            if answered:
                return answered[0]
            self.silent = what
            self.forget_plans()  # so that calls find out
        raise self.timeout_error()

    def timeout_error(self, what: str = "") -> DeviceTimeoutError:
        """Return the error of a device that did not do ``what`` in time, or something before."""
        error = DeviceTimeoutError(
            f"device {self.name!r} did not {what or self.silent} within {self.wait_limit:g} s "
            "(TENSORPLUG_WAIT_LIMIT), and counts as lost; tp.set_backend opens it anew"
        )
        self.blame(error)
        return error

    def blame(self, error: BaseException, op: str = "") -> str:
        """Complete what an error of the backend says of its origin, which may be the call ``op``.

        Return what a note should say if it names another op.
        """
        if not isinstance(error, DeviceError):
            return ""
        error.op, error.device = error.op or op, error.device or self.name
        error.backend = error.backend or self.backend_name
        return "" if error.op == op else f", but it was {error.op} that failed; {_FIND}"

    def _annotate_late(self, error: BaseException, when: str) -> None:
        """Add a note to an error that came from the backend after the call that caused it."""
        if not self.is_real or self.silent:  # it is that of an interpreter, or ours
            return
        self.blame(error)
        if when:
            error.add_note(f"when {when} on {self.name!r}; {_FIND}")


_FIND: Final = (
    "a device with a queue tells errors of earlier calls then: in tensorplug.debug() "
    "(TENSORPLUG_DEBUG=verify) the call is named"
)


def _ask(seconds: float, wait: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """Return the result of ``wait(*args)`` in a tuple; an empty one if it takes longer.

    It runs in a thread of its own, which stays behind if it takes longer: a call of a driver
    cannot be interrupted. The thread keeps nobody from leaving Python.

    Raises: what ``wait`` raises.
    """
    from concurrent.futures import Future  # few programs have a limit

    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(wait(*args))
        except BaseException as error:  # noqa: BLE001  # handed to the thread that waits
            answer.set_exception(error)

    Thread(target=ask, name="tensorplug-waits", daemon=True).start()
    try:
        return (answer.result(seconds),)
    except TimeoutError:
        if answer.done():  # that of the backend, or it has come at the last moment
            return (answer.result(),)
        return ()
