"""Names of ops that the files of a new project use for something else."""

from __future__ import annotations

import pytest

from tensorplug.command_line import new_names
from tensorplug.errors import ArgumentError


@pytest.mark.parametrize("name", ["tp", "np", "float", "tuple", "print"])
def test_an_op_does_not_hide_what_its_project_uses(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name!r} would hide another object"):
        new_names.checked(name, "extension")
    assert new_names.checked(f"{name}-like", "extension").name == f"{name}-like"
