"""The options that pytest loads in every run where the suite is installed.

It imports neither the suite nor tensorplug until a backend is named; see
``tensorplug_conformance.pytest_run``.
"""

from __future__ import annotations

import pytest

_PACKAGE = "tensorplug_conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all of them under one name."""
    group = parser.getgroup("tensorplug", "conformance of tensorplug backends")
    group.addoption(
        "--tensorplug-backend",
        metavar="NAME",
        help=f"the backend under test, for pytest --pyargs {_PACKAGE}",
    )
    group.addoption(
        "--tensorplug-level",
        type=int,
        metavar="N",
        help="levels 0 to N (default: all)",
    )
    group.addoption(
        "--tensorplug-seed",
        type=int,
        default=0,
        metavar="N",
        help="of the ordinary inputs (default 0)",
    )
    group.addoption(
        "--tensorplug-examples",
        type=int,
        default=0,
        metavar="N",
        help="random variations of the cases that are tried beside them, per row (default 0)",
    )
    group.addoption(
        "--tensorplug-item-limit",
        type=float,
        metavar="SECONDS",
        help="for one kernel in one dtype, or one check",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the suite if a backend is named."""
    if config.getoption("tensorplug_backend") is None:
        asked = [argument for argument in config.args if argument.startswith(_PACKAGE)]
        if asked and config.getoption("pyargs") and not config.getoption("help"):
            raise pytest.UsageError(f"--pyargs {_PACKAGE} needs --tensorplug-backend NAME")
        return
    from tensorplug_conformance.pytest_run import ConformanceRun  # it imports the whole suite

    config.pluginmanager.register(ConformanceRun(config), f"{_PACKAGE} run")
