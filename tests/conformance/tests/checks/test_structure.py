"""A spec that states too much about padding does not pass the check of facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tensorplug_conformance.case import flat
from tensorplug_conformance.checks.check import CheckFailedError
from tensorplug_conformance.checks.programs.mapping import small_cases
from tensorplug_conformance.checks.programs.structure import check_padding
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.session import Session, engine_factory

from tensorplug.plugin import dtypes as dt


@pytest.mark.parametrize("kernel", ["BatchMatMul", "Cumsum", "Max", "Sort", "Sum", "TopK"])
def test_padding_that_is_said_to_need_no_masks_is_caught(kernel: str) -> None:
    entry = entries()[kernel]
    session = Session(engine_factory(None), "cpu")
    calls = [
        (case, size)
        for case in small_cases(entry, dt.float32)[:12]
        for size in {n for x in flat(case.inputs) for n in x.shape if n > 1}
    ]
    with session.entered():
        assert any([check_padding(entry.spec, *call) for call in calls])
        unmasked = replace(entry.spec, padding=())
        with pytest.raises(CheckFailedError, match="padding of axes of"):
            for call in calls:
                check_padding(unmasked, *call)
