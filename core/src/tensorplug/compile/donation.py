"""Arguments that a caller of a compiled function gives up."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import ArgumentError
from tensorplug.tensors.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Donation"]


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
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            raise ArgumentError(f"compile: donate: {f!r} does not tell its parameters") from None
        by_position = [each.name for each in parameters if each.kind in _BY_POSITION]
        kinds = {each.kind for each in parameters}
        positions, names = set(), set()
        for parameter in given:
            if isinstance(parameter, int) and not isinstance(parameter, bool):
                known = 0 <= parameter < len(by_position)
                positions.add(parameter)
                if known:
                    names.add(by_position[parameter])
                known = known or (parameter >= 0 and inspect.Parameter.VAR_POSITIONAL in kinds)
            elif isinstance(parameter, str):
                known = any(each.name == parameter for each in parameters)
                names.add(parameter)
                if parameter in by_position:
                    positions.add(by_position.index(parameter))
            else:
                known = False
            if not known:
                name = getattr(f, "__name__", "the function")
                raise ArgumentError(
                    f"compile: donate has {parameter!r}, but the parameters of {name} are "
                    f"{', '.join(each.name for each in parameters) or 'none'}"
                )
        return cls(frozenset(positions), frozenset(names))

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the tensors in these arguments of a call, other than variables."""
        trees = [args[at] for at in self.positions if at < len(args)]
        trees += [kwargs[name] for name in self.names if name in kwargs]
        found = {id(leaf): leaf for leaf in leaves(trees) if leaf.__class__ is Tensor}
        return list(found.values())


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
