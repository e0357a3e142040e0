"""Ctrl-C and SIGTERM during a run: once, so that what comes after is not interrupted again."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


INTERRUPTED: Final = 130  # exit code: 128 and the number of SIGINT, as of shells
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def once() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first of the two signals, and ignore later ones."""

    def stop(_number: int, _frame: object) -> NoReturn:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
