"""Distributions as data, written where importlib metadata really discovers them.

A `Distribution` becomes a package and a `.dist-info` directory below a site directory that a
fresh interpreter has on its path, which is what `pip install --target` leaves there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
import venv
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tensorplug.system import distributions as hints

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = "tensorplug.backends"
EXTENSIONS = "tensorplug.extensions"


@dataclass(frozen=True)
class Distribution:
    """A distribution of one module."""

    name: str
    version: str
    source: str
    entries: dict[str, dict[str, str]] = field(default_factory=dict)  # group -> name -> value
    requires: tuple[str, ...] = ("tensorplug>=0.1,<0.2",)
    module: str = ""

    @property
    def package(self) -> str:
        return self.module or self.name.replace("-", "_")

    def files(self) -> dict[str, str]:
        """Return its files by path, as a wheel holds them."""
        info = f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        requires = "".join(f"Requires-Dist: {require}\n" for require in self.requires)
        entries = "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
            for group, names in self.entries.items()
        )
        files = {
            f"{self.package}.py": textwrap.dedent(self.source),
            f"{info}/METADATA": (
                f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n{requires}"
            ),
            f"{info}/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            ),
            f"{info}/entry_points.txt": entries,
        }
        record = f"{info}/RECORD"
        return {**files, record: "".join(f"{path},,\n" for path in [*files, record])}

    def write(self, site: Path) -> None:
        for path, text in self.files().items():
            target = site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def wheel(self, folder: Path) -> Path:
        """Write a wheel, for pip to install."""
        path = folder / f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in self.files().items():
                archive.writestr(name, text)
        return path


# A backend that runs one kernel on NumPy: enough to show that it works beside a broken one.
GOOD_SOURCE = """
import numpy as np
from tensorplug.plugin import KernelTable, TensorType, hookimpl, specs
from tensorplug.plugin import dtypes as dt

kernels = KernelTable()


@kernels.register(specs.ADD)
def add(a, b):
    return np.add(a, b)


class Numpy:
    def __init__(self, name="good"):
        self.name = name
        self.device = "NumPy"
        self.dtypes = frozenset({dt.float32, dt.int32})
        self.closed = False

    def from_host(self, array):
        return array.copy()

    def to_host(self, buffer):
        return buffer

    def describe(self, buffer):
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer):
        return id(buffer), buffer.nbytes

    def synchronize(self):
        pass

    def memory(self):
        return {}

    def close(self):
        self.closed = True


@hookimpl
def tensorplug_create_backend(device):
    return Numpy()


@hookimpl
def tensorplug_kernels():
    return [kernels]
"""


def backend(name: str, source: str, /, **changes: Any) -> Distribution:
    """Return the distribution tensorplug-<name> 1.2.3 that offers backend <name>."""
    package = f"tensorplug_{name}"
    given: dict[str, Any] = {
        "name": f"tensorplug-{name}",
        "version": "1.2.3",
        "source": source,
        "entries": {BACKENDS: {name: package}},
    }
    return Distribution(**{**given, **changes})


def extension(name: str, source: str, /, **changes: Any) -> Distribution:
    """Return the distribution <name> 4.5.6 that offers extension <name>."""
    given: dict[str, Any] = {
        "name": name,
        "version": "4.5.6",
        "source": source,
        "entries": {EXTENSIONS: {name: name}},
    }
    return Distribution(**{**given, **changes})


GOOD = backend("good", GOOD_SOURCE)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without our own variables."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("TENSORPLUG_")
    }


class Site:
    """A site directory and the interpreters that have it on their path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def install(self, *distributions: Distribution) -> None:
        for distribution in distributions:
            distribution.write(self.path)

    def run(self, script: str, **environment: str) -> Any:
        """Run `script` in a fresh interpreter; return what it passed to `report(...)`."""
        inherited = clean_environment()
        path = [str(self.path), *filter(None, [inherited.get("PYTHONPATH")])]
        inherited["PYTHONPATH"] = os.pathsep.join(path)
        return interpret(sys.executable, script, {**inherited, **environment})


def interpret(
    python: str, script: str, environment: dict[str, str], cwd: Path | None = None
) -> Any:
    """Run `script` after the prelude; return what it passed to `report(...)`."""
    finished = subprocess.run(
        [
            python,
            "-W",
            "error",
            "-W",
            "ignore:tensorplug.plugin:DeprecationWarning",
            "-c",
            PRELUDE + textwrap.dedent(script),
        ],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


PRELUDE = '''
import json, sys, warnings

def report(value):
    print(json.dumps(value))

def attempt(function):
    """Return the class and the message of what `function` raises, and the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except BaseException as error:
            outcome = [type(error).__name__, str(error), [k.__name__ for k in type(error).__mro__]]
        else:
            outcome = ["nothing", repr(result), []]
    return outcome + [[[warned.category.__name__, str(warned.message)] for warned in caught]]

def listed(infos):
    return {
        info.name: [info.distribution, info.version, info.state, info.detail] for info in infos
    }

def added(tp):
    """Return 1 + 2 and 3 + 4 on the active backend, with their dtype."""
    total = tp.asarray([1.0, 3.0]) + tp.asarray([2.0, 4.0])
    return [str(total.dtype), list(total.shape), total.numpy().tolist(), tp.get_backend()]
'''


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


@pytest.fixture
def good() -> Distribution:
    return GOOD


@pytest.fixture
def make_backend() -> Callable[..., Distribution]:
    return backend


@pytest.fixture
def make_extension() -> Callable[..., Distribution]:
    return extension


@pytest.fixture
def core_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """A function that gives tensorplug metadata with this direct_url.json; None: without one."""

    def install(origin: str | None) -> None:
        info = tmp_path / "core" / "tensorplug-0.1.0.dist-info"
        info.mkdir(parents=True)
        text = "Metadata-Version: 2.1\nName: tensorplug\nVersion: 0.1.0\n"
        (info / "METADATA").write_text(text, encoding="utf-8")
        if origin is not None:
            (info / "direct_url.json").write_text(origin, encoding="utf-8")
        monkeypatch.syspath_prepend(str(info.parent))

    return install


@pytest.fixture
def core_from_an_index(
    core_from: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of most users: pip installed tensorplug by its name, and nothing else."""
    core_from(None)
    monkeypatch.setattr(hints, "find_spec", lambda _: None)


# Wheels and virtual environments, for the tests marked `packaging` ------------------------

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment of its own, outside the repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        self.python = path / folder / name

    def variables(self) -> dict[str, str]:
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        return {name: value for name, value in clean_environment().items() if name not in hidden}

    def pip(self, command: str, *arguments: str) -> None:
        quietly = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        # Python compiles the modules that are imported; pip would compile all, every time.
        options = ["--no-compile"] if command == "install" else []
        finished = subprocess.run(
            [*quietly, command, *options, *arguments],
            env=self.variables(),
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr

    def run(self, script: str, **environment: str) -> Any:
        return interpret(
            str(self.python), script, {**self.variables(), **environment}, cwd=self.path
        )

    def module(self, folder: Path, *arguments: str) -> str:
        """Run a module in ``folder``; return what it prints."""
        finished = subprocess.run(
            [str(self.python), "-m", *arguments],
            env=self.variables(),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout


@pytest.fixture(scope="session")
def distributions() -> dict[str, Path]:
    """The folders of this repository's distributions, by distribution name."""
    patterns = ("core", "backends/*", "plugins_example/*", "extensions/*", "tests/conformance")
    files = [
        file for pattern in patterns for file in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
    ]
    return {
        tomllib.loads(file.read_text("utf-8"))["project"]["name"]: file.parent for file in files
    }


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """An sdist of each distribution and the wheel that is built from it, as a release has."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    script = str(ROOT / ".ci" / "release.py")
    subprocess.run([sys.executable, script, "--check", "--out", str(folder)], check=True)
    return sorted(folder.iterdir())


@pytest.fixture(scope="session")
def wheels(distributions: dict[str, Path], built: list[Path]) -> dict[str, Path]:
    """A wheel of each distribution, by distribution name."""
    files = (path for path in built if path.suffix == ".whl")
    by_name = {path.name.split("-")[0].replace("_", "-"): path for path in files}
    assert by_name.keys() == distributions.keys()
    return by_name


@pytest.fixture(scope="session")
def core_only(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A virtual environment in which pip has installed the core and what it needs."""
    environment = Environment(tmp_path_factory.mktemp("environments") / "core")
    venv.create(environment.path, with_pip=True)
    environment.pip("install", str(wheels["tensorplug"]))
    return environment


@pytest.fixture
def environment(core_only: Environment, tmp_path: Path) -> Environment:
    """A fresh virtual environment with the core alone, for one test to change."""
    shutil.copytree(core_only.path, tmp_path / "environment", symlinks=True)
    return Environment(tmp_path / "environment")
