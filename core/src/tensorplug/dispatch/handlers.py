"""What the layers above an engine put into the way of its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


def pass_on(proceed: Callable[..., Any], *request: Any) -> Any:
    """Do what comes below: the handler of an engine without such a layer."""
    return proceed(*request)


class Handlers(NamedTuple):
    """The handlers of an engine, which stand above what it does itself.

    Each but the last is a function of ``proceed`` and of a request. It answers the request, or
    returns ``proceed(*request)``, perhaps with another request.

    ``calls``: a kernel call whose plan is known (``engine.path``). ``backward``: nodes with their
    cotangents, and the leaves whose cotangents are wanted (``autodiff``). ``loops``: a step, its
    first carries, the sequences whose slices it takes, and whether it begins with the last slice
    (``ops.stepping``). ``crossing``: returns how many bytes the decomposition of a plan would
    copy to other backends and back (``engine.resolution``).
    """

    calls: Callable[..., Any] = pass_on
    backward: Callable[..., Any] = pass_on
    loops: Callable[..., Any] = pass_on
    crossing: Callable[[Any, Any], int] = lambda _engine, _plan: 0
