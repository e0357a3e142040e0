"""Matrix products that a signal handler or a finalizer computes while a kernel begins or ends."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.reentry import OCCASIONS, call_during, points_of
from threadpoolctl import threadpool_info, threadpool_limits

from tensorplug_cpu.execution.blas import one_thread_each


def threads_of_blas() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.timeout(30)  # it would wait for its own lock
@pytest.mark.parametrize("occasion", OCCASIONS)
def test_blas_threads_are_limited_and_restored(monkeypatch, occasion):
    monkeypatch.setattr(one_thread_each, "_limit", None)  # more libraries may be loaded by now
    assert (np.ones((2, 2)) @ np.ones((2, 2))).tolist() == [[2, 2], [2, 2]]  # BLAS is loaded
    ran: list[str] = []

    def work() -> None:
        one_thread_each.run(lambda: ran.append("ours"))

    with threadpool_limits(3, user_api="blas"):
        for point in points_of(work):
            ran.clear()
            assert call_during(
                work, point, occasion, lambda: one_thread_each.run(lambda: ran.append("theirs"))
            )
            assert sorted(ran) == ["ours", "theirs"]
            assert threads_of_blas() == {3}
        seen: list[set[int]] = []
        one_thread_each.run(lambda: seen.append(threads_of_blas()))
        assert (seen, threads_of_blas()) == ([{1}], {3})
