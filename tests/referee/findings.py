"""What the suite found in other libraries: read from tables, repeated, and shown as a page.

Each finding is a call of the library alone, without tensorplug, and an expression of Python or
mpmath for the right value.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import mpmath
import numpy as np

from tensorplug.plugin import dtypes as dt

FOLDER: Final = Path(__file__).parent / "findings"
PAGE: Final = Path(__file__).parents[2] / "docs" / "referee.md"
START: Final = "<!-- written by `make referee` -->\n"
KINDS: Final = ("wrong", "digits", "raises", "crashes", "documented")
KNOWN: Final = {"inf": math.inf, "nan": math.nan, "mp": mpmath, "np": np, "Fraction": Fraction}


@dataclass(frozen=True, slots=True)
class Finding:
    """A call of a library, and what it gives.

    ``kernel``, ``dtypes``: rows of the suite that fail for this reason. ``call``: statements, the
    last of which is an expression; ``got``: its value; ``right``: an expression of the value that
    it must have. ``kind``: "wrong" value, too few right "digits", an error that it "raises", a
    process that "crashes", or a difference that the library has "documented". ``what``: more about
    it; ``known``: its number in the library's list of issues, or its documentation.
    """

    kernel: str
    dtypes: list[str]
    call: str
    got: str
    right: str
    kind: str
    what: str
    known: str = ""

    @property
    def value(self) -> Any:
        """What the call must give: a number, or a list of them."""
        with mpmath.workdps(50):
            return eval(self.right, dict(KNOWN))

    @property
    def ulp(self) -> float:
        """How far off the number is, in units of the last place of the first dtype."""
        right, type_ = self.value, dt.of(self.dtypes[0]).numpy
        spacing = float(np.spacing(np.abs(np.array(float(right)).astype(type_))))
        return float(abs(mpmath.mpf(self.got) - right) / spacing)


@dataclass(frozen=True, slots=True)
class Library:
    """A table of findings. ``setup``: statements before each call."""

    name: str
    distribution: str
    version: str
    setup: str
    findings: list[Finding]

    @property
    def here(self) -> bool:
        """Whether the version that was judged is installed."""
        try:
            return version(self.distribution).partition("+")[0] == self.version
        except PackageNotFoundError:
            return False

    def repeat(self, finding: Finding) -> str:
        """Make the call of a finding, and return what it gives as text."""
        if finding.kind == "crashes":
            source = f"from math import inf, nan\nimport numpy as np\n{self.setup}\n{finding.call}"
            process = subprocess.run(
                [sys.executable, "-c", source], check=False, capture_output=True
            )
            return (
                signal.Signals(-process.returncode).name if process.returncode < 0 else "nothing"
            )
        names = dict(KNOWN)
        exec(self.setup, names)
        *before, last = finding.call.split("; ")
        try:
            exec("; ".join(before), names)
            return shown(eval(last, names))
        except Exception as error:  # noqa: BLE001  # an error is what some findings are
            return f"{type(error).__name__}: {error}".partition("\n")[0][:120]


def shown(value: Any) -> str:
    """Return numbers as text: those of an array as a list, each with the digits that it needs."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    return str(value).strip("()") if isinstance(value, complex) else str(value)


def libraries() -> list[Library]:
    """Return all tables."""
    result = []
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = [Finding(**row) for row in table.pop("finding")]
        result.append(Library(**table, findings=rows))
    return result


def _right(finding: Finding) -> str:
    value = finding.value
    return (
        mpmath.nstr(value, 10 + 10 * (finding.dtypes[0] in {"float64", "complex128"}))
        if (isinstance(value, mpmath.mpf))
        else shown(value)
    )


def _row(finding: Finding) -> str:
    call = "<br>".join(f"`{each}`" for each in finding.call.split("; ")).replace("|", "\\|")
    off = f" {finding.ulp:.3g} ulp off." if finding.kind == "digits" else ""
    cells = (
        finding.kernel,
        ", ".join(finding.dtypes),
        call,
        f"`{finding.got}`",
        _right(finding),
        finding.what + off,
        finding.known or "no",
    )
    return f"| {' | '.join(cells)} |"


def tables() -> str:
    """Return the tables of the page, by library."""
    lines = ["| library | version | findings | of these, known there | documented differences |"]
    lines.append("|---|---|---|---|---|")
    for each in libraries():
        faults = [one for one in each.findings if one.kind != "documented"]
        known = sum(bool(one.known) for one in faults)
        rest = len(each.findings) - len(faults)
        lines.append(f"| {each.name} | {each.version} | {len(faults)} | {known} | {rest} |")
    for each in libraries():
        for title, kinds in ((each.name, KINDS[:-1]), (f"Documented by {each.name}", KINDS[-1:])):
            rows = [one for one in each.findings if one.kind in kinds]
            if rows:
                lines += ["", f"## {title}", "", "```text", each.setup.strip(), "```", ""]
                lines.append("| kernel | dtypes | call | got | right | what is wrong | known |")
                lines.append("|---|---|---|---|---|---|---|")
                lines += map(_row, rows)
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Write the tables into the page, below its text."""
    text = PAGE.read_text(encoding="utf-8").partition(START)[0]
    PAGE.write_text(f"{text}{START}\n{tables()}", encoding="utf-8")
