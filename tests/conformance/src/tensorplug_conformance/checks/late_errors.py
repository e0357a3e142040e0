"""Level 1: errors that come late, of a device that is told to fail. Each check is a process.

``python -m ...late_errors NAME TARGET``. The device gets a few calls at once, of which one fails.
Its error must come with that call, a later one, a read or ``synchronize``, and be told once; it
has the right class, and names the kernel. All other results are right.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.errors import (
    BackendClosedError,
    BackendWarning,
    DeviceError,
    DeviceLostError,
    DeviceTimeoutError,
)
from tensorplug_conformance.checks.check import CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.elsewhere import LATE
from tensorplug_conformance.checks.probes import opened
from tensorplug_conformance.checks.processes import tell, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Tensor
    from tensorplug_conformance.session import Session


_LIMIT: Final = 2.0  # seconds of a wait for a device that does not answer
_NUMBERS: Final = np.array([1, 2, 3, 4], np.float32)
_FAILING: Final = "Neg"
_WAITS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "the read of its result": lambda wrong, _after: wrong.numpy(),
    "the read of what depends on it": lambda _wrong, after: after.numpy(),
    "synchronize": lambda _wrong, _after: tp.synchronize(),
}


def _program(x: Tensor) -> Tensor:
    return (-x) * x + x


class _Told:
    """The errors of one injected fault. ``ops``: those that they may name; by default any.

    ``where``: what has told the error, "" before.
    """

    def __init__(self, session: Session, kind: type[DeviceError], *ops: str) -> None:
        self._device, self._kind, self._ops = session.device, kind, ops
        self.where = ""

    def attempt(self, where: str, call: Callable[[], Any]) -> Any:
        """Return what a call returns; None if it tells the error, for the first time."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is judged
            self.judge(where, error)
            if self.where:
                raise CheckFailedError(
                    f"{self.where} has raised the error, and {where} raises {error!r}"
                ) from None
            self.where = where
            return None

    def judge(self, where: str, error: Exception) -> None:
        """Raise ``CheckFailedError`` unless it is the error that was asked for."""
        if not isinstance(error, self._kind):
            raise CheckFailedError(f"{where} raised {error!r}, no {self._kind.__name__}")
        if error.op not in self._ops if self._ops else not error.op:
            raise CheckFailedError(f"{where} raised {error!r}, whose op is {error.op!r}")
        if (error.backend, error.device) != (self._device.backend_name, self._device.name):
            raise CheckFailedError(f"{where} raised {error!r} of {error.backend}, {error.device}")

    def poisoned(self, where: str, tensor: Tensor | None) -> None:
        """Check that what has no contents is not read."""
        if tensor is None:
            return
        try:
            found = tensor.numpy()
        except Exception as error:  # noqa: BLE001  # as above
            self.judge(where, error)
        else:
            raise CheckFailedError(f"{where} gave {found.tolist()}, although the kernel failed")


def judge(session: Session, kind: type[DeviceError]) -> None:
    """Let the device fail in a way, and judge what the program sees.

    Raises:
        NotMeasuredError: the device cannot fail so.
        CheckFailedError: it tells no error, too many, another one, or does not go on.

    """
    with session.entered(), warnings.catch_warnings():
        warnings.simplefilter("ignore", BackendWarning)  # of tensors that are lost
        x, compiled = tp.asarray(_NUMBERS), tp.compile(_program)
        _expect("before all", compiled(x), _NUMBERS - _NUMBERS**2)
        _expect("before all", x * x - -x, _NUMBERS**2 + _NUMBERS)
        if issubclass(kind, DeviceLostError):
            _is_lost(session, kind, x)
            return
        for wait in _WAITS:
            _goes_on(session, kind, x, wait)
        _goes_on_compiled(session, kind, x, compiled)
        _in_debug_mode(session, kind, x)


def _inject(session: Session, kind: type[DeviceError]) -> None:
    inject = session.device.capabilities.inject_fault
    assert inject is not None
    refused = inject(kind)
    if refused:
        raise NotMeasuredError(f"the device cannot be made to fail so: {refused}")


def _expect(when: str, tensor: Tensor, right: np.ndarray[Any, Any]) -> None:
    found = tensor.numpy()
    if not np.array_equal(found, right):
        raise CheckFailedError(f"{when}: {found.tolist()} in the place of {right.tolist()}")


def _submit(session: Session, kind: type[DeviceError], x: Tensor) -> tuple[_Told, Any, Any, Any]:
    """Let one of three calls fail; return who was told, its result, and those after it."""
    told = _Told(session, kind, _FAILING)
    _inject(session, kind)
    wrong = told.attempt("its call", lambda: -x)
    after = None if wrong is None else told.attempt("the next call", lambda: wrong * x)
    other = told.attempt("a later call", lambda: x * x)
    return told, wrong, after, x * x if other is None else other


def _goes_on(session: Session, kind: type[DeviceError], x: Tensor, wait: str) -> None:
    before = x + x
    told, wrong, after, other = _submit(session, kind, x)
    if not told.where:
        told.attempt(wait, partial(_WAITS[wait], wrong, after))
    if not told.where:
        raise CheckFailedError(f"{wait} did not raise the error of {_FAILING}, nor any call")
    told.attempt("the next synchronize", tp.synchronize)
    told.poisoned("the next read of its result", wrong)
    told.poisoned("the next read of what depends on it", after)
    _expect("what was computed before", before, 2 * _NUMBERS)
    _expect("what does not depend on it", other, _NUMBERS**2)
    _expect("what is computed afterwards", x + x, 2 * _NUMBERS)


def _goes_on_compiled(
    session: Session, kind: type[DeviceError], x: Tensor, compiled: Callable[[Tensor], Tensor]
) -> None:
    told = _Told(session, kind)
    _inject(session, kind)
    result = told.attempt("the compiled call", lambda: compiled(x))
    if result is not None:
        told.attempt("the read of its result", result.numpy)
    if not told.where:
        raise CheckFailedError("the error of a kernel in a compiled program was not raised")
    told.attempt("the next synchronize", tp.synchronize)
    _expect("the next run of the program", compiled(x), _NUMBERS - _NUMBERS**2)


def _in_debug_mode(session: Session, kind: type[DeviceError], x: Tensor) -> None:
    told = _Told(session, kind, _FAILING)
    _inject(session, kind)
    with tp.debug(nan=False, inf=False):
        told.attempt("its call in debug mode", lambda: -x)
    if not told.where:
        raise CheckFailedError("in debug mode, the error did not come with its call")


def _synchronized() -> np.ndarray[Any, Any]:
    """Return the right numbers: ``synchronize`` need not raise anything."""
    tp.synchronize()
    return _NUMBERS


def _is_lost(session: Session, kind: type[DeviceError], x: Tensor) -> None:
    device, silent = session.device, kind is DeviceTimeoutError
    if silent:
        device.wait_limit = session.engine.devices.wait_limit = _LIMIT
    told = _Told(session, kind, _FAILING, "")  # drivers seldom say whose work was the last
    _inject(session, kind)
    told.poisoned("the read of its result", told.attempt("its call", lambda: -x))
    uses: dict[str, Callable[[], Any]] = {
        "a later read": x.numpy,
        "a later call": lambda: (x * x).numpy() / _NUMBERS,
        "synchronize": _synchronized,
    }
    for where, use in uses.items():
        with suppress(DeviceLostError):
            if not np.array_equal(use(), _NUMBERS):
                raise CheckFailedError(f"{where} of a lost device gave wrong numbers")
    explain = device.capabilities.explain_loss
    if explain and not device.silent and not explain():
        raise CheckFailedError("the device is lost, and explain_loss does not say so")
    if not explain and not device.silent:
        tp.remove_backend(device.name)
    tp.set_backend(device.name)
    _expect("after set_backend", tp.asarray(_NUMBERS) * 2, 2 * _NUMBERS)
    with suppress(BackendClosedError):  # unless it could be saved
        _expect("a tensor of the lost device", x, _NUMBERS)


def main(arguments: Sequence[str]) -> int:
    """Run one check of a backend; return the exit status."""
    name, target = arguments
    session = opened(unpack(target))
    return tell(lambda: judge(session, LATE[name]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
