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
    def of(cls, f: Callable[..., Any], donated: Any) -> Donation:
        """Return the parameters with these positions or names.

        Raises:
            ArgumentError: ``f`` has no such parameter, or ``donated`` is none.

        """
        listed = [donated] if isinstance(donated, int | str) else list(donated)
        parameters = [find_parameter(f, parameter, "donate") for parameter in listed]
        return cls(
            frozenset(position for position, _ in parameters if position is not None),
            frozenset(name for _, name in parameters if name is not None),
        )

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the tensors in these arguments of a call, other than variables."""
        trees = [args[at] for at in self.positions if at < len(args)]
        trees += [kwargs[name] for name in self.names if name in kwargs]
        by_id = {id(leaf): leaf for leaf in leaves(trees) if leaf.__class__ is Tensor}
        return list(by_id.values())


def find_parameter(
    f: Callable[..., Any], parameter: Any, option: str
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
    if isinstance(parameter, int) and not isinstance(parameter, bool):
        if 0 <= parameter < len(by_position):
            return parameter, by_position[parameter]
        if parameter >= 0 and any(each.kind is each.VAR_POSITIONAL for each in parameters):
            return parameter, None
    elif isinstance(parameter, str) and any(each.name == parameter for each in parameters):
        return (by_position.index(parameter) if parameter in by_position else None), parameter
    name = getattr(f, "__name__", "the function")
    raise ArgumentError(
        f"compile: {option} has {parameter!r}, but the parameters of {name} are "
        f"{', '.join(each.name for each in parameters) or 'none'}"
    )


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
