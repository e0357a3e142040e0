"""Every public function and class has an example, and each example gives what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from tests.core.support.public_functions import PUBLIC, PUBLIC_HOMES

import tensorplug as tp

_PACKAGES = ("tensorplug", "tensorplug_train", "tensorplug_science")
_SOURCES = [Path(importlib.import_module(package).__file__ or "").parent for package in _PACKAGES]
SESSIONS = sorted(
    ".".join((source.name, *path.relative_to(source).with_suffix("").parts))
    for source in _SOURCES
    for path in source.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_every_public_name_has_an_example() -> None:
    """What plugins import besides is documented in guides, which are followed by a test."""
    users = {
        name: value
        for name, value in PUBLIC.items()
        if not name.startswith(("tp.plugin.", "tp.algorithms."))
    }
    assert len(users) > 500
    assert [
        name for name, value in users.items() if ">>> " not in (inspect.getdoc(value) or "")
    ] == []


_SOURCE = re.compile(
    r"Source|standard|NumPy|SciPy|PyTorch|TensorFlow|tfjs|JAX|ONNX|einops|Pillow|Python's"
)


def test_every_op_says_where_its_definition_comes_from() -> None:
    texts = {
        name: (inspect.getdoc(value) or "").partition("Examples:")[0]
        for name, value in PUBLIC.items()
        if inspect.isfunction(value)
        and value.__module__.startswith(("tensorplug.ops.", "tensorplug.library."))
        and not name.startswith(("tp.plugin.", "tp.algorithms."))
    }
    assert len(texts) > 350
    assert [name for name, text in texts.items() if not _SOURCE.search(text)] == []


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a module's sessions. A user has ``tp`` and ``np``, an inner module all its names."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    names = {"tp": tp, "np": np} | ({} if name in PUBLIC_HOMES else vars(module))
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for session in doctest.DocTestFinder().find(module, globs=names):
        runner.run(session)
    failed, tried = runner.summarize()
    assert (failed, tried > 0) == (0, True)
