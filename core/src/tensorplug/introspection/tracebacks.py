"""Tracebacks without the core's frames, wherever Python shows one (ADR 48).

Frames are removed where a traceback is shown, for as long as that takes. Calls that do not fail
therefore pay nothing, and debuggers and programs that read ``__traceback__`` see every frame.
"""

from __future__ import annotations

import linecache
import sys
import threading
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from tensorplug.errors import TensorplugError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_CORE: Final = "tensorplug"
_PLUGINS: Final = "tensorplug_"  # the modules of distributions that are called tensorplug-...
_NOTE: Final = "Frames of tensorplug are hidden; TENSORPLUG_TRACEBACK=full shows them."
_MARK: Final = "__tracebackhide__"  # pytest hides the frames of modules with this variable


def install() -> None:
    """Let the hooks of Python and IPython for unhandled exceptions show short tracebacks.

    The hooks in force are called as before, but with short tracebacks.
    """
    sys.excepthook = partial(_show, sys.excepthook)
    threading.excepthook = partial(_show_in_thread, threading.excepthook)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    shown_by = getattr(shell, "InteractiveTB", None)
    if shown_by is not None:
        shown_by.structured_traceback = partial(_show, shown_by.structured_traceback)


def hide_from_pytest() -> None:
    """Let pytest hide the frames of the modules of the core that are loaded."""
    if "pytest" not in sys.modules:
        return
    for name, module in list(sys.modules.items()):
        if _is_in(_CORE, name):
            vars(module).setdefault(_MARK, _is_hidden_in_pytest)


def _show(
    shown_by: Callable[..., Any],
    kind: Any,
    error: Any,
    traceback: Any = None,
    *more: Any,
    **options: Any,
) -> Any:
    """Call a hook, or the method with which IPython makes the text of a traceback."""
    with _short(error, traceback) as shortened:
        return shown_by(kind, error, shortened, *more, **options)


def _show_in_thread(shown_by: Callable[..., Any], arguments: Any) -> None:
    kind, error, traceback, thread = arguments
    with _short(error, traceback) as shortened:
        shown_by(threading.ExceptHookArgs((kind, error, shortened, thread)))


def _is_hidden_in_pytest(caught: Any = None) -> bool:
    error = getattr(caught, "value", None)
    return not _shows_all() and not (error and _is_fault(error, error.__traceback__))


@contextmanager
def _short(error: Any, traceback: Any) -> Iterator[Any]:
    """Shorten the traceback of ``error``, and those of its causes, in the block.

    ``traceback``: what would be shown of ``error`` itself; the block gets it shortened.
    """
    if not isinstance(error, BaseException) or _shows_all():
        yield traceback
        return
    kept = [(each, each.__traceback__) for each in _chain(error)]
    notes = getattr(error, "__notes__", None)
    try:
        hidden = False
        for each, whole in kept:
            given = traceback if each is error else whole
            each.__traceback__ = _shorten(each, given)
            hidden = hidden or each.__traceback__ is not given
        if hidden:
            error.__notes__ = [*(notes or ()), _NOTE]
        yield error.__traceback__
    finally:
        for each, whole in kept:
            each.__traceback__ = whole
        if notes is not None:
            error.__notes__ = notes
        elif hasattr(error, "__notes__"):
            del error.__notes__


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception, its causes and contexts, and the members of groups, each once."""
    chain: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in chain:
            chain[id(each)] = each
            members = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
            waiting += [each.__cause__, each.__context__, *members]
    return list(chain.values())


def _shorten(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the core's frames; itself if there is nothing to hide.

    Of errors of ours, it also lacks the frames of the plugin that raised them. The traceback of a
    fault of the core stays whole, since it is what a report needs.
    """
    entries = list(_entries(traceback))
    if _is_fault(error, traceback):
        return traceback
    expected = isinstance(error, TensorplugError)
    visible = [entry for entry in entries if not _is_ours(entry, plugins=expected)]
    if not visible or len(visible) == len(entries):
        return traceback
    shortened = None
    for entry in reversed(visible):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def _is_fault(error: BaseException, traceback: TracebackType | None) -> bool:
    """Return whether an exception came from a line of the core that does not raise on purpose."""
    last = None
    for last in _entries(traceback):  # noqa: B007  # the last one is wanted
        pass
    if last is None or not isinstance(error, Exception) or isinstance(error, TensorplugError):
        return False
    if not _is_ours(last, plugins=False):
        return False
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno)
    return isinstance(error, AssertionError) or not line.lstrip().startswith("raise ")


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(entry: TracebackType, *, plugins: bool) -> bool:
    module = entry.tb_frame.f_globals.get("__name__") or ""
    return _is_in(_CORE, module) or (plugins and module.startswith(_PLUGINS))


def _is_in(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _shows_all() -> bool:
    """Return whether the environment asks for whole tracebacks; also if it asks for nonsense."""
    try:
        from tensorplug.engine import settings  # only where an exception is shown

        return settings.traceback() == "full"
    except Exception:  # noqa: BLE001  # an exception must be shown, even as the interpreter ends
        return True
