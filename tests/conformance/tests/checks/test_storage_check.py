"""The check of dtypes for storage finds out kernels that round or move them wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import narrowing, specs
from tensorplug_conformance.checks import CheckFailedError, Target, checks
from tensorplug_conformance.session import Session, engine_factory

FLOAT8 = dt.float8_e4m3fn.numpy


def truncate(x: Any, *, dtype: Any) -> Any:
    """Convert to the next number towards zero."""
    if dtype not in dt.STORAGE:
        return x.astype(dtype.numpy)
    rounded = narrowing.convert(x, dtype)
    back = rounded.astype(np.float32)
    nearer = rounded.view(np.uint8) - (np.abs(back) > np.abs(x))
    return nearer.astype(np.uint8).view(dtype.numpy)


def saturate_to_nothing(x: Any, *, dtype: Any) -> Any:
    """Read the largest number as NaN, as other formats do."""
    wide = x.astype(dtype.numpy)
    return np.where(np.abs(wide) == 448, np.nan, wide) if x.dtype == FLOAT8 else wide


def forget_signs(x: Any, *, dims: Any) -> Any:
    """Move magnitudes."""
    return np.abs(np.flip(x, dims).astype(np.float32)).astype(x.dtype)


WRONG = [
    (specs.CAST, truncate, "Cast from float32 gives"),
    (specs.CAST, saturate_to_nothing, "becomes other numbers of float32"),
    (specs.REVERSE, forget_signs, "REVERSE gives"),
]


@pytest.mark.parametrize(("spec", "kernel", "fault"), WRONG)
def test_wrong_kernels_are_found_out(spec: Any, kernel: Any, fault: str) -> None:
    session = Session(engine_factory(None), "cpu")
    entry = kernel_entry(spec, kernel)
    session.engine.registry.add(Owner("saboteur"), kernels=[("cpu", entry)], override=True)
    (check,) = (check for check in checks(1) if check.id == "storage float8_e4m3fn")
    with pytest.raises(CheckFailedError, match=fault):
        check.run(Target("cpu"), lambda: session)
