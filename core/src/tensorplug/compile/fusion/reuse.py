"""Groups and kernels that write results into the memory of values that nothing reads afterwards.

The core finds out once which input of a call dies there. The user, a view or a cache may still
hold the memory, so each run makes sure that it has the only reference to the buffer, and that the
backend knows of no other use of the memory. Else the call takes new memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.groups import Group
    from tensorplug.contract.in_place import InPlace


LEAST: Final = 1 << 18
"""Bytes of the smallest output that is written in place: smaller memory stays in the cache.

An update of a donated argument takes 0.8 of the time from this size on, and all of it below.
"""

Compute = Callable[..., Sequence[Any]]


references: Final[Callable[[Any], int]] = getattr(sys, "getrefcount", id)
"""Returns the number of references to an object, or a larger one: not every interpreter counts."""


def _count_local() -> int:
    held = object()
    return references(held)


_ONE: Final = _count_local() if hasattr(sys, "getrefcount") else 0
"""The number for an object to which one local variable refers, as in a program's function."""


def choose_overwritten(group: Group, dying: Collection[int]) -> Group:
    """Return a group that may write outputs into the inputs with the numbers ``dying``.

    An output takes the memory of an input of its type. Both have an element for each of the
    loops, so that an element is read before it is written. With reductions that would not hold:
    they may be read again after the first output.
    """
    free = [at for at in dying if all(group.inputs[at].spans)]
    if group.reductions or not free:
        return group
    outputs = []
    for output in group.outputs:
        into = None
        if all(output.spans) and output.type.nbytes >= LEAST:
            into = next((at for at in free if group.inputs[at].type == output.type), None)
        if into is not None:
            free.remove(into)
        outputs.append(replace(output, into=into))
    return replace(group, outputs=tuple(outputs))


def overwritten(group: Group) -> list[int]:
    """Return the numbers of the inputs into whose memory outputs are written."""
    return [output.into for output in group.outputs if output.into is not None]


class OverwritingGroup:
    """A group that writes into inputs where nothing else uses their memory.

    Args:
        backend: compiled ``run``, and compiles the group with new memory if it is needed. It has
            the capabilities ``CompilesGroups`` and ``ReusesMemory``.
        group: with outputs that go into inputs.
        run: computes it.

    """

    def __init__(self, backend: Any, group: Group, run: Compute) -> None:
        self._backend, self._group, self._run = backend, group, run
        self._owns = backend.owns_memory
        self._places = overwritten(group)
        self._count = len(self._places)
        self._plain: Compute | None = None

    def __call__(self, *operands: Any) -> Sequence[Buffer]:
        """Return the outputs. The operands: references to overwritten inputs, then all inputs."""
        counts, buffers = operands[: self._count], operands[self._count :]
        owns = self._owns
        for count, at in zip(counts, self._places, strict=True):
            if count > _ONE or not owns(buffers[at]):
                return self._with_new_memory()(*buffers)
        return self._run(*buffers)

    def _with_new_memory(self) -> Compute:
        if self._plain is None:
            group = self._group
            outputs = tuple(replace(output, into=None) for output in group.outputs)
            run = self._backend.compile_group(replace(group, outputs=outputs))
            assert run is not None, f"{group.name}: declined without ``into``, accepted with it"
            self._plain = run
        return self._plain


class Overwriting:
    """A kernel that writes into an input where nothing else uses its memory.

    ``owns``: of the backend's capability ``ReusesMemory``.
    """

    __slots__ = ("_at", "_kernel", "_owns")

    def __init__(self, kernel: InPlace, owns: Callable[[Any], bool]) -> None:
        self._kernel, self._at, self._owns = kernel, kernel.at, owns

    def __call__(self, count: int, *buffers: Any) -> Any:
        """Return the output. ``count``: of references to the overwritten input."""
        alone = count <= _ONE and self._owns(buffers[self._at])
        return self._kernel.write(*buffers) if alone else self._kernel(*buffers)
