"""Bodies of loops: what a program does in each step, for backends that run whole loops.

The core asks for each loop of a compiled program once (``Backend``'s optional capability
``CompilesLoops``), and runs its steps one by one where the backend declines. Values are identified
by the numbers of their *slots*, of which a step writes each one once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.groups import Group
    from tensorplug.contract.spec import KernelSpec, TensorType


@dataclass(frozen=True, slots=True)
class BodyCall:
    """One call in each step of a loop.

    ``of``: a group, or the spec of a kernel of the backend, with the ``attributes`` of the call.
    ``inputs``: a slot for each input; a tuple of slots for a variadic one, None for an absent one.
    ``run``: what the kernel returned when it was prepared for these types, or the kernel; None for
    a group.
    """

    of: Group | KernelSpec
    attributes: Mapping[str, Any]
    inputs: tuple[int | tuple[int, ...] | None, ...]
    outputs: tuple[int, ...]
    run: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class LoopBody:
    """What a loop does in each step, and how often.

    Attributes:
        name: for messages.
        types: of all slots. The first ones are the carries, then slices of the sequences along
            their first axes, then values that are the same in each step, then ``constants``. The
            calls write the others.
        carries: the number of carries.
        sequences: the number of sequences.
        fixed: the number of values that are the same in each step.
        constants: buffers that are the same in each run, and live as long as the program.
        calls: in an order in which they can run.
        results: the slots of the next carries, then of what each step gives.
        length: the number of steps, at least 1; None if only ``holds`` ends the loop.
        reverse: whether the first step is that of the last slices.
        asked: how many of the calls compute ``holds``; they come first.
        holds: the slot of a bool of rank 0: if it is False, the loop ends before the rest of the
            step. None for a loop of ``length`` steps.

    """

    name: str
    types: tuple[TensorType, ...]
    carries: int
    sequences: int
    fixed: int
    constants: tuple[Any, ...]
    calls: tuple[BodyCall, ...]
    results: tuple[int, ...]
    length: int | None
    reverse: bool = False
    asked: int = 0
    holds: int | None = None


@runtime_checkable
class CompilesLoops(Protocol):
    """A backend that runs all steps of a loop in one call.

    Without this, the core runs step after step, each kernel and each group by itself.
    """

    def compile_loop(self, body: LoopBody) -> Callable[..., Sequence[Any]] | None:
        """Return a function that runs a loop, or None to decline it.

        The function takes buffers positionally: the first carries, the sequences, which have one
        slice for each step, and the values that are the same in each step. It returns the last
        carries, then the results of all steps, stacked along a new first axis, in the order of
        the slices. It changes no input; results are new, or inputs as they are. Several threads
        may call it at the same time, and Ctrl-C must interrupt it within a fraction of a second.
        Whether the backend declines depends on the body alone.
        """
