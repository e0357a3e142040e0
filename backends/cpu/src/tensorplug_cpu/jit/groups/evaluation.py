"""Writes the expressions of a group inside and outside of a kernel's innermost loop."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions
from tensorplug_cpu.jit.codegen import processor
from tensorplug_cpu.jit.codegen.expressions import Renderer
from tensorplug_cpu.jit.codegen.instructions import element_type, vector_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.plugin import DType, Expression
    from tensorplug_cpu.jit.codegen.instructions import Code


_COSTS: Final = {"constant": 0, "parameter": 0, "divide": 4, "sqrt": 4, "remainder": 50}


def number_of(parameter: Expression) -> int:
    """Return the number of a parameter."""
    assert isinstance(parameter.value, int)
    return parameter.value


def cost(roots: Iterable[Expression]) -> int:
    """Return about how many instructions usually compute the roots for a vector of elements."""
    nodes = expressions.order(roots, lambda _: False, rare=False)
    return sum(_COSTS.get(node.op, 1) for node in nodes)


def choose_lanes(roots: Sequence[Expression]) -> int:
    """Return the lanes of vectors: as many as numbers of the most common size in a register."""
    sizes = Counter(
        node.dtype.itemsize
        for node in expressions.order(roots, lambda _: False)
        if node.dtype is not dt.bool_ and node.op != "constant"
    )
    (size, _), *_ = sizes.most_common(1) or [(1, 0)]
    return processor.lanes(size)


class Evaluator:
    """Writes expressions as vectors of ``lanes`` elements, and what does not vary as scalars.

    ``varies``: whether an operation varies along the innermost loop. ``load``: returns the
    scalar of a parameter that does not vary.
    """

    def __init__(
        self,
        code: Code,
        lanes: int,
        varies: Callable[[Expression], bool],
        load: Callable[[Expression], str],
    ) -> None:
        self.code = code
        self.lanes = lanes
        self._varies = varies
        self._load = load
        self.narrow = Renderer(code, 1)
        self.wide = Renderer(code, lanes)
        self._scalars: dict[int, str] = {}
        self._splats: dict[int, str] = {}

    def scalar(self, root: Expression) -> str:
        """Return the value of an expression that does not vary, computed here or before."""
        values = self._scalars
        for node in expressions.order([root], lambda node: id(node) in values):
            values[id(node)] = (
                self._load(node)
                if node.op == "parameter"
                else self.narrow.render(node, [values[id(each)] for each in node.operands])
            )
        return values[id(root)]

    def define(self, node: Expression, value: str) -> None:
        """Note the value of a scalar that is computed elsewhere."""
        self._scalars[id(node)] = value

    def prepare(self, roots: Sequence[Expression], known: Iterable[int] = ()) -> None:
        """Write in front of a loop what does not vary in it.

        ``known``: the identities of operations that are not computed in the loop.
        """
        stop = set(known)
        nodes = expressions.order(roots, lambda node: id(node) in stop or not self._varies(node))
        used = [operand for node in nodes for operand in node.operands]
        for node in [*roots, *used]:
            if not self._varies(node) and node.op != "constant" and id(node) not in self._splats:
                self._splats[id(node)] = self.code.splat(
                    self.scalar(node), element_type(node.dtype), self.lanes
                )

    def vectors(
        self,
        roots: Sequence[Expression],
        load: Callable[[Expression], str],
        known: dict[int, str],
    ) -> list[str]:
        """Return the values of expressions for the lanes of one step of the loop.

        ``load``: returns the vector of a parameter that varies. ``known``: the vectors of some
        operations by identity; this adds those that it computes.
        """
        splats = self._splats
        done = expressions.order(
            roots, lambda node: id(node) in known or id(node) in splats, rare=False
        )
        for node in done:
            if node.op == "parameter":
                value = load(node)
            elif expressions.is_likely(node):
                value = self._choose(node, load, known)
            else:
                operands = [self._value(operand, known) for operand in node.operands]
                value = self.wide.render(node, operands)
            known[id(node)] = value
        return [self._value(root, known) for root in roots]

    def _choose(
        self, node: Expression, load: Callable[[Expression], str], known: dict[int, str]
    ) -> str:
        """Return the lanes of the likely choice; a branch replaces others, if there are any."""
        code, lanes = self.code, self.lanes
        condition, likely = (self._value(operand, known) for operand in node.operands[:2])
        type_ = vector_type(element_type(node.dtype), lanes)
        pointer = code.allocate(type_)
        code.do(f"store {type_} {likely}, ptr {pointer}")
        rarely, after = code.name(), code.name()
        code.do(f"br i1 {code.all_lanes(condition, lanes)}, label %{after}, label %{rarely}")
        code.label(rarely)
        other = self.vectors([node.operands[2]], load, dict(known))[0]
        chosen = self.wide.render(node, [condition, likely, other])
        code.do(f"store {type_} {chosen}, ptr {pointer}")
        code.do(f"br label %{after}")
        code.label(after)
        return code.emit(f"load {type_}, ptr {pointer}")

    def _value(self, node: Expression, known: dict[int, str]) -> str:
        return known[id(node)] if id(node) in known else self._splats[id(node)]


def memory_type(dtype: DType) -> str:
    """Return the type of an element in memory: a bool is a byte."""
    return "i8" if dtype is dt.bool_ else element_type(dtype)


def load_scalar(code: Code, dtype: DType, start: str) -> str:
    """Return the element at an address."""
    value = code.emit(f"load {memory_type(dtype)}, ptr {start}, align 1")
    return value if dtype is not dt.bool_ else code.emit(f"icmp ne i8 {value}, 0")


def store_scalar(code: Code, dtype: DType, value: str, start: str) -> None:
    """Write one element at an address."""
    if dtype is dt.bool_:
        value = code.emit(f"zext i1 {value} to i8")
    code.do(f"store {memory_type(dtype)} {value}, ptr {start}, align 1")


def address(code: Code, dtype: DType, start: str, at: str) -> str:
    """Return the address of the element ``at`` after ``start``."""
    return code.emit(f"getelementptr {memory_type(dtype)}, ptr {start}, i64 {at}")


def load_vector(
    code: Code, dtype: DType, start: str, at: str, lanes: int, mask: str | None
) -> str:
    """Return the elements from index ``at`` on; those that ``mask`` leaves out are 0."""
    type_ = vector_type(memory_type(dtype), lanes)
    pointer = address(code, dtype, start, at)
    if mask is None:
        value = code.emit(f"load {type_}, ptr {pointer}, align 1")
    else:
        value = code.masked_load(type_, pointer, mask)
    if dtype is not dt.bool_:
        return value
    return code.emit(f"icmp ne {type_} {value}, zeroinitializer")


def store_vector(
    code: Code, dtype: DType, value: str, start: str, at: str, lanes: int, mask: str | None
) -> None:
    """Write elements from index ``at`` on, but for those that ``mask`` leaves out."""
    type_ = vector_type(memory_type(dtype), lanes)
    if dtype is dt.bool_:
        value = code.emit(f"zext {vector_type('i1', lanes)} {value} to {type_}")
    pointer = address(code, dtype, start, at)
    if mask is None:
        code.do(f"store {type_} {value}, ptr {pointer}, align 1")
    else:
        code.masked_store(type_, value, pointer, mask)
