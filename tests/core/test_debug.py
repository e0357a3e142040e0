"""With ``debug`` the result of every call is compared with its spec, not only the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug import dispatch as seam
from tensorplug import dtypes as dt
from tensorplug import inference
from tensorplug.dispatch import Frame
from tensorplug.engine import Engine, Opened
from tensorplug.errors import KernelOutputError
from tensorplug.registry import Owner, Registry
from tensorplug.spec import KernelSpec
from tensorplug.tables import KernelTable

from .engines import MemoryBackend

FICKLE = KernelSpec("Fickle", ("x",), inference.same)
OWNER = Owner("test", "1.0")


class Source:
    """One backend whose only kernel returns a wrong shape from its second call on."""

    def names(self) -> list[str]:
        return ["memory"]

    def open(self, _name: str, _device: str | None) -> Opened:
        table, calls = KernelTable(), iter(range(100))

        @table.register(FICKLE)
        def fickle(x: Any) -> Any:
            return x if next(calls) == 0 else np.zeros(7, x.dtype)

        return Opened(MemoryBackend("memory", dt.FIXED), OWNER, ((OWNER, table),))


def engine(*, debug: bool) -> Engine:
    return Engine(Source(), Registry([FICKLE]), debug=debug)


def test_every_call_is_checked_in_debug() -> None:
    with seam.entered(Frame(engine(debug=True))):
        x = seam.as_tensor([1.0, 2.0])
        assert seam.dispatch_unary(FICKLE, x).shape == (2,)
        with pytest.raises(KernelOutputError, match=r"out is float32\[7\], but must be"):
            seam.dispatch_unary(FICKLE, x)


def test_only_the_first_call_is_checked_otherwise() -> None:
    with seam.entered(Frame(engine(debug=False))):
        x = seam.as_tensor([1.0, 2.0])
        for _ in range(3):
            assert seam.dispatch_unary(FICKLE, x).shape == (2,)  # what the spec infers
