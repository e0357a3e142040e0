"""vmap of each kernel of the catalogue: equal to the stack of the kernel's results."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.core.support.catalogue_calls import KERNELS, cases

from tensorplug.errors import ShapeError, TensorplugError
from tensorplug_conformance.checks.programs.mapping import (
    DEPENDING_ON_DATA,
    WITHOUT_INPUTS,
    batched_calls,
    compared,
)
from tensorplug_conformance.denominator import entries

pytestmark = pytest.mark.usefixtures("on_the_cpu")

CASES = 12


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in WITHOUT_INPUTS])
def test_equal_to_the_stack(kernel: str) -> None:
    done = refused = 0
    chosen = [case for _, case in islice(cases(kernel), CASES)]
    for number, call in enumerate(batched_calls(entries()[kernel], chosen)):
        try:
            meant = call.one_by_one()
        except (TensorplugError, ValueError):  # a variant that the kernel does not accept
            continue
        try:
            result = call.mapped(number % 3)
        except ShapeError as error:
            if kernel not in DEPENDING_ON_DATA:
                raise
            assert "depends on the data" in str(error)  # noqa: PT017  # some calls succeed
            refused += 1
            continue
        compared(call, result, meant)
        done += 1
    assert refused if kernel in DEPENDING_ON_DATA else done, "no call was compared"
