"""Distributions as data, written where importlib metadata really discovers them.

A `Distribution` becomes a package and a `.dist-info` directory below a site directory that a
fresh interpreter has on its path, which is what `pip install --target` leaves there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        requires = "".join(f"Requires-Dist: {each}\n" for each in self.requires)
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
                "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
                "Tag: py3-none-any\n"
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


# A backend that runs one kernel on NumPy: enough to show that it works beside a broken one.
GOOD_SOURCE = '''
import numpy as np
from tensorplug import dtypes as dt
from tensorplug.ops.elementwise import ADD
from tensorplug.plugins.hookspecs import hookimpl
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable

kernels = KernelTable()


@kernels.register(ADD)
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
'''


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


class Site:
    """A site directory and the interpreters that have it on their path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def install(self, *distributions: Distribution) -> None:
        for each in distributions:
            each.write(self.path)

    def run(self, script: str, **environment: str) -> Any:
        """Run `script` in a fresh interpreter; return what it passed to `report(...)`."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TENSORPLUG_")
        }
        path = [str(self.path), *filter(None, [inherited.get("PYTHONPATH")])]
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(script)],
            env={**inherited, "PYTHONPATH": os.pathsep.join(path), **environment},
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
    return outcome + [[[each.category.__name__, str(each.message)] for each in caught]]

def listed(infos):
    return {each.name: [each.distribution, each.version, each.state, each.detail] for each in infos}

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
