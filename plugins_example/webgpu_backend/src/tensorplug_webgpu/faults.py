"""What goes wrong on a device, as errors for the user.

Everything that is asked of an opened device is asked inside ``Guard.using``. What wgpu raises
there, or only logs, becomes an error of ours. Compiling has a thread of its own, since a driver's
compiler may not end. A device that is lost, or does not answer in time, is not asked again: while
wgpu waits for work to end, a second thread may wait with it for ever.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

import wgpu

from tensorplug.plugin import (
    BackendMemoryError,
    DeviceLostError,
    DeviceTimeoutError,
    SettingsError,
    TensorplugError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT: Final = "TENSORPLUG_WEBGPU_TIMEOUT"
_SECONDS: Final = 300.0  # as much as 256 launches may take where a processor acts as a GPU
_GLANCE: Final = 1.0  # seconds between two looks at the thread that waits for the device
_LOST: Final = "device is lost"  # of wgpu-native, which has no kind of error of its own for it
_FULL: Final = "Not enough memory left"  # where an upload finds no room, an error of validation
_BEGINS: Final = "DEVICE LOST!"  # wgpu's log, before the line that tells the cause
_TELLS: Final = "The WGPU device was lost "
_LINES: Final = 20
_Compiled = TypeVar("_Compiled")
_BUG: Final = "This is a fault of tensorplug-webgpu: please report it"


class ShaderError(TensorplugError, RuntimeError):
    """A compiler refused one of our shaders; the message shows where."""


class UsageError(TensorplugError, RuntimeError):
    """WebGPU found a call invalid, which is a fault of this package."""


def read_limit() -> float:
    """Return for how many seconds to wait for a device.

    Raises:
        SettingsError: the variable is no positive number.

    """
    text = os.environ.get(TIMEOUT, "").strip()
    try:
        seconds = float(text or _SECONDS)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise SettingsError(f"{TIMEOUT}={text!r}: must be a number of seconds, more than 0")
    return min(seconds, threading.TIMEOUT_MAX)


class Guard:
    """What is known of the health of one device."""

    def __init__(self, device: wgpu.GPUDevice, name: str) -> None:
        self.name = name
        self.lost = ""  # why, once it is
        self._kind = DeviceLostError
        self._full = ""  # when memory ran out
        self._limit = read_limit()
        self._messages: list[str] = []
        self._pending: Any = None  # what tells the end of a wait that an interrupt has ended
        self._poller: threading.Thread = device._poller  # wgpu has no public wait with a limit
        self._device = device
        _watch(self)

    @contextmanager
    def using(self, action: str) -> Iterator[None]:
        """Raise errors of ours for what goes wrong inside, which came from ``action``.

        Raises:
            DeviceLostError: the device is gone; DeviceTimeoutError: it does not answer.
            BackendMemoryError: memory ran out.
            UsageError: WebGPU found a call invalid, inside or since the last use.

        """
        self._check(action)
        above: Guard | None = getattr(_current, "guard", None)
        _current.guard = self
        try:
            yield
        except wgpu.GPUError as error:
            self._messages.clear()  # wgpu logs what it raises, in part
            raise self._translate(error, action) from error
        finally:
            _current.guard = above
        self._check(action)

    def wait(self, promise: Any, action: str) -> None:
        """Wait for a promise of wgpu.

        Raises:
            DeviceTimeoutError: it was not kept in time.
            DeviceLostError: the device was lost meanwhile.

        """
        self._pending = promise._thread_event
        self._await(action)
        try:
            promise.sync_wait()
        except RuntimeError as error:  # mapping memory fails only on a device that is lost
            self.lost = self.lost or str(error)
            raise self._explain_loss(action) from error

    def _await(self, action: str) -> None:
        deadline = time.monotonic() + self._limit
        while not self._pending.wait(min(_GLANCE, max(0.0, deadline - time.monotonic()))):
            if not self._poller.is_alive():
                self.lost = "the thread that waits for it has ended"
            elif time.monotonic() > deadline:
                self._kind = DeviceTimeoutError
                self.lost = (
                    f"it did not end {action} within {self._limit:g} seconds, the limit that "
                    f"{TIMEOUT} sets"
                )
            else:
                continue
            _unfinished.append(self._device)  # freeing it would pull it from under that thread
            raise self._explain_loss(action)
        self._pending = None

    def _check(self, action: str) -> None:
        if self._pending is not None and not self.lost:
            self._await(action)
        if self.lost:
            raise self._explain_loss(action)
        if self._messages:
            told = "\n".join(self._messages)
            self._messages.clear()
            raise UsageError(
                f"{self.name}: WebGPU said, during {action} or before: {told}. {_BUG}"
            )

    def _translate(self, error: wgpu.GPUError, action: str) -> TensorplugError:
        if _LOST in str(error):
            self.lost = self.lost or str(error).splitlines()[-1].strip() + self._full
            return self._explain_loss(action)
        if isinstance(error, wgpu.GPUOutOfMemoryError) or _FULL in str(error):
            self._full = f", after memory ran out during {action}"  # drivers may lose it then
            return BackendMemoryError(f"{self.name} ran out of memory during {action}")
        _log.error("WebGPU refused %s: %s", action, error)  # what is raised may be suppressed
        return UsageError(f"{self.name}: WebGPU refused {action}: {error}. {_BUG}")

    def _explain_loss(self, action: str) -> DeviceLostError:
        return self._kind(
            f"{self.name} is lost, and with it all tensors stored there (found during {action}): "
            f"{self.lost}. tp.set_backend opens it anew"
        )

    def tell(self, message: str) -> None:
        """Note what wgpu logs instead of raising it."""
        if message.startswith(_TELLS):
            self.lost = self.lost or " ".join(message.removeprefix(_TELLS).split())
        elif message != _BEGINS:
            self._messages.append(message)

    def compile(self, kernel: str, make: Callable[[], _Compiled]) -> _Compiled:
        """Return what ``make`` compiles for a kernel, in a thread of its own.

        Raises:
            ShaderError: a compiler refuses it.
            DeviceTimeoutError: the device did not compile it in time.
            DeviceLostError: it is gone.

        """
        made: Future[_Compiled] = Future()
        ended = threading.Event()
        made.add_done_callback(lambda _made: ended.set())

        def work() -> None:
            _current.guard = self
            try:
                made.set_result(make())
            except BaseException as error:  # noqa: BLE001  # raised below
                made.set_exception(error)

        action = f"compiling {kernel!r}"
        with self.using(action):
            threading.Thread(target=work, name=f"webgpu: {action}", daemon=True).start()
            self._pending = ended
            self._await(action)
            try:
                return made.result()
            except wgpu.GPUValidationError as error:
                if _LOST in str(error) or _FULL in str(error):
                    raise
                self._messages.clear()
                lines = [line for line in str(error).splitlines() if line.strip()]
                log = "\n".join(lines[:_LINES])
                _log.error("WebGPU refused the shader of %r: %s", kernel, log)
                raise ShaderError(
                    f"{self.name} refused the shader of {kernel!r}:\n{log}"
                ) from error


class _Messages(logging.Filter):
    """Takes errors about our devices out of wgpu's log. Those of other users' stay there."""

    def filter(self, record: logging.LogRecord) -> bool:
        guard: Guard | None = getattr(_current, "guard", None) or _pollers.get(record.thread or 0)
        if guard is None or record.levelno < logging.ERROR:
            return True
        guard.tell(record.getMessage())
        return False


def _watch(guard: Guard) -> None:
    _pollers[guard._poller.ident or 0] = guard
    logging.getLogger("wgpu").addFilter(_messages)  # once, however often it is called


_log: Final = logging.getLogger("tensorplug_webgpu")
_log.addHandler(logging.NullHandler())  # it is silent unless a program wants logs
_current: Final = threading.local()  # the guard of what a thread is doing
_pollers: Final[WeakValueDictionary[int, Guard]] = WeakValueDictionary()  # by wgpu's threads
_messages: Final = _Messages()
_unfinished: Final[list[wgpu.GPUDevice]] = []
