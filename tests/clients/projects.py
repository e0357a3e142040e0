"""The projects whose own tests run on tensorplug, and how each of them is run."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


_SCIPY: Final = """
    special/tests/test_support_alternative_backends.py special/tests/test_logsumexp.py
    fft cluster differentiate
    optimize/tests/test_bracket.py optimize/tests/test_chandrupatla.py
    integrate/tests/test_cubature.py integrate/tests/test_tanhsinh.py
    integrate/tests/test_quadrature.py
    signal/tests/test_windows.py signal/tests/test_signaltools.py
    signal/tests/test_filter_design.py
    stats/tests/test_stats.py stats/tests/test_quantile.py stats/tests/test_morestats.py
    ndimage/tests/test_filters.py
    interpolate/tests/test_bsplines.py
    _lib/tests/test_array_api.py
"""


@dataclass(frozen=True)
class Project:
    """A project.

    ``module`` is the name to import, ``plugins`` the plugins that pytest loads, ``find`` returns
    the files with tests, given the module's folder; ``markers`` and ``warnings`` belong in the
    configuration of pytest, which stands for the project's own. ``default_int`` is what it takes
    for the default integer of every namespace.
    """

    name: str
    module: str
    plugins: tuple[str, ...]
    find: Callable[[Path], list[Path]]
    markers: tuple[str, ...] = ()
    warnings: str = "ignore"
    options: tuple[str, ...] = ()
    default_int: str = "int64"

    def folder(self) -> Path:
        """Return the folder of the installed module."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent


def _of_scipy(folder: Path) -> list[Path]:
    return [folder / name for name in _SCIPY.split()]


def _of_sklearn(folder: Path) -> list[Path]:
    generators = re.compile("yield_namespaces|yield_namespace_device_dtype_combinations")
    found = (path for path in folder.rglob("test_*.py") if generators.search(path.read_text()))
    return sorted(found)


def _of_extra(folder: Path) -> list[Path]:
    return [folder / "tests" / "main"]


PROJECTS: Final = (
    Project(
        "scipy",
        "scipy",
        ("scipy.conftest", "tests.clients.on_scipy"),
        _of_scipy,
        options=("--noconftest",),
        default_int="int32",  # its tests make tensors of lists of numpy.int32, and compare
    ),
    Project("scikit-learn", "sklearn", ("tests.clients.on_sklearn",), _of_sklearn),
    Project(
        "array-api-extra",
        "array_api_extra",
        ("tests.clients.on_extra",),
        _of_extra,
        markers=("skip_xp_backend", "xfail_xp_backend"),
        warnings="error",
    ),
)

SUITE: Final = "array-api-tests"
"""The name of the standard's test suite, which no package index has."""
