"""What a registered kernel may decline: some calls, and dtypes that it does not name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug.plugin import DType, KernelSpec, TensorType
    from tensorplug_conformance.verdicts import RowVerdict

FLOATS = (dt.float32, dt.float64)


def verdict(
    spec: KernelSpec,
    declines: Callable[[TensorType], bool],
    dtypes: Iterable[DType] | None,
    dtype: str,
) -> RowVerdict:
    """Return the verdict on a native row, for a kernel that declines some types."""
    session = Session(engine_factory(None), "cpu")
    clean = session.registration(spec.name)
    assert clean is not None
    assert clean.prepares  # otherwise it could not decline

    def prepare(x: TensorType, **asked: Any) -> Any:
        if declines(x):
            raise KernelRefusedError("not these")
        return clean.function(x, **asked)

    served = None if dtypes is None else frozenset(dtypes)
    wrong = replace(clean, function=prepare, dtypes=served)
    owner = Owner("declines")
    session.engine.registry.add(owner, kernels=[("cpu", wrong)], override=True)
    return run_row(session, entries()[spec.name], Row(spec.name, dtype, "native"), 0)


@pytest.mark.parametrize(
    ("spec", "declines", "dtypes", "status", "reason"),
    [
        pytest.param(
            specs.SQUARE, lambda x: not x.size, None, "pass native", "not these", id="some"
        ),
        pytest.param(
            specs.SQUARE, lambda x: x.dtype in FLOATS, None, "not claimed", "not these", id="open"
        ),
        pytest.param(
            specs.REVERSE,
            lambda x: x.dtype in FLOATS,
            None,
            "not claimed",
            "not these",
            id="it raises",
        ),
        pytest.param(
            specs.SQUARE, lambda _: False, (dt.int32,), "not claimed", "", id="other dtype"
        ),
        pytest.param(
            specs.SQUARE,
            lambda x: x.dtype in FLOATS,
            (*FLOATS, dt.int32),
            "fail",
            "claims Square in float32 and never runs it",
            id="named",
        ),
        pytest.param(
            specs.SQUARE,
            lambda _: True,
            None,
            "fail",
            "claims Square and never runs it, in any dtype",
            id="all",
        ),
        pytest.param(
            specs.REVERSE,
            lambda _: True,
            None,
            "fail",
            "claims Reverse and never runs it, in any dtype",
            id="all but what raises",
        ),
    ],
)
def test_a_claim_holds_if_anything_of_it_runs(
    spec: KernelSpec,
    declines: Callable[[TensorType], bool],
    dtypes: Iterable[DType] | None,
    status: str,
    reason: str,
) -> None:
    of_row = verdict(spec, declines, dtypes, "float32")
    assert of_row.status == status
    assert reason in of_row.reason
    assert (of_row.passed > 0) is (spec is specs.REVERSE or status == "pass native")
    assert of_row.declined + of_row.passed in (0, of_row.cases)


def test_a_dtype_that_the_device_lacks_is_not_claimed_by_any_kernel() -> None:
    """A registration is of one backend, and its devices have different dtypes."""
    factory = "tensorplug_conformance.selftest.misbehaving:declares_less"  # no float64
    session = Session(engine_factory(factory), "cpu")
    entry = kernel_entry(specs.SQUARE, lambda x: np.asarray(x * x), dtypes=(dt.float64,))
    owner = Owner("float64 alone")
    session.engine.registry.remove_kernel(specs.SQUARE.name, "cpu")
    session.engine.registry.add(owner, kernels=[("cpu", entry)])
    known = entries()[specs.SQUARE.name]
    statuses = {
        name: run_row(session, known, Row(specs.SQUARE.name, name, "native"), 0).status
        for name in ("float32", "float64")
    }
    assert statuses == {"float32": "not claimed", "float64": "unsupported dtype"}
