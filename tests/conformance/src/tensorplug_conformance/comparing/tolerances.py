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


CORRECTLY_ROUNDED = 0.5


@dataclass(frozen=True, slots=True)
class Tolerances:
    """``ulp``: kernel -> dtype name or ``"*"`` -> error allowed. The others: times eps.

    ``most``: by dtype name, the error allowed where a line of ``ulp`` allows more.
    """

    version: str
    ulp: Mapping[str, Mapping[str, float]]
    most: Mapping[str, float]
    gradient: Mapping[str, float]
    second_gradient: Mapping[str, float]
    program: float

    def of(self, entry: CaseEntry, dtype: DType) -> float:
        """Return the error allowed, in ulp: from this table, else from the entry's own."""
        return self.limit(self.ulp.get(entry.spec.name, entry.ulp), dtype.name)

    def limit(self, line: Mapping[str, float], dtype: str) -> float:
        """Return the error that a line of ``ulp`` allows in the dtype of that name."""
        bound = _look_up(line, dtype)
        return min(bound, self.most.get(dtype, bound))

    def of_gradients(self, dtype: DType) -> float:
        """Return the error allowed of first gradients."""
        return _look_up(self.gradient, dtype.name)

    def of_second_gradients(self, dtype: DType) -> float:
        """Return the error allowed of second gradients."""
        return _look_up(self.second_gradient, dtype.name)


def _look_up(line: Mapping[str, float], dtype: str) -> float:
    return line.get(dtype, line.get("*", CORRECTLY_ROUNDED))


@functools.cache
def tolerances() -> Tolerances:
    """Return the table."""
    text = (resources.files(__package__) / "tolerances.toml").read_text("utf-8")
    table = tomllib.loads(text)
    gradient, program = table["gradient"], table["program"]
    return Tolerances(
        table["version"],
        table["ulp"],
        table["most"],
        gradient["factor"],
        gradient["second"],
        float(program["factor"]),
    )
