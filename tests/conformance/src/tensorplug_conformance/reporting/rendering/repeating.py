"""How to repeat a run: the commands that give the same report on the same hardware."""

from __future__ import annotations

import shlex
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


_SUITE: Final = "tensorplug-conformance"


def commands(report: Mapping[str, Any]) -> list[str]:
    """Return the commands, with exact versions; a partial run cannot be repeated from a report."""
    backend, suite = report["backend"], report["suite"]
    requirements = [f"tensorplug=={report['tensorplug']}", f"{_SUITE}=={metadata.version(_SUITE)}"]
    if "distribution" in backend and "version" in backend:
        requirements.append(f"{backend['distribution']}=={backend['version']}")
    run = [_SUITE, "run", "--backend", backend["name"], "--level", str(report["level"])]
    run += ["--seed", str(suite["seed"]), "--again-seed", str(report["asked_again"]["seed"])]
    run += ["--examples", str(suite["examples"])] if suite["examples"] else []
    run += ["--profile", report["profile"]]
    for one in report.get("evidence", ()):
        requirements += [f"{name}=={version}" for name, version in one["versions"].items()]
        run += ["--evidence", one["name"]]
    items = [["pip", "install", *requirements], [*run, "--report", "out"]]
    if "performance" in report:
        items.append([_SUITE, "measure", "--backend", backend["name"], "--report", "out"])
    items.append([_SUITE, "verify", "out"])
    return [shlex.join(command) for command in items]


def row_command(report: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the command that runs a row once more; with a gradient, the kernel's other rows."""
    run = [_SUITE, "run", "--backend", report["backend"]["name"], "--level", str(report["level"])]
    run += ["--kernels", row["kernel"], "--dtypes", row["dtype"]]
    run += ["--mode", row["mode"]] if row["mode"] != "gradient" else []
    return shlex.join([*run, "--seed", str(report["suite"]["seed"])])
