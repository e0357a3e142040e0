"""What the environments of drivers install."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.drivers.drivers import DRIVERS
from tests.drivers.environments import FOLDERS, OURS, ROOT


@pytest.mark.parametrize("backend", sorted({driver.backend for driver in DRIVERS}))
def test_environments_have_every_distribution_of_ours_that_they_require(backend: str) -> None:
    """No index has these."""
    projects = [
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        for folder in (*OURS, FOLDERS[backend])
    ]
    required = {
        re.split(r"[<>=\[]", text)[0] for each in projects for text in each["dependencies"]
    }
    ours = {name for name in required if name.startswith("tensorplug")}
    assert ours
    assert ours <= {project["name"] for project in projects}
