"""ONNX's own tests for the conformance suite: the entry point ``onnx`` of ``tensorplug.evidence``.

``tensorplug-conformance run --backend acme --onnx`` adds their results to its report. The suite is
not needed here: it asks for these names.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Final

from tensorplug_onnx.checking import KINDS, names_of, result_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_onnx.checking import Status


TITLE: Final = "ONNX's own tests"
ABOUT: Final = (
    "The onnx package has models with inputs and outputs: some for each operator (node), for "
    "features of the format (simple), exported by PyTorch, and known networks without their "
    "weights (real). Outputs are compared by ONNX's own runner, with its tolerances."
)


def versions() -> Mapping[str, str]:
    """Return the versions of the distributions that decide the results."""
    return {name: metadata.version(name) for name in ("tensorplug-onnx", "onnx")}


def tests() -> Mapping[str, Sequence[str]]:
    """Return the names of all tests, by kind."""
    return {kind: names_of(kind) for kind in KINDS}


def run(group: str, name: str) -> tuple[Status, str]:
    """Run a test on the active backend; return its status, and why."""
    result = result_of(None, group, name)
    return result.status, result.why
