"""The commands ``key``, ``verify`` and ``registry``."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.attesting import registry, statement
from tensorplug_conformance.checks import Target
from tensorplug_conformance.reporting import report, terminal
from tensorplug_conformance.reporting.quoting import for_terminal
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running.opening import NotOpenedError, check_opens
from tensorplug_conformance.running.supervisor import Limits, supervise
from tensorplug_conformance.verdicts import PASSED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tensorplug_conformance.verdicts import Item

_TABLE: Final = "README.md"


def add_key(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``key``."""
    parser.add_argument(
        "file", type=Path, help="of the private key; the public one goes to FILE.pub"
    )


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``verify``."""
    parser.add_argument("report", type=Path)
    parser.add_argument("--key", type=Path, metavar="PUB", help="check the signature, too")
    parser.add_argument(
        "--rows",
        type=int,
        default=20,
        metavar="N",
        help="with --key: how many rows are run again if the backend is installed (default 20)",
    )


def add_registry(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``registry``."""
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--keys", type=Path, metavar="DIR", help="of the public keys (default: FOLDER/keys)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: FOLDER/{_TABLE}")


def _say(console: Console, text: object, style: str = "") -> None:
    console.print(for_terminal(text), style=style, soft_wrap=True, highlight=False)


def run_key(options: argparse.Namespace, console: Console) -> int:
    """Make a pair of keys."""
    made = statement.make_keys(options.file)
    _say(console, f"{options.file}, which is secret, and {options.file}.pub: key {made}")
    return 0


def run_verify(options: argparse.Namespace, console: Console) -> int:
    """Check a report, with a key its signature, and rows of it; return 0 if all of it holds."""
    content = report.parse(options.report)
    faults = verify(content)
    signature = None
    if options.key is not None:
        key = statement.public_key(options.key)
        signature, wrong = statement.checked(options.report, key)
        faults += wrong
    for fault in faults:
        _say(console, f"wrong {fault}", "red")
    if faults:
        return 1
    console.print("the report holds", style="green")
    terminal.show(content, console)
    if signature is None:
        return 0
    _say(
        console,
        f"signed by {options.key.stem}, key {signature.key[:12]}, at {signature.at:%Y-%m-%d %H:%M}"
        f" UTC, until {signature.until:%Y-%m-%d}",
    )
    for name, digest in signature.plugin.items():
        _say(console, f"  {name}: sha256 {digest}")
    if signature.editable:
        _say(console, "  an editable install: the digest does not cover its sources", "yellow")
    return _repeated(content, signature, options.rows, console)


def _repeated(
    content: Mapping[str, Any], signature: statement.Signature, number: int, console: Console
) -> int:
    """Run some rows that passed again, with other numbers; return 1 if one does not pass."""
    target = Target(
        content["backend"]["name"],
        draw=secrets.randbelow(1 << 32),
        falls_back=content.get("registered", False),
    )
    if number < 1:
        _say(console, "nothing was repeated", "yellow")
        return 0
    try:
        opened = check_opens(target, Limits())
    except NotOpenedError as error:
        _say(console, f"nothing was repeated: {error}", "yellow")
        return 0
    other = statement.other_plugin(signature, opened["distribution"])
    if other:
        _say(console, f"wrong: what is installed here is not what was certified: {other}", "red")
        return 1
    if opened["device"] != content["backend"].get("device"):
        _say(console, f"the device here is another one: {opened['device']}", "yellow")
    passed = [row for row in content["rows"] if row["status"] in PASSED]
    seed = secrets.randbelow(1 << 31)  # drawn after the signature
    rows = random.Random(seed).sample(passed, min(number, len(passed)))
    items: Sequence[Item] = [("row", row["kernel"], row["dtype"], row["mode"]) for row in rows]
    outcomes = supervise(target, items, seed, Limits(), lambda _outcome: None)
    wrong = 0
    for row, outcome in zip(rows, outcomes, strict=True):
        status = outcome.verdict["status"] if outcome.verdict else outcome.error
        if status != row["status"]:
            wrong += 1
            name = f"{row['kernel']} {row['dtype']} {row['mode']}"
            _say(console, f"wrong {name}: {row['status']} in the report, here {status}", "red")
    _say(console, f"{len(rows)} rows were repeated with seed {seed}, {wrong} are not as reported")
    return int(wrong > 0)


def run_registry(options: argparse.Namespace, console: Console) -> int:
    """Check all reports of a registry and write its table; return 1 if one does not hold."""
    found = registry.entries(options.folder, options.keys or options.folder / registry.KEYS)
    for one in found:
        for fault in one.faults:
            _say(console, f"wrong {one.place}: {fault}", "red")
    output = options.output or options.folder / _TABLE
    output.write_text(registry.rendered(found), "utf-8")
    wrong = sum(bool(one.faults) for one in found)
    _say(console, f"{output}: {len(found) - wrong} reports hold, {wrong} do not")
    return int(wrong > 0 or not found)
