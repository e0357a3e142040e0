"""The hook by which extension packages add their own cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorplug.plugin import RegistrationError
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.rendering.summary import summary

from .installing import install
from .reports import sample

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = """
    import numpy as np
    from tensorplug.plugin import dtypes as dt
    from tensorplug.plugin import hookimpl, specs
    from tensorplug_conformance import Case, CaseTable

    cases = CaseTable()
    one = np.ones(1, np.float32)
    cases.rows(specs.NEG, dt.float32, [Case("one", (one,), expected=(-one,))])

    @hookimpl
    def tensorplug_conformance_cases():
        return {returned}
"""


def _install(folder: Path, name: str, returned: str) -> None:
    source = PLUGIN.replace("{returned}", returned)
    install(folder, source, group="extensions", name=name, requires="tensorplug")


def test_an_extension_brings_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "good_cases", "(cases,)")
    before = len(extension_tables())
    monkeypatch.syspath_prepend(str(tmp_path))
    tables = extension_tables()
    assert len(tables) == before + 1
    items = [entry for table in tables for entry in table if entry.spec.name == "Neg"]
    assert [case.id for case in items[0].generate(None)] == ["one"]  # type: ignore[arg-type]  # plain data


def test_what_is_no_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "bad_cases", "['cases']")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RegistrationError, match="which is not a CaseTable"):
        extension_tables()


def test_a_report_says_which_extensions_it_covers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = report.environment()["extensions"].split(", ")
    assert {name.partition(" ")[0] for name in before} >= {"tensorplug-train"}
    _install(tmp_path, "good_cases", "(cases,)")
    monkeypatch.syspath_prepend(str(tmp_path))
    content = sample()
    content["environment"] = report.environment()
    [more] = set(content["environment"]["extensions"].split(", ")) - set(before)
    assert more.startswith("tensorplug-good-cases ")
    assert more in summary(content)
    monkeypatch.setenv("TENSORPLUG_DISABLE_PLUGINS", "good_cases,train")
    left = report.environment()["extensions"]
    assert "good-cases" not in left
    assert "train" not in left
