"""A backend on NumPy's memory, for compilers of groups: the suite's interpreter, or others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.interpreter import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Group

Array = np.ndarray[Any, Any]


class Interpreted:
    """It forms groups only where a program asks for them."""

    name, device = "interpreted", "groups on NumPy's arrays"
    survives_fork = True
    least_group = 1 << 30
    functions = frozenset(expressions.FUNCTIONS)

    def __init__(
        self,
        compile_group: Callable[[Group], Callable[..., Sequence[Any]] | None] = interpreter,
        dtypes: frozenset[DType] = dt.BOOL | dt.INTEGER | dt.INEXACT - {dt.bfloat16},
    ) -> None:
        self._compile, self.dtypes = compile_group, dtypes

    def from_host(self, array: Array) -> Array:
        return array.copy()

    def to_host(self, buffer: Array) -> Array:
        return buffer

    def describe(self, buffer: object) -> TensorType:
        if not isinstance(buffer, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is not an array")
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: Array) -> tuple[int, int]:
        owner: Any = buffer
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:
        pass

    def memory(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        pass

    def compile_group(self, group: Group) -> Callable[..., Sequence[Any]] | None:
        if any(each.into is not None for each in group.outputs):
            return None
        return self._compile(group)
