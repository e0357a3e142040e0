"""A plugin's requirement on tensorplug: which lines count, and what the error says."""

from __future__ import annotations

import re

import pytest

from tensorplug.errors import PluginVersionError
from tensorplug.plugins import requirements
from tensorplug.plugins.metadata import BACKENDS, Candidate

UPGRADE = "pip install --upgrade tensorplug-acme"

# The line, the core's version, and the pip command of the error; none if the core is accepted.
LINES = [
    ("tensorplug", "0.1.0", None),
    ("tensorplug>=0.1,<0.2", "0.1.7", None),
    ("tensorplug>=0.1,<0.2", "0.2.0", UPGRADE),
    ("tensorplug>=0.1,<0.2", "0.2.0rc1", UPGRADE),
    ("tensorplug>=0.1", "0.2.0.dev1", None),
    ("tensorplug>=0.3,<0.4", "0.2.0", 'pip install "tensorplug>=0.3,<0.4"'),
    ("tensorplug==0.3.*", "0.2.0", 'pip install "tensorplug==0.3.*"'),
    ("tensorplug[cpu,cli] ~= 0.2", "0.1.0", 'pip install "tensorplug~=0.2"'),
    ("tensorplug!=0.1.0", "0.1.0", UPGRADE),
    ("TENSORPLUG (>=1)", "0.1.0", 'pip install "tensorplug>=1"'),
    ("Tensor_Plug (>=1)", "0.1.0", None),  # another distribution
    ("tensorplug-cpu>=9", "0.1.0", None),
    ("tensorplug @ https://example.org/tensorplug-9.zip", "0.1.0", None),
    ("tensorplug>=9; python_version < '3'", "0.1.0", None),
    ("tensorplug>=9; extra == 'new'", "0.1.0", None),
    ("tensorplug>=9; python_version >= '3'", "0.1.0", 'pip install "tensorplug>=9"'),
    ("numpy what is this", "0.1.0", None),
]


def check(line, version, monkeypatch):
    candidate = Candidate(BACKENDS, "acme", "tensorplug-acme", "1.2.3", None, (line, "numpy>=2"))
    requirements.check_version(candidate, version)


@pytest.mark.parametrize(("line", "version", "command"), LINES)
def test_requirement(line, version, command, monkeypatch):
    if command is None:
        check(line, version, monkeypatch)
        return
    with pytest.raises(PluginVersionError) as caught:
        check(line, version, monkeypatch)
    assert str(caught.value) == (
        f"backend 'acme' of tensorplug-acme 1.2.3 requires {line!r}, but tensorplug {version} is "
        f"installed. Try: {command}"
    )


@pytest.mark.parametrize(
    "line", ["tensorplug ? 1", "tensorplug>=1; never", "tensorplug>=1,,<x", "tensorplug>1; 'a'>1"]
)
def test_unreadable_requirement(line, monkeypatch):
    with pytest.raises(PluginVersionError, match=re.escape(repr(line))) as caught:
        check(line, "0.1.0", monkeypatch)
    assert str(caught.value).endswith(f"Try: {UPGRADE}")
    assert "\n" not in str(caught.value)
