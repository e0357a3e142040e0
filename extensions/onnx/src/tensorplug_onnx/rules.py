"""Which function computes which operator.

A rule takes the inputs of a node by position, None for an absent one, and its attributes by
keyword; the defaults of its signature are ONNX's. It returns one output or a tuple of them.
It asks for more by the names of keyword-only parameters:

- ``xp``: the namespace to compute with. Such a rule gets host arrays, and ``numpy``, where all
  inputs are on the host; else tensors, and ``tensorplug``. A rule without ``xp`` gets tensors.
- ``node``: the node, for its number of outputs and its opset.
- ``scope``: what runs the graphs among its attributes.

A rule with ``raw=True`` gets tensors and host arrays as they are, mixed.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""

_ASKED: Final = ("xp", "node", "scope")


@dataclass(frozen=True, slots=True)
class Rule:
    """One version of an operator.

    ``host``: positions of the inputs that the rule reads on the host: shapes, axes, counts;
    negative ones count from the end, and None stands for all. ``asks``: which of ``xp``, ``node``,
    ``scope`` it takes. ``attributes``: the names that it takes. ``raw``: whether it takes tensors
    and host arrays as they are.
    """

    op_type: str
    domain: str
    since: int
    function: Callable[..., Any]
    host: tuple[int, ...] | None
    asks: frozenset[str]
    attributes: frozenset[str]
    raw: bool = False

    def read_on_host(self, count: int) -> set[int]:
        """Return which of so many inputs the rule reads on the host."""
        positions = range(count) if self.host is None else self.host
        return {at if at >= 0 else at + count for at in positions}.intersection(range(count))


_RULES: Final[dict[tuple[str, str], list[Rule]]] = {}


def rule(
    *op_types: str,
    since: int = 1,
    domain: str = "",
    host: Iterable[int] | None = (),
    raw: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function below for op types, from an opset version on.

    A rule holds up to the next one for the same op type.

    Args:
        op_types: of one domain.
        since: the first version of the opset that it is right for.
        domain: ``""`` is ai.onnx.
        host: positions of the inputs that it reads on the host; None for all.
        raw: whether it takes the other inputs as they are, tensors and host arrays mixed.

    Example:
        >>> @rule("Softsign")
        ... def softsign(x):
        ...     return x / (1 + tp.abs(x))

    """

    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        keywords = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        asks = frozenset(keywords.intersection(_ASKED))
        for op_type in op_types:
            made = Rule(
                op_type,
                domain,
                since,
                function,
                None if host is None else tuple(host),
                asks,
                frozenset(keywords - asks),
                raw,
            )
            versions = _RULES.setdefault((domain, op_type), [])
            if any(other.since == since for other in versions):
                raise ValueError(f"two rules for {op_type} since {since}")
            versions.append(made)
            versions.sort(key=lambda version: version.since)
        return function

    return registered


def lookup(op_type: str, domain: str, version: int) -> Rule | None:
    """Return the rule for an operator in a version of its opset; None if there is none."""
    fitting = [one for one in _RULES.get((domain, op_type), ()) if one.since <= version]
    return fitting[-1] if fitting else None


def known_operators() -> frozenset[tuple[str, str]]:
    """Return domain and op type of every operator with a rule."""
    return frozenset(_RULES)
