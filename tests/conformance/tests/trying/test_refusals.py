"""Cases that a backend may refuse: it raises what the case names, or gives what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import ArgumentError, OutOfRangeError, specs
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import run_case

if TYPE_CHECKING:
    from collections.abc import Callable

WRONG = "of what must be true: off by 1"


def _raised(error: Exception) -> Callable[..., Any]:
    def kernel(x: Any, indices: Any) -> None:
        del x, indices
        raise error

    return kernel


def _gather(mode: Any, beyond: float = 0) -> Callable[..., Any]:
    """Return a kernel for rows: ``beyond`` is added to those of indices out of range."""

    def kernel(x: Any, indices: Any, *, axis: int) -> Any:
        size = x.shape[axis]
        counted = np.where(indices < 0, indices.astype(np.int64) + size, indices)
        inside = (counted >= 0) & (counted < size)
        picked = np.take(x, counted, axis=axis, mode=mode)
        return picked + np.where(inside, 0, beyond).astype(x.dtype)[:, None]

    return kernel


def _scatter(shift: int = 0, count: int = 1) -> Callable[..., Any]:
    """Return a kernel that leaves updates out, or moves those in range; each is added so often."""

    def kernel(indices: Any, updates: Any, *, shape: tuple[int, ...]) -> Any:
        out = np.zeros(shape, updates.dtype)
        for at, update in zip(indices[:, 0].tolist(), updates, strict=True):
            if -shape[0] <= at < shape[0]:
                out[(at + shift) % shape[0]] += count * update
        return out

    return kernel


@pytest.mark.parametrize(
    ("spec", "kernel", "message"),
    [
        (specs.GATHER_V2, _raised(OutOfRangeError("out of range")), None),
        (specs.GATHER_V2, _raised(ArgumentError("out of range")), None),
        (specs.GATHER_V2, _raised(ZeroDivisionError("other")), "ZeroDivisionError: other"),
        (specs.GATHER_V2, _gather("clip"), None),
        (specs.GATHER_V2, _gather("wrap"), None),
        (specs.GATHER_V2, _gather("clip", beyond=0.125), WRONG),
        (specs.GATHER_V2, lambda x, indices, *, axis: np.take(x, indices * 0, axis), WRONG),
        (specs.SCATTER_ND, _scatter(), None),
        (specs.SCATTER_ND, _scatter(shift=1), WRONG),
        (specs.SCATTER_ND, _scatter(count=2), WRONG),
    ],
)
def test_indices_out_of_range(spec: Any, kernel: Any, message: str | None) -> None:
    row = Row(spec.name, "float32", "native")
    entry = entries()[spec.name]
    case = next(case for case in cases_of(entry, row, 0) if case.id == "out of range")
    session = Session(engine_factory(None), "cpu")
    changed = [("cpu", kernel_entry(spec, kernel))]
    session.engine.registry.add(Owner("misbehaving"), kernels=changed, override=True)
    failure = run_case(session, entry, row, case)
    session.close()
    assert (failure and failure.message.partition(",")[0]) == message
