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


class Consuming:
    """A function that writes into the memory of inputs where nothing else uses it.

    Args:
        run: takes the memory of the inputs with the numbers ``places``.
        places: in the order of the counts that a call gets.
        owns: of the backend's capability ``ReusesMemory``.
        make_plain: returns the same function with new memory, when it is first needed.

    """

    def __init__(
        self,
        run: Compute,
        places: Sequence[int],
        owns: Callable[[Any], bool],
        make_plain: Callable[[], Compute],
    ) -> None:
        self._run, self._places, self._owns, self._make_plain = run, places, owns, make_plain
        self._count = len(places)
        self._plain: Compute | None = None

    def __call__(self, *operands: Any) -> Sequence[Buffer]:
        """Return the outputs. The operands: references to overwritten inputs, then all inputs."""
        counts, buffers = operands[: self._count], operands[self._count :]
        owns = self._owns
        for count, at in zip(counts, self._places, strict=True):
            if count > _ONE or not owns(buffers[at]):
                if self._plain is None:
                    self._plain = self._make_plain()
                return self._plain(*buffers)
        return self._run(*buffers)


def overwriting_group(backend: Any, group: Group, run: Compute) -> Consuming:
    """Return a group that writes into inputs where nothing else uses their memory.

    ``backend`` compiled ``run``, and compiles the group with new memory if it is needed. It has
    the capabilities ``CompilesGroups`` and ``ReusesMemory``.
    """

    def make_plain() -> Compute:
        outputs = tuple(replace(output, into=None) for output in group.outputs)
        plain: Compute | None = backend.compile_group(replace(group, outputs=outputs))
        assert plain is not None, f"{group.name}: declined without ``into``, accepted with it"
        return plain

    return Consuming(run, overwritten(group), backend.owns_memory, make_plain)


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
