"""Writes statements: each value once, in the outermost loop where it does not change."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import Expression
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.statements import (
    Array,
    Assign,
    Declare,
    If,
    Kernel,
    Let,
    Loop,
    Number,
    Store,
    load,
    name_of,
    variable,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tensorplug_loops.schedule.loops import Linear, Loops
    from tensorplug_loops.schedule.lowering import Lowering
    from tensorplug_loops.statements import Statement

    Place = tuple[int, Expression]  # an axis, and its value

ZERO: Final = ex.constant(0, dt.int64)
_ANY: Final = 2
_LEAVES: Final = {"constant", "variable"}


class _Scope:
    """Statements in which some axes and results have values.

    ``whose``: by axis, or by parameter. ``lanes``: of a loop.
    """

    def __init__(self, statements: list[Statement], kind: str, lanes: int = 1) -> None:
        self.statements, self.kind, self.lanes = statements, kind, lanes
        self.whose: dict[Hashable, Expression] = {}
        self.known: dict[Hashable, Expression] = {}


class Writer:
    """Writes a kernel over loops whose expressions are lowered."""

    def __init__(self, loops: Loops, lowering: Lowering) -> None:
        self.loops = loops
        self.lowering = lowering
        self.inputs = len(loops.group.inputs)
        self._scopes = [_Scope([], "loop")]
        self._names = 0
        self._numbers: dict[str, None] = {}
        self._tokens: dict[int, frozenset[Hashable]] = {}
        self._arrays: dict[str, Array] = {}

    def kernel(self, name: str, extra: Sequence[Array] = (), **more: int) -> Kernel:
        """Return the kernel of what is written; ``extra``: arrays after those of the loops."""
        held = self.lowering.converter.held
        arrays = [
            Array(self.array(k), held(operand.dtype), k >= self.inputs)
            for k, operand in enumerate(self.loops.operands)
        ]
        (scope,) = self._scopes
        return Kernel(
            name,
            (*arrays, *extra),
            tuple(Number(name, self.loops.kinds.get(name, dt.int64)) for name in self._numbers),
            tuple(scope.statements),
            **more,
        )

    @property
    def lanes(self) -> int:
        """The lanes of the loop that is being written."""
        return max(scope.lanes for scope in self._scopes)

    def array(self, k: int) -> str:
        """Return the name of an operand."""
        return f"x{k}" if k < self.inputs else f"y{k - self.inputs}"

    def fresh(self, prefix: str) -> str:
        """Return a new name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def number(self, name: str) -> Expression:
        """Return a number of the kernel."""
        self._numbers[name] = None
        return variable(name)

    def emit(self, statement: Statement) -> None:
        """Write a statement here."""
        self._scopes[-1].statements.append(statement)

    def let(self, value: Expression) -> Expression:
        """Name a value here."""
        return self._let(value, self._scopes[-1])

    def divided(self, a: Expression, b: Expression) -> tuple[Expression, Expression]:
        """Return the quotient and the rest of numbers that are not negative."""
        quotient, rest = (self.let(Expression(op, a.dtype, (a, b))) for op in ("quotient", "rest"))
        return quotient, rest

    def least(self, a: Expression, b: Expression) -> Expression:
        """Return the lesser of two numbers."""
        return self.let(ex.where(a < b, a, b))

    def greatest(self, a: Expression, b: Expression) -> Expression:
        """Return the greater of two numbers."""
        return self.let(ex.where(a < b, b, a))

    def copy(self, value: Expression) -> Expression:
        """Name what a variable holds here."""
        return self._named(value, self._scopes[-1])

    def declare(self, value: Expression, lanes: int | None = None) -> str:
        """Make a variable; return its name."""
        name = self.fresh("a")
        self.emit(Declare(name, value, self.lanes if lanes is None else lanes))
        return name

    def bind(self, token: Hashable, value: Expression) -> None:
        """Give an axis, or a parameter that is a result, its value here."""
        self._scopes[-1].whose[token] = value

    def bind_all(self, axes: Sequence[int], number: Expression) -> None:
        """Give axes their values here, from the number of an element in row-major order."""
        for axis, at in self.places(axes, number):
            self.bind(axis, at)

    def places(self, axes: Sequence[int], number: Expression) -> list[Place]:
        """Return the values of axes, from the number of an element in row-major order."""
        result = []
        for axis in reversed(axes[1:]):
            number, rest = self.divided(number, self.number(f"n{axis}"))
            result.append((axis, rest))
        return [*result, *((axis, number) for axis in axes[:1])]

    @contextmanager
    def loop(
        self,
        axis: int | None,
        start: Expression,
        stop: Expression,
        *,
        step: int = 1,
        lanes: int = 1,
        whole: bool = False,
        again: bool = False,
    ) -> Iterator[Expression]:
        """Write a loop, along an axis if one is given."""
        name = self.fresh("k")  # which no language's type begins with: i32 is one of WGSL's
        scope = _Scope([], "loop", lanes)
        if axis is not None:
            scope.whose[axis] = variable(name)
        self._scopes.append(scope)
        yield variable(name)
        self._scopes.pop()
        self.emit(Loop(name, start, stop, tuple(scope.statements), step, lanes, whole, again))

    @contextmanager
    def place(self, *places: Place) -> Iterator[None]:
        """Give axes values for some statements."""
        count = len(self._scopes)
        for axis, at in places:
            scope = _Scope(self._scopes[-1].statements, "place", self._scopes[-1].lanes)
            scope.whose[axis] = at
            self._scopes.append(scope)
        yield
        del self._scopes[count:]

    @contextmanager
    def when(self, condition: Expression, *, rare: bool = False) -> Iterator[None]:
        """Write statements that run where a condition holds."""
        scope = _Scope([], "branch")
        self._scopes.append(scope)
        yield
        self._scopes.pop()
        self.emit(If(condition, tuple(scope.statements), rare))

    def value(self, root: Expression) -> Expression:
        """Return a name or a constant for an expression, computed where it does not change."""

        def known(node: Expression) -> bool:
            return self._find(node) is not None

        for node in ex.order([root], known, rare=False):
            if self._find(node) is None:
                scope = self._scope(self.needs(node))
                scope.known[id(node)] = self._write(node, scope)
        found = self._find(root)
        assert found is not None
        return found

    def _find(self, node: Expression) -> Expression | None:
        if node.op in _LEAVES:
            if node.op == "variable" and name_of(node) in self.loops.signs:
                self.number(name_of(node))
            return node
        if node.op == "axis" or (node.op == "parameter" and int(node.value) >= self.inputs):  # type: ignore[arg-type]
            return self._bound(self._token(node))
        return self._scope(self.needs(node)).known.get(id(node))

    def _bound(self, token: Hashable) -> Expression:
        return next(s.whose[token] for s in reversed(self._scopes) if token in s.whose)

    @staticmethod
    def _token(node: Expression) -> Hashable:
        return node.value if node.op == "axis" else ("result", node.value)

    def needs(self, node: Expression) -> frozenset[Hashable]:
        """Return the axes and results that a value depends on."""
        known = self._tokens
        for each in ex.order([node], lambda node: id(node) in known):
            if each.op in _LEAVES:
                needs: frozenset[Hashable] = frozenset()
            elif each.op == "axis" or (each.op == "parameter" and each.value >= self.inputs):  # type: ignore[operator]
                needs = frozenset([self._token(each)])
            elif each.op == "parameter":
                operand = self.loops.operands[int(each.value)]  # type: ignore[arg-type]
                needs = frozenset().union(*map(self._linear_needs, operand.linears()))
            else:
                needs = frozenset().union(*(known[id(operand)] for operand in each.operands))
            known[id(each)] = needs
        return known[id(node)]

    def _linear_needs(self, at: Linear) -> frozenset[Hashable]:
        axes = frozenset(axis for axis, step in enumerate(at.steps) if self._step(axis, step))
        return axes.union(*(self.needs(rest) for _, rest in at.rests))

    def _step(self, axis: int, step: int) -> int:
        """Return a stride, or another that is neither 0 nor 1 if the kernel does not see it."""
        return _ANY if axis in self.loops.numbered else step

    def _depth(self, tokens: frozenset[Hashable]) -> int:
        scopes = enumerate(self._scopes)
        return max((at for at, scope in scopes if not tokens.isdisjoint(scope.whose)), default=0)

    def _level(self, tokens: frozenset[Hashable]) -> int:
        """Return the outermost scope where these have values, or a branch directly in it."""
        at = chosen = self._depth(tokens)
        for above in range(at + 1, len(self._scopes)):
            if self._scopes[above].kind == "loop":
                break
            if self._scopes[above].kind == "branch":
                chosen = above
        return chosen

    def _scope(self, tokens: frozenset[Hashable]) -> _Scope:
        return self._scopes[self._level(tokens)]

    def _let(self, value: Expression, scope: _Scope) -> Expression:
        return value if value.op in _LEAVES else self._named(value, scope)

    def _named(self, value: Expression, scope: _Scope) -> Expression:
        name = self.fresh("v")
        scope.statements.append(Let(name, value))
        return variable(name, value.dtype)

    def store(self, values: Sequence[tuple[int, Expression]]) -> None:
        """Write operands' elements, after all values: one may lie in the memory of an input."""
        made = [(k, self.value(root)) for k, root in values]
        for k, value in made:
            self.emit(Store(self.array(k), self.offset(k), value))

    def know(self, node: Expression, value: Expression) -> None:
        """Take this value for a node of expressions here."""
        scope = self._scope(self.needs(node))
        scope.known[id(node)] = self._let(value, scope)

    def _write(self, node: Expression, scope: _Scope) -> Expression:
        if node.op == "parameter":
            return self._let(self._load(int(node.value)), scope)  # type: ignore[arg-type]
        if ex.is_likely(node):
            return self._choose(node, scope)
        operands = []
        for operand in node.operands:
            found = self._find(operand)
            assert found is not None
            operands.append(found)
        return self._let(Expression(node.op, node.dtype, tuple(operands), node.value), scope)

    def _choose(self, node: Expression, scope: _Scope) -> Expression:
        """Write a branch around a choice that is seldom made."""
        all_scopes = self._scopes
        self._scopes = all_scopes[: all_scopes.index(scope) + 1]
        condition, likely = (self.value(operand) for operand in node.operands[:2])
        name = self.declare(likely)
        with self.when(self.let(ex.apply("logical_not", condition)), rare=True):
            self.emit(Assign(name, self.value(node.operands[2])))
        self._scopes = all_scopes
        return variable(name, node.dtype)

    def _load(self, k: int) -> Expression:
        operand = self.loops.operands[k]
        held = self.lowering.converter.held(operand.dtype)
        offset = self.offset(k)
        inside = self.inside(k)
        if inside is None:
            return load(self.array(k), held, offset)
        outside = operand.outside
        assert outside is not None
        other = self.lowering.converter.constant(outside, operand.dtype)
        size = [self.number(f"z{k}")] if self._is_cut(k) else []
        return load(self.array(k), held, offset, inside, other, *size)

    def _is_cut(self, k: int) -> bool:
        """Return whether some lanes may lie in an operand's buffer, and others outside."""
        lanes = {axis for scope in self._scopes if scope.lanes > 1 for axis in scope.whose}
        checks = [check for check in self.loops.operands[k].checks if not check.holds]
        return any(not lanes.isdisjoint(self._linear_needs(check.at)) for check in checks)

    def offset(self, k: int) -> Expression:
        """Return the offset of an operand's element."""
        return self._linear(self.loops.operands[k].offset, k, 0)

    def index(self, k: int, j: int) -> Expression:
        """Return an operand's index that is checked, the one numbered ``j``."""
        return self._linear(self.loops.operands[k].checks[j].at, k, 1 + j)

    def inside(self, k: int) -> Expression | None:
        """Return whether an operand's element lies in the buffer; None if it does."""
        conditions: list[tuple[int, Expression]] = []
        for j, check in enumerate(self.loops.operands[k].checks):
            if check.holds:
                continue
            scope = self._scope(self._linear_needs(check.at))
            index = self._let(self.index(k, j), scope)
            low = self._let(ex.apply("less_equal", ZERO, index), scope)
            high = self._let(ex.apply("less", index, self.number(f"l{k}_{j}")), scope)
            both = self._let(ex.apply("logical_and", low, high), scope)
            conditions.append((self._scopes.index(scope), both))
        if not conditions:
            return None
        conditions.sort(key=lambda pair: pair[0])
        (_, result), *others = conditions
        for at, condition in others:
            result = self._let(ex.apply("logical_and", result, condition), self._scopes[at])
        return result

    def _linear(self, linear: Linear, k: int, j: int) -> Expression:
        """Return a sum of the numbers ``o{k}_{j}``, ``s{k}_{j}_axis``, ``r{k}_{j}_i`` times."""
        terms: list[tuple[bool, int, Expression]] = []
        if linear.constant:
            terms.append((False, 0, self.number(f"o{k}_{j}")))
        for i, (step, rest) in enumerate(linear.rests):
            level, value = self._level(self.needs(rest)), self.value(rest)
            if step:
                terms.append((False, level, self._times(step, f"r{k}_{j}_{i}", value, level)))
        for axis, own in enumerate(linear.steps):
            step = self._step(axis, own)
            if step:
                token = frozenset([axis])
                is_lane = self._scopes[self._depth(token)].lanes > 1
                level = self._level(token)
                term = self._times(step, f"s{k}_{j}_{axis}", self._bound(axis), level)
                terms.append((is_lane, level, term))
        terms.sort(key=lambda term: term[:2])
        if not terms:
            return ZERO
        *before, (_, _, last) = terms
        total: Expression | None = None
        for at, (_, depth, term) in enumerate(before):
            known = self._scopes[depth].known
            key = "sum", k, j, at
            if key not in known:
                added = term if total is None else total + term
                known[key] = self._let(added, self._scopes[depth])
            total = known[key]
        return last if total is None else total + last

    def _times(self, step: int, name: str, value: Expression, depth: int) -> Expression:
        """Return a multiple of a value."""
        if step == 1:
            return value
        by = self.number(name)
        known = self._scopes[depth].known
        if (name, "times") not in known:
            known[name, "times"] = self._let(value * by, self._scopes[depth])
        return known[name, "times"]

    def here(self, root: Expression) -> Expression:
        """Return an expression of variables, computed here."""
        done: dict[int, Expression] = {}
        for node in ex.order([root], lambda node: node.op in _LEAVES):
            operands = tuple(done.get(id(each), each) for each in node.operands)
            made = Expression(node.op, node.dtype, operands, node.value)
            done[id(node)] = self.let(made)
        return done.get(id(root), root)
