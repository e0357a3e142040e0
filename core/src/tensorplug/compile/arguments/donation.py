"""Arguments that a caller of a compiled function gives up."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.tensors.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Donation(NamedTuple):
    """Parameters of a function by position, and by name for arguments passed by keyword."""

    positions: frozenset[int]
    names: frozenset[str]

    @classmethod
    def of(cls, f: Callable[..., Any], wanted: Any) -> Donation:
        """Return the parameters with these positions or names.

        Raises:
            ArgumentError: ``f`` has no such parameter, or ``wanted`` is none.

        """
        given = [wanted] if isinstance(wanted, int | str) else list(wanted)
        found = [find_parameter(f, parameter, "donate") for parameter in given]
        return cls(
            frozenset(position for position, _ in found if position is not None),
            frozenset(name for _, name in found if name is not None),
        )

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the tensors in these arguments of a call, other than variables."""
        trees = [args[at] for at in self.positions if at < len(args)]
        trees += [kwargs[name] for name in self.names if name in kwargs]
        found = {id(leaf): leaf for leaf in leaves(trees) if leaf.__class__ is Tensor}
        return list(found.values())


def find_parameter(
    f: Callable[..., Any], given: Any, option: str
) -> tuple[int | None, str | None]:
    """Return the position and the name of a parameter, if it has both, for one of them.

    Raises:
        ArgumentError: ``f`` has no such parameter; the message names ``option``.

    """
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        raise ArgumentError(f"compile: {option}: {f!r} does not tell its parameters") from None
    by_position = [each.name for each in parameters if each.kind in _BY_POSITION]
    if isinstance(given, int) and not isinstance(given, bool):
        if 0 <= given < len(by_position):
            return given, by_position[given]
        if given >= 0 and any(each.kind is each.VAR_POSITIONAL for each in parameters):
            return given, None
    elif isinstance(given, str) and any(each.name == given for each in parameters):
        return (by_position.index(given) if given in by_position else None), given
    name = getattr(f, "__name__", "the function")
    raise ArgumentError(
        f"compile: {option} has {given!r}, but the parameters of {name} are "
        f"{', '.join(each.name for each in parameters) or 'none'}"
    )


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
