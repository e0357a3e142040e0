"""How much memory a program takes, by the lifetimes of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tensorplug.contract.spec import TensorType


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """The bytes of a program's values, by their types.

    What a kernel needs inside does not count. A result that is a view, such as that of a reshape,
    counts like a copy, so the peak is an upper bound then. One that a group writes into the memory
    of a value that dies there takes no other, unless something else turns out to use that memory.

    Attributes:
        peak: of all values alive at one time; arguments and constants are alive all the time. The
            values of a step of a loop, or of a branch, count while it runs.
        arguments: of the inputs, including contents of variables.
        constants: of tensors that the function captured or computed while it was traced.
        results: of the values that the program returns, other than inputs and constants.
        temporaries: of all other values. Those fused into a group take no memory.
        reused: how much less the peak is than the sum of the four, 0 if it is more.

    """

    peak: int
    arguments: int
    constants: int
    results: int
    temporaries: int
    reused: int


def plan_memory(
    types: Sequence[TensorType],
    inputs: int,
    constants: Collection[int],
    outputs: Collection[int],
    steps: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int], int]],
) -> ProgramMemory:
    """Return the memory of a program whose slots have ``types``.

    Args:
        types: of the slots; the first are inputs.
        inputs: their number.
        constants: the slots that hold constants.
        outputs: the slots that the program returns.
        steps: for each call the slots that it writes, those that are free after it, among these
            the ones whose memory it overwrites, and the bytes that it needs inside.

    """
    sizes = [type_.nbytes for type_ in types]
    arguments = sum(sizes[:inputs])
    fixed = sum(sizes[at] for at in constants)
    written = {at for targets, *_ in steps for at in targets}
    results = sum(sizes[at] for at in written.intersection(outputs))
    temporaries = sum(sizes[at] for at in written) - results
    live = peak = arguments + fixed
    for targets, free, overwritten, inside in steps:
        live += sum(sizes[at] for at in targets) - sum(sizes[at] for at in overwritten)
        peak = max(peak, live + inside)
        live -= sum(sizes[at] for at in free if at in written and at not in overwritten)
    total = arguments + fixed + results + temporaries
    return ProgramMemory(peak, arguments, fixed, results, temporaries, max(total - peak, 0))
