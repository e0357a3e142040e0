"""A model as plain Python: made once from the protobuf, executed many times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import NodeProto

    from tensorplug_onnx.values import Host


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A named input or output of a graph.

    ``dtype``: name of an element dtype, empty if unknown or for what is no tensor. ``shape``:
    an int for a known size, a name for a symbolic one, None for an unknown one; None altogether
    if the rank is unknown. ``kind``: ``tensor``, ``sequence``, ``optional`` or ``map``.
    """

    name: str
    dtype: str = ""
    shape: tuple[int | str | None, ...] | None = None
    kind: str = "tensor"

    @property
    def type(self) -> str:
        """The type as text: ``float32[N,3]``."""
        if self.kind != "tensor":
            return self.kind
        sizes = self.shape
        listed = "..." if sizes is None else ",".join(str("?" if n is None else n) for n in sizes)
        return f"{self.dtype or 'any'}[{listed}]"


@dataclass(frozen=True, slots=True)
class Node:
    """One call of an operator.

    ``version``: of the opset that the model imports for the node's domain. Attributes are Python
    values: numbers, text, tuples of these, arrays, graphs. An input that is left out is ``""``.
    ``proto``: what the node was made from, if it has no rule: ONNX's functions are instantiated
    from it. Else it is empty.
    """

    op_type: str
    domain: str
    version: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: NodeProto = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return what messages call it."""
        named = f" {self.name!r}" if self.name else ""
        domain = self.domain or "ai.onnx"
        return f"node{named} ({self.op_type}, {domain} {self.version})"


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can run.

    ``initializers``: constants by name. ``free``: names that nodes of the graph, or of graphs in
    it, take from the graphs around it. ``defaults``: inputs that need not be given, as there is
    an initializer of the same name.
    """

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    initializers: Mapping[str, Host]
    nodes: tuple[Node, ...]
    free: frozenset[str] = field(default_factory=frozenset)
    defaults: tuple[ValueInfo, ...] = ()
