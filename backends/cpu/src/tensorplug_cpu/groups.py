"""Groups of calls: by LLVM if it is installed, else by NumPy if they are large enough.

Which of them computes a group depends on its types and sizes, so equal programs give equal bits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import Group, GroupInput, GroupOutput, TensorType, lift_constants
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import blocks
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.groups import kernels as compiled
from tensorplug_cpu.jit.groups.threads import MOST_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression
    from tensorplug_cpu.arrays import Array


_LEAST: Final = 1 << 14  # elements from which blocks save more than they cost
_LIFTED: Final = 8  # constants of a group; the coefficients of a series are more
_COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what LLVM makes use of
_WIDE: Final = frozenset({dt.float32, dt.float64})


def least_elements() -> int:
    """Return the number of elements from which some groups are accepted."""
    return min(_LEAST, settings.least_elements() or _LEAST)


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group; None to decline it."""
    run = _compile(group)
    if run is None and math.prod(group.shape) >= _LEAST:
        run = blocks.compile_group(group)
    return run


def _compile(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that LLVM has compiled, if it can; the same one for all constants."""
    lifted = _lift(len(group.shape), len(group.inputs), group.reductions, _roots(group.outputs))
    if not lifted.numbers:
        return compiled.compile_group(group)
    pairs = zip(group.outputs, lifted.outputs, strict=True)
    run = compiled.compile_group(
        replace(
            group,
            inputs=group.inputs + lifted.inputs,
            reductions=lifted.reductions,
            outputs=tuple([replace(output, expression=root) for output, root in pairs]),
        )
    )
    numbers = lifted.numbers
    return None if run is None else lambda *buffers: run(*buffers, *numbers)


class _Lifted(NamedTuple):
    """A group's further inputs, their data, and what it computes with them."""

    inputs: tuple[GroupInput, ...]
    numbers: list[Array]
    reductions: tuple[Any, ...]
    outputs: tuple[Expression, ...]


def _roots(outputs: Sequence[GroupOutput]) -> tuple[Expression, ...]:
    return tuple([output.expression for output in outputs])


class _Keyed:
    """A group that is equal to those with the same computation."""

    def __init__(self, group: Group) -> None:
        self.group, self._key = group, group.key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(MOST_MODULES)
def _find_equal(keyed: _Keyed) -> Group:
    """Return the first of equal groups, by whose expressions code is found."""
    return keyed.group


@lru_cache(MOST_MODULES)
def _lift(
    rank: int, inputs: int, reductions: tuple[Any, ...], outputs: tuple[Expression, ...]
) -> _Lifted:
    """Return a group with constants as inputs: the same objects for groups of all sizes."""
    number, nowhere = TensorType(dt.float32, ()), (False,) * rank  # neither matters here
    group = Group(
        "",
        (1,) * rank,
        (GroupInput(number, nowhere),) * inputs,
        reductions,
        tuple([GroupOutput(root, TensorType(root.dtype, ()), nowhere) for root in outputs]),
    )
    lifted, constants = lift_constants(group, _choose)
    # Groups that differ in these numbers alone, such as the divisors of means, have one code.
    lifted = _find_equal(_Keyed(lifted))
    with np.errstate(over="ignore"):
        numbers = [np.array(node.value).astype(node.dtype.numpy) for node in constants]
    return _Lifted(lifted.inputs[inputs:], numbers, lifted.reductions, _roots(lifted.outputs))


def _is_power_of_two(value: Any) -> bool:
    return math.frexp(value)[0] in (0.5, -0.5)


def _choose(nodes: Sequence[Expression]) -> list[Expression]:
    """Return the constants that LLVM's code reads from memory: a few that say little to LLVM.

    It turns divisions by a power of two into products, which are exact.
    """
    divisors = {id(node.operands[-1]) for node in nodes if node.op in ("divide", "remainder")}
    chosen = [
        node
        for node in nodes
        if node.op == "constant"
        and node.dtype in _WIDE
        and node.value not in _COMMON
        and not (id(node) in divisors and _is_power_of_two(node.value))
    ]
    return chosen if len(chosen) <= _LIFTED else []
