"""The schema of reports, and whether what a worker tells can be part of one."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import numpy as np

from tensorplug_conformance.reporting.quoting import printable
from tensorplug_conformance.verdicts import CheckVerdict, RowVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug_conformance.verdicts import Item


LEFT_OUT: Final = ("row", "widened", "coverage")
"""The parts of a row's verdict that a report does not have."""
_LONGEST: Final = 200  # characters of a fault, which quotes what is wrong


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema that every report fulfils."""
    path = resources.files(__package__) / "report.schema.json"
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def misfit(item: Item, verdict: Any) -> str:
    """Return why the verdict that a worker tells of an item is none; empty if it is one."""
    kind = item[0]
    if kind not in ("check", "row", "evidence"):
        return f"nobody runs {kind!r:.40}"
    if not isinstance(verdict, dict) or verdict.keys() != _parts(kind):
        return "it has other parts"
    try:
        entry: dict[str, Any] = dict(verdict)
        own: tuple[Any, ...] = ()
        if kind == "row":
            ulp = None if not np.isfinite(verdict["ulp"]) else verdict["ulp"]
            entry = {name: verdict[name] for name in verdict if name not in LEFT_OUT}
            entry |= {"kernel": item[1], "dtype": item[2], "mode": item[3], "ulp": ulp}
            own = tuple(verdict["coverage"].values())
        elif kind == "check":
            entry |= {"level": item[1], "check": item[2]}
        else:
            entry |= {"group": item[2], "test": item[3]}
        json.dumps([entry, own], allow_nan=False)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        return str(error)
    if kind == "check" and entry != verdict:
        return f"it is of check {verdict['check']!r:.40}"
    return _first_fault(kind, entry) or "".join(_first_fault("covered", one) for one in own)


def misfit_introduction(backend: Mapping[str, Any]) -> str:
    """Return why a report cannot have what a worker tells of its backend; empty if it can."""
    description = {part: value for part, value in backend.items() if part != "kernels"}
    kernels = backend.get("kernels", [])
    if not isinstance(kernels, list) or not all(isinstance(name, str) for name in kernels):
        return "kernels are no list of names"
    if "name" in description:  # the one that was asked for
        return "it has a name of its own"
    return _first_fault("backend", {"name": "x", **description})


def _parts(kind: str) -> set[str]:
    """Return the parts of a verdict."""
    if kind == "evidence":
        return set(_rule(kind)["required"]) - {"group", "test"}
    return {part.name for part in fields(CheckVerdict if kind == "check" else RowVerdict)}


def _first_fault(part: str, entry: Any) -> str:
    """Return the first rule of the schema that a part of a report breaks; empty if none."""
    for error in _validator(part).iter_errors(entry):
        place = "/".join(map(str, error.absolute_path))
        return f"{place}: {printable(error.message)}"[:_LONGEST].replace("\n", " ")
    return ""


@cache
def _validator(part: str) -> Any:
    return jsonschema.Draft202012Validator({"$defs": schema()["$defs"], **_rule(part)})


def _rule(part: str) -> Mapping[str, Any]:
    """Return the part of the schema for a part of a report."""
    whole = schema()
    rules: dict[str, Any] = {
        "backend": whole["properties"]["backend"],
        "evidence": whole["$defs"]["evidence"]["properties"]["tests"]["items"],
    }
    return rules.get(part) or {"$ref": f"#/$defs/{part}"}
