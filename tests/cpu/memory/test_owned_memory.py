"""What the backend calls a buffer's own memory, for the results of all kernels."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.cases import tables
from tensorplug_conformance.corpus import Corpus
from tensorplug_cpu.backend import CpuBackend

if TYPE_CHECKING:
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry

BACKEND = CpuBackend()
CASES = 12  # of each kernel
ENTRIES = {
    entry.spec.name: entry for table in tables() for entry in table if dt.float32 in entry.dtypes
}


def upload(value: Any) -> Any:
    if isinstance(value, list):
        return [upload(member) for member in value]
    return None if value is None else tp.asarray(value)


def arrays(value: Any) -> list[Any]:
    """Return the buffers of a tensor, or of a list of tensors."""
    if isinstance(value, list | tuple):
        return [array for member in value for array in arrays(member)]
    return [] if value is None else [value._buffer]


def check(entry: CaseEntry, case: Case) -> int:
    """Check the results of a case; return how many are said to have memory of their own."""
    context = current_context()
    engine: Any = engine_of(context)
    given = [upload(value) for value in case.inputs]
    if case.refused:
        return 0  # an error
    kept, found = (
        arrays(engine.run(context, entry.spec, given, case.attributes)) for _ in range(2)
    )
    others = [*arrays(given), *kept]
    own = [
        array
        for array in found
        if BACKEND.owns_memory(array) and not any(array is other for other in others)
    ]
    for array in own:
        for other in others:
            assert not np.shares_memory(array, other), f"{entry.spec.name}, {case.id}"
    return len(own)


@pytest.mark.slow
def test_memory_of_its_own_is_shared_with_nothing() -> None:
    """Not with inputs, and not with an earlier result, which a kernel may keep."""
    own: dict[str, int] = {}
    with tp.use_backend("cpu"):
        for name, entry in ENTRIES.items():
            cases = entry.checked(entry.generate(Corpus(dt.float32, 0, name)))
            own[name] = sum(check(entry, case) for case in islice(cases, CASES))
    assert own["Reshape"] == own["Identity"] == 0
    assert sum(1 for count in own.values() if count) > len(own) // 2


@pytest.mark.parametrize(
    ("array", "owns"),
    [
        (np.zeros(8), True),
        (np.zeros((4, 2)).reshape(8), True),  # the only view of an array
        (np.zeros((4, 2)).T, False),  # not in row-major order
        (np.frombuffer(b"12345678"), False),  # of another object, and read-only
        (np.broadcast_to(np.zeros(1), 8), False),
    ],
)
def test_arrays(array: Any, owns: bool) -> None:
    assert BACKEND.owns_memory(array) == owns


def test_views() -> None:
    base = np.zeros((4, 2))
    assert not BACKEND.owns_memory(base[1:])
    view = base.reshape(8)
    del base
    assert BACKEND.owns_memory(view)
    other = view[2:]
    assert not BACKEND.owns_memory(view)
    del other
    assert BACKEND.owns_memory(view)
