"""A spec that states too much about padding does not pass the check of facts."""

from __future__ import annotations

import pytest

from tensorplug.contract.padding import Padding, any_size
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import CheckFailedError
from tensorplug_conformance.checks.programs.mapping import small_cases
from tensorplug_conformance.checks.programs.structure import check_padding, sizes_of
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.session import Session, engine_factory


@pytest.mark.parametrize("kernel", ["BatchMatMul", "Cumsum", "Max", "Sort", "Sum", "TopK"])
def test_padding_that_is_said_to_need_no_masks_is_caught(kernel: str) -> None:
    entry = entries()[kernel]

    def check(rule: Padding) -> int:
        cases = small_cases(entry, dt.float32)[:12]
        calls = [(case, size) for case in cases for size in sizes_of(case)]
        return sum(check_padding(entry.spec, rule, *call) for call in calls)

    with Session(engine_factory(None), "cpu").entered():
        assert entry.spec.padding_rule
        assert check(entry.spec.padding_rule)
        with pytest.raises(CheckFailedError, match="padding of axes of"):
            check(any_size())
