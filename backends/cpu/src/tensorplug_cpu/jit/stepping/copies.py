"""The native function that copies an array with gaps, such as a part of a larger one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from tensorplug_cpu.jit.codegen.functions import Function, lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


RANK: Final = 4
"""How many axes a copy has, after neighbouring axes have become one where both arrays allow it."""


def collapse(
    shape: Sequence[int], *strides: Sequence[int]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return a shape of fewer axes, and the strides of each array along them.

    Axes of length 1 are left out, and neighbours become one where no array has a gap.
    """
    kept: list[list[int]] = []  # length, strides
    for length, *steps in zip(shape, *strides, strict=True):
        if length == 1:
            continue
        if kept and all(
            before == step * length for before, step in zip(kept[-1][1:], steps, strict=True)
        ):
            kept[-1] = [kept[-1][0] * length, *steps]
        else:
            kept.append([length, *steps])
    lengths = tuple(each[0] for each in kept)
    return lengths, [tuple(each[at] for each in kept) for at in range(1, len(strides) + 1)]


def copy_arguments(
    shape: Sequence[int], target: Sequence[int], source: Sequence[int]
) -> list[int] | None:
    """Return the block for a copy, with 0 for both addresses; None if it has too many axes.

    ``target``, ``source``: strides in elements.
    """
    lengths, (to, of) = collapse(shape, target, source)
    missing = RANK - len(lengths)
    if missing < 0:
        return None
    return [0, 0, *[1] * missing, *lengths, *[0] * missing, *to, *[0] * missing, *of]


@cache
def copy_function(itemsize: int) -> Callable[..., None]:
    """Return the function; its block: target, source, lengths, strides of both in this order."""
    f = Function("copy", f"int{8 * itemsize}", ("block",), ())
    block = f["block"]
    target, source = (f.pointer_at(block, at) for at in (0, 1))
    numbers = [f.whole(block, 2 + at) for at in range(3 * RANK)]
    lengths, to, of = (numbers[at : at + RANK] for at in range(0, 3 * RANK, RANK))
    wide = lanes(itemsize)
    zero = f.number(0, f.vector(wide))
    *outer, length = lengths
    plain = f.builder.and_(
        f.builder.icmp_signed("==", to[-1], f.number(1)),
        f.builder.icmp_signed("==", of[-1], f.number(1)),
    )
    gaps = f.builder.not_(plain)
    with f.loop(0, outer[0]) as i, f.loop(0, outer[1]) as j, f.loop(0, outer[2]) as k:
        begin, start = (
            f.add(*(f.multiply(at, step) for at, step in zip((i, j, k), steps, strict=False)))
            for steps in (to, of)
        )
        with f.when(plain), f.loop(0, length, wide) as at:
            mask = f.mask(at, length, wide)
            value = f.load_where(mask, zero, source, f.add(start, at))
            f.store_where(mask, value, target, f.add(begin, at))
        with f.when(gaps), f.loop(0, length) as at:
            value = f.load(source, f.add(start, f.multiply(at, of[-1])))
            f.store(value, target, f.add(begin, f.multiply(at, to[-1])))
    return f.compiled()
