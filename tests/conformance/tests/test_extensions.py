"""The hook by which extension packages add their own cases."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tensorplug.plugin import RegistrationError
from tensorplug_conformance.extensions import extension_tables

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: acme-cases\nVersion: 1.0\nRequires-Dist: tensorplug\n"
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
    (folder / f"{name}.py").write_text(textwrap.dedent(PLUGIN).replace("{returned}", returned))
    info = folder / "acme_cases-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(f"[tensorplug.extensions]\nacme = {name}\n")


def test_an_extension_brings_its_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "acme_good_cases", "(cases,)")
    before = len(extension_tables())
    monkeypatch.syspath_prepend(str(tmp_path))
    tables = extension_tables()
    assert len(tables) == before + 1
    found = [entry for table in tables for entry in table if entry.spec.name == "Neg"]
    assert [case.id for case in found[0].generate(None)] == ["one"]  # type: ignore[arg-type]  # plain data


def test_what_is_no_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "acme_bad_cases", "['cases']")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RegistrationError, match="which is not a CaseTable"):
        extension_tables()
