"""The command ``judge``: its arguments, and what it says."""

from __future__ import annotations

import argparse
import json
import math
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.comparing.vendor import PROFILES
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.differential.judging import plain_attributes
from tensorplug_conformance.differential.scripts import described, literal
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.judging.judging import Judge, Judgement
from tensorplug_conformance.judging.session import Judged, NotJudgedError
from tensorplug_conformance.reporting.quoting import for_terminal, printable
from tensorplug_conformance.reporting.reproduction import UnknownCaseError, case_named
from tensorplug_conformance.trying.rows import run_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tensorplug_conformance.case_entry import CaseEntry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments, but for those of other commands: ``--dtypes`` and ``--seed``."""
    parser.add_argument("target", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    parser.add_argument("--as", dest="kernel", required=True, metavar="KERNEL")
    parser.add_argument(
        "--with",
        dest="arrays",
        default="numpy",
        metavar="ARRAYS",
        help="numpy, or dlpack:LIBRARY, such as dlpack:torch; dlpack:torch:cuda for a device",
    )
    parser.add_argument(
        "--map",
        type=_renaming,
        action="append",
        default=[],
        metavar="NAME=ATTRIBUTE",
        help="what the callable calls an attribute of the kernel: --map axis=dim",
    )
    parser.add_argument("--soak", action="store_true", help="then thousands of calls, in threads")
    parser.add_argument(
        "--poison-outputs", action="store_true", help="fill memory with NaN that results get"
    )
    parser.add_argument(
        "--fresh-inputs", action="store_true", help="draw the seed; values are new in each batch"
    )
    parser.add_argument("--profile", choices=PROFILES, default=PROFILES[0])
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="where the JSON and a script go"
    )


def _renaming(text: str) -> tuple[str, str]:
    theirs, is_, ours = text.partition("=")
    if not (theirs.isidentifier() and is_ and ours.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=ATTRIBUTE")
    return ours, theirs


def run(options: argparse.Namespace, console: Console) -> int:
    """Judge a callable; return 0 if all cases that apply are right, else 1."""
    entry = _entry(options.kernel)
    judged = _judged(options, entry)
    known = {dtype.name for dtype in entry.dtypes if dtype.name != "string"}
    chosen = options.dtypes or (entry.leading.name,)
    if not set(chosen) <= known:
        raise NotJudgedError(f"{entry.spec.name} has cases in {', '.join(sorted(known))}")
    seed = secrets.randbelow(1 << 31) if options.fresh_inputs else options.seed
    judge = Judge(judged, entry)
    try:
        items = [
            judge.dtype(name, seed, soak=options.soak, fresh=options.fresh_inputs)
            for name in chosen
        ]
    finally:
        judge.close()
    _show(judged, items, sorted(known - set(chosen)), console)
    right = all(_status(one, options.profile).startswith("pass") for one in items)
    text = next((script(judged, one) for one in items if one.finding), "")
    if options.report is not None:
        options.report.mkdir(parents=True, exist_ok=True)
        content = as_data(judged, items, right=right, profile=options.profile)
        written = json.dumps(content, indent=1, allow_nan=False)
        (options.report / "judgement.json").write_text(written + "\n", "utf-8")
        if text:
            (options.report / "repeat.py").write_text(text, "utf-8")
    return 0 if right else 1


def _entry(kernel: str) -> CaseEntry:
    known = entries(extension_tables())
    if kernel not in known:
        alike = [name for name in known if name.lower() == kernel.lower().replace("_", "")]
        hint = f"; did you mean {alike[0]}?" if alike else ""
        raise UnknownCaseError(f"this suite has no cases for a kernel {kernel!r}{hint}")
    return known[kernel]


def _judged(options: argparse.Namespace, entry: CaseEntry) -> Judged:
    module, _, function = options.target.rpartition(":")
    kind, *names = options.arrays.split(":")
    if not module or not function:
        raise NotJudgedError(f"{options.target!r} is not MODULE:FUNCTION")
    if (kind, len(names)) not in (("numpy", 0), ("dlpack", 1), ("dlpack", 2)):
        raise NotJudgedError(f"--with {options.arrays}: numpy or dlpack:LIBRARY")
    if names[1:] and names[0] != "torch":
        raise NotJudgedError(f"--with {options.arrays}: of torch alone a device can be chosen")
    unknown = {ours for ours, _ in options.map} - set(entry.spec.attributes)
    if unknown:
        have = ", ".join(entry.spec.attributes) or "none"
        raise NotJudgedError(f"{entry.spec.name} has no {', '.join(unknown)}; it has: {have}")
    place = Path(module).absolute() if module.endswith(".py") else module
    library, device = [*names, "", "cpu"][:2] if len(names) != 1 else (names[0], "cpu")
    target = f"{place}:{function}"
    return Judged(target, library, device, dict(options.map), options.poison_outputs)


def _status(judgement: Judgement, profile: str) -> str:
    return judgement.row.status if profile == "strict" else judgement.row.vendor


def _show(
    judged: Judged, items: Sequence[Judgement], left: Sequence[str], console: Console
) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(for_terminal(text), style=style, soft_wrap=True, highlight=False)

    for one in items:
        row = one.row
        say(
            f"{row.row.kernel} {row.row.dtype}: {row.passed} cases right, "
            f"{len(row.failed)} wrong, {row.declined} not claimed; worst error {row.ulp:.3g} ulp"
        )
        for reason, number in (+one.declined).items():
            say(f"  not claimed: {number} cases: {reason}", "yellow")
        if one.copied:
            say(
                f"  {one.copied} inputs were copied: {judged.library} takes no such layout",
                "yellow",
            )
        if one.views:
            say(f"  the results of {one.views} cases are views of an input")
        if one.left_out:
            say(f"  {one.left_out} cases were left out, as its process was lost {one.lost} times")
        if one.soaked:
            say(f"  {one.soaked} further calls in several threads")
        found = one.finding
        if found is None:
            continue
        say(f"  first failure: {found.case}{' @ ' * bool(found.presentation)}{found.presentation}")
        say(f"    {found.message}", "red")
        for each in found.layouts:
            say(
                f"    {each['input']}: {each['dtype']}{each['shape']}, order {each['order']}, "
                f"strides {each['strides']}, offset {each['offset']}"
            )
        if found.operands is not None:
            call = described(row.row.kernel, found.attributes, found.operands)
            say(f"    smallest call: {call if len(call) <= 300 else call[:300] + '...'}")
    if left:
        say(f"not judged, without --dtypes: {', '.join(left)}")
    wrong = [one.row.row.dtype for one in items if one.row.status != "pass native"]
    end = f"not right in {', '.join(wrong)}" if wrong else "right in all cases that apply"
    say(f"{judged.target}: {end}", "bold red" if wrong else "bold green")


def as_data(
    judged: Judged, items: Sequence[Judgement], *, right: bool, profile: str
) -> dict[str, Any]:
    """Return the judgement as data for JSON; infinite errors are None."""
    rows = []
    for one in items:
        row, found = asdict(one.row), one.finding
        kept = ("status", "vendor", "cases", "passed", "failed", "tolerated")
        call = found and found.operands and (found.attributes, found.operands)
        rows.append(
            {
                "dtype": one.row.row.dtype,
                "seed": one.seed,
                **{name: row[name] for name in kept},
                "not_claimed": dict(+one.declined),
                "ulp": one.row.ulp if math.isfinite(one.row.ulp) else None,
                "copied_inputs": one.copied,
                "views": one.views,
                "soaked_calls": one.soaked,
                "left_out": one.left_out,
                "first": found
                and {
                    "case": found.case,
                    "presentation": found.presentation,
                    "message": found.message,
                    "layouts": found.layouts,
                    "smallest": call and described(one.row.row.kernel, *call),
                },
            }
        )
    return {
        "suite": SUITE_VERSION,
        "judged": judged.target,
        "kernel": items[0].row.row.kernel,
        "arrays": f"dlpack:{judged.library}:{judged.device}" if judged.library else "numpy",
        "poisoned": judged.poison,
        "profile": profile,
        "right": right,
        "rows": rows,
    }


def script(judged: Judged, judgement: Judgement) -> str:
    """Return a program that judges the first failure again; its exit code is 1 while it fails."""
    found, row = judgement.finding, judgement.row.row
    assert found is not None
    title = f"{judged.target} as {row.kernel} {row.dtype}, case {found.case!r}\n{found.message}"
    inputs = None if found.operands is None else literal(found.operands)
    values = plain_attributes(found.attributes)
    call = (
        f"inputs = {inputs}\nattributes = {values!r}" if inputs else "inputs = attributes = None"
    )
    lines = [
        *(f"# {line}" for line in printable(title).splitlines()),
        "import numpy as np",
        "from numpy import inf, nan",
        "",
        "import tensorplug as tp",
        "from tensorplug_conformance.judging.command import repeat",
        "",
        call,
        f"judged = {asdict(judged)!r}",
        f"which = {(row.kernel, row.dtype, found.case, found.presentation, judgement.seed)!r}",
        "raise SystemExit(repeat(judged, which, inputs, attributes))",
    ]
    return "\n".join(lines) + "\n"


def repeat(
    judged: dict[str, Any],
    which: tuple[str, str, str, str, int],
    inputs: list[Any] | None,
    attributes: dict[str, Any] | None,
) -> int:
    """Judge one call, or the case itself; print the verdict, and return 1 if it fails, else 0."""
    kernel, dtype, case, presentation, seed = which
    judge = Judge(Judged(**judged), _entry(kernel))
    row = Row(kernel, dt.of(dtype).name, "native")
    if inputs is not None:
        failure = judge.again(row, inputs, attributes or {}, presentation)
    else:
        name = f"{case} @ {presentation}" if presentation else case
        named = case_named(judge.entry, row, seed, name)
        if named is None:
            raise UnknownCaseError(f"this suite has no case {name!r} of {kernel} in {dtype}")
        failure = run_case(judge.session, judge.entry, row, named, aftermath=False)
    judge.close()
    print(failure.message if failure else "right")  # noqa: T201  # the answer
    return int(failure is not None)
