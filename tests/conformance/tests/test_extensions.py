"""The hook by which extension packages add their own cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorplug.plugin import RegistrationError
from tensorplug_conformance.extensions import extension_tables

from .installing import install

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
    found = [entry for table in tables for entry in table if entry.spec.name == "Neg"]
    assert [case.id for case in found[0].generate(None)] == ["one"]  # type: ignore[arg-type]  # plain data


def test_what_is_no_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "bad_cases", "['cases']")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RegistrationError, match="which is not a CaseTable"):
        extension_tables()
