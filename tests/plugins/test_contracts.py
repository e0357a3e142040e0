"""The plugin contract, and plugins of one version beside cores of another, as pip installs them.

For every published contract, ``contracts/`` holds the names and signatures that
``tensorplug.plugin`` had, and a backend written for it. A later core must still have all names.
It must run the backend if the backend's requirement allows that core, and must otherwise refuse
it with a clear message before any of its code runs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from tensorplug import algorithms, errors, plugin
from tensorplug_conformance.primitives import PRIMITIVES

from .contract_record import CONTRACTS, current_version, lines
from .test_packaging import USE, USED

# The backend of a contract is what it was: a change of one of its files breaks the contract.
SUITE = ("tensorplug-conformance", "tensorplug-train")  # it trains on level 4
FROZEN = {"v0_1": "d8f2bbb0"}

# Cores: the current one, and what it would be as a release of another number.
MATRIX = [  # contract, what it requires of the core, the core's version (None: as it is), works
    ("v0_1", ">=0.1", None, True),
    ("v0_1", ">=0.1,<0.2", "0.1.7", True),
    ("v0_1", ">=0.1,<0.3", "0.2.0", True),
    ("v0_1", ">=0.1,<0.2", "0.2.0", False),
    ("v0_1", ">=0.1,<0.2", "0.2.0rc1", False),
    ("v0_1", ">=0.3", "0.2.0", False),
]


SUFFIXES = (".py", ".toml", ".typed")


def files(contract):
    return sorted(path for path in (CONTRACTS / contract).rglob("*") if path.suffix in SUFFIXES)


def test_contracts_are_frozen():
    assert FROZEN.keys() == {path.name for path in CONTRACTS.iterdir()}
    for contract, expected in FROZEN.items():
        digest = hashlib.sha256()
        for path in files(contract):
            digest.update(path.relative_to(CONTRACTS).as_posix().encode() + path.read_bytes())
        assert digest.hexdigest()[:8] == expected, contract


def recorded(contract):
    return (CONTRACTS / contract / "contract.txt").read_text("utf-8").splitlines()


def test_current_contract_is_recorded():
    """If not, and the change is meant: ``python -m tests.plugins.contract_record``."""
    assert lines() == recorded(current_version())


@pytest.mark.parametrize("contract", FROZEN)
def test_contract_keeps_its_names(contract):
    assert sorted(set(recorded(contract)) - set(lines())) == []


@pytest.mark.parametrize("name", sorted(algorithms.__all__))
def test_the_contract_answers_names_that_have_moved(name):
    with pytest.warns(DeprecationWarning, match=rf"plugin\.{name} .* from tensorplug\.algorithms"):
        assert getattr(plugin, name) is getattr(algorithms, name)


def test_the_contract_has_at_most_80_names_besides_errors():
    assert len(set(plugin.__all__) - set(errors.__all__)) <= 80
    assert not set(plugin.__all__) & set(algorithms.__all__)


def test_every_published_minor_version_has_its_contract(distributions):
    """For a core of version 0.3 there are the contracts of 0.1, 0.2 and 0.3."""
    core = tomllib.loads((distributions["tensorplug"] / "pyproject.toml").read_text("utf-8"))
    _, minor, *_ = core["project"]["version"].split(".")
    assert FROZEN.keys() == {f"v0_{number}" for number in range(1, int(minor) + 1)}


@pytest.fixture(scope="session")
def frozen(tmp_path_factory):
    """Wheels of the backends of contracts, by contract."""
    folder = tmp_path_factory.mktemp("contracts")
    for contract in FROZEN:  # pip builds in the folder
        shutil.copytree(CONTRACTS / contract, folder / contract)
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir"]
    by_contract = {}
    for contract in FROZEN:
        out = folder / "wheels" / contract
        subprocess.run([*command, *options, str(out), str(folder / contract)], check=True)
        [by_contract[contract]] = out.glob("*.whl")
    return by_contract


def relabelled(wheel, folder, old, new):
    """Return a copy of a wheel with another line of metadata, as a release with it would be."""
    name, version, tags = wheel.name.split("-", 2)
    field, _, text = new.partition(": ")
    other = text if field == "Version" else version
    info, renamed = (f"{name}-{each}.dist-info/" for each in (version, other))
    path = folder / f"{name}-{other}-{tags}"
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w") as target:
        for file in source.namelist():
            content = source.read(file)
            if file == f"{info}METADATA":
                assert f"\n{old}\n".encode() in content
                content = content.replace(f"\n{old}\n".encode(), f"\n{new}\n".encode())
            if file == f"{info}RECORD":
                content = content.replace(info.encode(), renamed.encode())
            target.writestr(file.replace(info, renamed), content)
    return path


@pytest.mark.packaging
@pytest.mark.timeout(900)
def test_versions_that_live_together(environment, wheels, frozen, tmp_path):
    """One environment goes through the matrix: pip changes core and plugin in it."""
    environment.pip("install", *(str(wheels[name]) for name in SUITE))
    environment.pip("uninstall", "--yes", "tensorplug-train")  # not for later cores
    today = wheels["tensorplug"]
    current = f"Version: {today.name.split('-')[1]}"
    for contract, requirement, version, works in MATRIX:
        needs = f"Requires-Dist: tensorplug{requirement}"
        files = [
            relabelled(today, tmp_path, current, f"Version: {version}") if version else today,
            relabelled(frozen[contract], tmp_path, "Requires-Dist: tensorplug>=0.1", needs),
        ]
        environment.pip("install", "--force-reinstall", "--no-deps", *map(str, files))
        row = (contract, requirement, version)
        name = f"contract-{contract[1:].replace('_', '-')}"
        if works:
            used = environment.run(USE.format(first=f"tp.set_backend({name!r})"))
            assert used == {"backend": name, **USED}, row
        else:
            state, refused, loaded = environment.run(f"""
                import tensorplug as tp
                [info] = tp.backends()
                refused = attempt(lambda: tp.set_backend({name!r}))
                loaded = [m for m in sys.modules if m.startswith("tensorplug_contract")]
                report([info.state, refused, loaded])
            """)
            assert (state, refused[0], loaded) == ("incompatible", "PluginVersionError", []), row
            for text in (f"tensorplug-{name}", version, requirement.split(",")[-1]):
                assert text in refused[1], row


@pytest.mark.packaging
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "dtypes", ["float32,int32,bool", pytest.param("", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("contract", FROZEN)
def test_a_contract_is_still_conformant(environment, wheels, frozen, contract, dtypes, tmp_path):
    """Level 2 of today's suite is today's promise to backends of that time.

    On each change in a few dtypes, which shows whether calls are what they were.
    """
    environment.pip("install", *(str(wheels[name]) for name in SUITE), str(frozen[contract]))
    name = f"contract-{contract[1:].replace('_', '-')}"
    environment.module(
        tmp_path,
        *("tensorplug_conformance", "run", "--backend", name, "--level", "2"),
        *(("--dtypes", dtypes) if dtypes else ()),
        *("--report", str(tmp_path / "report")),
    )
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert (report["conformant"], report["level"]) == (None if dtypes else True, 2)
    assert {row["kernel"] for row in report["rows"]} >= set(PRIMITIVES)
    assert {row["status"] for row in report["rows"]} <= {"pass native", "unsupported dtype"}
    assert report["backend"]["distribution"] == f"tensorplug-{name}"
