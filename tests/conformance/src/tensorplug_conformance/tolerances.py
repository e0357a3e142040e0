"""The versioned table of allowed errors, read from ``tolerances.toml``."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.plugin import DType
    from tensorplug_conformance.case_entry import CaseEntry

__all__ = ["Tolerances", "tolerances"]

CORRECTLY_ROUNDED = 0.5


@dataclass(frozen=True, slots=True)
class Tolerances:
    """``ulp``: kernel -> dtype name or ``"*"`` -> error allowed. The others: times eps."""

    version: str
    ulp: Mapping[str, Mapping[str, float]]
    gradient: float
    second_gradient: float
    program: float

    def of(self, entry: CaseEntry, dtype: DType) -> float:
        """Return the error allowed, in ulp: from this table, else from the entry's own."""
        line = self.ulp.get(entry.spec.name, entry.ulp)
        return line.get(dtype.name, line.get("*", CORRECTLY_ROUNDED))


@functools.cache
def tolerances() -> Tolerances:
    """Return the table."""
    text = resources.files("tensorplug_conformance").joinpath("tolerances.toml").read_text("utf-8")
    table = tomllib.loads(text)
    gradient, program = table["gradient"], table["program"]
    return Tolerances(
        table["version"],
        table["ulp"],
        float(gradient["factor"]),
        float(gradient["second"]),
        float(program["factor"]),
    )
