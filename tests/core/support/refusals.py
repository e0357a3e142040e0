"""Calls that must be refused: tables of calls by their error, and the test of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Refusals = Mapping[type[Exception], Sequence[tuple[Callable[[], Any], str]]]


def refused(table: Refusals, *, regex: bool = False) -> Callable[..., None]:
    """Return a test that each call raises its error, whose message has the text or the pattern."""
    rows = [
        pytest.param(call, error, message if regex else re.escape(message), id=message)
        for error, calls in table.items()
        for call, message in calls
    ]

    @pytest.mark.parametrize(("call", "error", "message"), rows)
    def test(call: Callable[[], Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            call()

    return test
