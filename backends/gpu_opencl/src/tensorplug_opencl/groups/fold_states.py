"""The variables of a group's reductions in a program: states in vectors, and their joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_opencl.codegen import ctypes, folds
from tensorplug_opencl.codegen.numbers import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorplug.plugin import DType
    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.groups import passes


_SIGNED: Final = {1: "char", 2: "short", 4: "int", 8: "long"}
FOLDS: Final[Mapping[str, Callable[[DType], Fold]]] = {
    "sum": folds.sum_fold,
    "prod": folds.product_fold,
    "max": folds.max_fold,
    "min": folds.min_fold,
}


class Folded:
    """The variables of a reduction in a program: its state, and its result."""

    def __init__(self, fold: passes.Fold, lanes: int) -> None:
        dtype = fold.expression.dtype
        self.fold = FOLDS[fold.op](dtype)
        self.name = f"s{fold.number}"
        self.lanes = lanes
        self.result = Value(f"r{fold.number}", dtype)
        self.ctype = self._wide(self.lanes)
        self._neutral = f"({self.ctype})({self.fold.initial})"
        self._signed = _SIGNED[ctypes.host(self.fold.element).itemsize]

    def _wide(self, lanes: int) -> str:
        return self.fold.element if lanes == 1 else f"{self.fold.element}{lanes}"

    def declare(self) -> str:
        """Return the declaration of the initial state."""
        return self.fold.declare(self.name, self.ctype)

    def take(self, value: str) -> str:
        """Return the statement that takes a vector, by its name."""
        return self.fold.take(self.name, value, self.ctype)

    def mask(self, value: str) -> str:
        """Return a vector with the neutral element for what lacks in the last one."""
        # A vector that ends beyond its row holds the last element again, or what lies behind the
        # row; neither may enter a sum.
        kind = f"{self._signed}{self.lanes}"
        numbers = ", ".join(map(str, range(self.lanes)))
        rest = f"({kind})(({self._signed})min(rest, (index_t){self.lanes}))"
        return f"({kind})({numbers}) < {rest} ? {value} : {self._neutral}"

    def keep(self) -> str:
        """Return the statements that put the state of one vector back."""
        low = f" {self.name}_lows[t] = {self.name}_low;" * self.fold.compensated
        return f"{self.name}_all[t] = {self.name};{low}"

    def resume(self) -> str:
        """Return the declaration of the state of one vector."""
        low = f", {self.name}_low = {self.name}_lows[t]" * self.fold.compensated
        return f"{self.ctype} {self.name} = {self.name}_all[t]{low};"

    def join_together(self, count: int) -> Iterator[str]:
        """Join ``NAME_0`` to ``NAME_count`` as a tree, into the first."""
        while count > 1:
            count //= 2
            for at in range(count):
                a, b = f"{self.name}_{at}", f"{self.name}_{at + count}"
                yield f"  {a} = {self.fold.join(a, b)};"

    def join_lanes(self, width: int) -> Iterator[str]:
        """Join the lanes of a vector, half by half."""
        last = f"{self.name}_by{width}"
        yield f"  const {self.ctype} {last} = {self.fold.close(self.name)};"
        while width > 1:
            width //= 2
            ctype, new = self._wide(width), f"{self.name}_by{width}"
            yield f"  const {ctype} {new}a = {last}.lo, {new}b = {last}.hi;"
            yield f"  const {ctype} {new} = {self.fold.join(new + 'a', new + 'b')};"
            last = new
        yield f"  {self.result.name} = {last};"

    def join_group(self, size: int) -> Iterator[str]:
        """Join what the work-items of a group have, as a tree in local memory."""
        ctype, shared = self.ctype, f"{self.name}_shared"
        yield f"""  {shared}[lane] = {self.fold.close(self.name)};
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t half_way = {size // 2}; half_way; half_way >>= 1) {{
    if (lane < half_way) {{
      const {ctype} a = {shared}[lane], b = {shared}[lane + half_way];
      {shared}[lane] = {self.fold.join("a", "b")};
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  {self.result.name} = {shared}[0];"""
