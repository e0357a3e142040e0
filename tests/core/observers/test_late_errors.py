"""Errors of a device that computes later: where they are raised, and what they name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.contract.tables import KernelTable
from tensorplug.errors import DeviceFaultError
from tensorplug.plugin import specs


class Queue(engines.MemoryBackend):
    """Tells that a kernel failed when a result is read, or when the device is waited for."""

    pending: list[str]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pending = []

    def _tell(self) -> None:
        if self.pending:
            raise DeviceFaultError(self.pending.pop())

    def to_host(self, buffer: np.ndarray) -> np.ndarray:
        self._tell()
        return super().to_host(buffer)

    def synchronize(self) -> None:
        super().synchronize()
        self._tell()


def engine() -> Any:
    table = KernelTable()

    @table.register(specs.SQRT, override=True)
    def fails(x: np.ndarray, *, backend: Queue) -> np.ndarray:
        backend.pending.append("page fault at 0x10")
        return np.array(x)

    kernels = [engines.basic_kernels(), table]
    return engines.make({"memory": kernels}, kinds={"memory": Queue})


@pytest.mark.parametrize(
    ("wait", "when"),
    [
        (lambda y: y.numpy(), "float32[2] was read on 'memory'"),
        (lambda y: y.tolist(), "float32[2] was read on 'memory'"),
        (lambda _y: tp.synchronize(), "synchronize waited on 'memory'"),
    ],
)
def test_an_error_that_comes_late_says_how_to_find_its_call(wait: Any, when: str) -> None:
    with using(engine()):
        y = tp.sqrt(tp.asarray([1.0, 4.0]))
        with pytest.raises(DeviceFaultError, match="page fault") as caught:
            wait(y)
    (note,) = caught.value.__notes__
    assert when in note
    assert "tensorplug.debug()" in note


@pytest.mark.parametrize("options", [{}, {"nan": False, "inf": False}])
def test_debug_mode_names_the_call(options: dict[str, bool]) -> None:
    with using(engine()), tp.debug(**options):
        x = tp.asarray([1.0, 4.0])
        with pytest.raises(DeviceFaultError, match="page fault") as caught:
            tp.sqrt(x)
        x + x  # the device goes on
    notes = "\n".join(caught.value.__notes__)
    assert "in Sqrt(x=float32[2]) -> float32[2], native by memory-distribution 2.0" in notes
    assert "test_late_errors.py" in notes
    assert "tp.sqrt(x)" in notes
