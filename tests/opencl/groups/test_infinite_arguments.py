"""Derivatives of functions that subtract a maximum, where that is infinite, in OpenCL's groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.core.support.infinite_arguments import POINTS, check

import tensorplug as tp
from tensorplug.dispatch.context import use_context

if TYPE_CHECKING:
    from tests.core.support.infinite_arguments import Point

    from tensorplug.dispatch.context import Context


_ONE_IN = 4  # the core's tests try each


@pytest.mark.parametrize("point", POINTS[::_ONE_IN], ids=lambda point: f"{point.name} {point.x}")
def test_limits(core_context: Context, point: Point) -> None:
    with use_context(core_context):
        check(point, tp.float32, bits=2e-6)
